//! The tables that have the rows, and the key that walks them.

use aegis_catalog::Name;
use tokio_postgres::GenericClient;

use super::{JobError, Spec};
use crate::key::{Key, KeyColumn};

/// A table with rows: the one that was named, or a partition of it.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) oid: u32,
    pub(crate) name: Name,
    /// Of the server's statistics; none when it was never analysed.
    pub(crate) rows_estimated: Option<i64>,
    /// Whether a range of places in it can be read without the rest.
    pub(crate) is_heap: bool,
}

/// The leaves of a table, in the order of their names. What is not a plain table is refused.
pub(crate) async fn leaves(
    client: &impl GenericClient,
    table: &Name,
) -> Result<Vec<Leaf>, JobError> {
    let rows = client
        .query(
            include_str!("../../sql/job/leaves.sql"),
            &[&table.schema, &table.name],
        )
        .await?;
    let mut leaves = Vec::new();
    for row in &rows {
        let name = Name::new(
            row.try_get::<_, String>("schema")?,
            row.try_get::<_, String>("name")?,
        );
        if !row.try_get::<_, bool>("is_plain")? {
            return Err(JobError::Precondition(format!(
                "{name} is not a table of this server, so no batch of it is one transaction; detach it, or move its rows there"
            )));
        }
        let estimated: i64 = row.try_get("rows_estimated")?;
        leaves.push(Leaf {
            oid: row.try_get("oid")?,
            name,
            rows_estimated: (estimated >= 0).then_some(estimated),
            is_heap: row.try_get("is_heap")?,
        });
    }
    if leaves.is_empty() {
        return Err(JobError::Precondition(format!(
            "there is no table {table}, or it has no partition"
        )));
    }
    Ok(leaves)
}

/// The table as one, with all that is below it: for a statement of the author, whose range is over the whole of it.
pub(crate) async fn whole(client: &impl GenericClient, table: &Name) -> Result<Leaf, JobError> {
    let below = leaves(client, table).await?;
    let oid: u32 = client
        .query_one(
            include_str!("../../sql/job/whole.sql"),
            &[&table.schema, &table.name],
        )
        .await?
        .try_get(0)?;
    Ok(Leaf {
        oid,
        name: table.clone(),
        rows_estimated: below.iter().map(|leaf| leaf.rows_estimated).sum(),
        is_heap: false,
    })
}

/// The key, when it is one on every leaf: NOT NULL, with a unique index that can be walked.
pub(crate) async fn key(
    client: &impl GenericClient,
    spec: &Spec,
    leaves: &[Leaf],
) -> Result<Key, JobError> {
    let mut key = None;
    for leaf in leaves {
        let of_leaf = columns(client, spec, leaf).await?;
        let index = client
            .query_opt(
                include_str!("../../sql/job/key_index.sql"),
                &[&leaf.oid, &spec.key],
            )
            .await?;
        if index.is_none() {
            return Err(JobError::Precondition(format!(
                "{} has no valid unique index on exactly ({}), in that order; make one in [migrate] sql, or name the key that has one",
                leaf.name,
                spec.key.join(", ")
            )));
        }
        key.get_or_insert(of_leaf);
    }
    key.ok_or_else(|| JobError::Precondition(format!("{} has no rows to move", spec.table)))
}

async fn columns(client: &impl GenericClient, spec: &Spec, leaf: &Leaf) -> Result<Key, JobError> {
    let rows = client
        .query(
            include_str!("../../sql/job/key_columns.sql"),
            &[&leaf.oid, &spec.key],
        )
        .await?;
    let mut columns = Vec::new();
    for row in &rows {
        let name: String = row.try_get("name")?;
        if !row.try_get::<_, bool>("not_null")? {
            return Err(JobError::Precondition(format!(
                "{}.{name} may be NULL, and NULL is neither before nor after anything; name a NOT NULL key",
                leaf.name
            )));
        }
        columns.push(KeyColumn {
            name,
            type_sql: row.try_get("type")?,
        });
    }
    if let Some(missing) = spec
        .key
        .iter()
        .find(|name| columns.iter().all(|column| column.name != **name))
    {
        return Err(JobError::Precondition(format!(
            "{} has no column {missing}, which [backfill] key names",
            leaf.name
        )));
    }
    Ok(Key { columns })
}
