//! The tables that have the rows, and the key that walks them.

use aegis_catalog::Name;
use tokio_postgres::GenericClient;

use super::{JobError, Spec};
use crate::key::{Key, KeyColumn, KeyFault};

/// What a key walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// Each table that has rows by itself: the one that was named, or its partitions. Of `set = "sync.forward"`.
    EachLeaf,
    /// All of them as one table. Of a statement of the author.
    Whole,
}

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

/// What the key of a job walks; the job and who judges its key before it take the same.
pub(crate) async fn walked(
    client: &impl GenericClient,
    table: &Name,
    walked: Walked,
) -> Result<Vec<Leaf>, JobError> {
    match walked {
        Walked::EachLeaf => leaves(client, table).await,
        Walked::Whole => Ok(vec![whole(client, table).await?]),
    }
}

/// The table as one, with all that is below it: for a statement of the author, whose range is over the whole of it.
async fn whole(client: &impl GenericClient, table: &Name) -> Result<Leaf, JobError> {
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
    match judged(client, &spec.key, leaves).await? {
        Ok(Some(key)) => Ok(key),
        Ok(None) => Err(JobError::Precondition(format!(
            "{} has no rows to move",
            spec.table
        ))),
        Err(fault) => Err(JobError::Precondition(fault.to_string())),
    }
}

/// Why the columns are no key of what a job walks; none when they are, or when there is no such table yet.
///
/// # Errors
/// The server's.
pub async fn key_fault(
    client: &impl GenericClient,
    table: &Name,
    key: &[String],
    walks: Walked,
) -> Result<Option<KeyFault>, tokio_postgres::Error> {
    match walked(client, table, walks).await {
        Ok(leaves) => Ok(judged(client, key, &leaves).await?.err()),
        Err(JobError::Database(error)) => Err(error),
        // There is nothing to judge: a run says so when it comes to it.
        Err(_) => Ok(None),
    }
}

/// A table with all that is below it, partitions of partitions and heirs too; empty when it is not there.
///
/// # Errors
/// The server's.
pub async fn tree(
    client: &impl GenericClient,
    table: &Name,
) -> Result<Vec<Name>, tokio_postgres::Error> {
    let rows = client
        .query(
            include_str!("../../sql/job/tree.sql"),
            &[&table.schema, &table.name],
        )
        .await?;
    let name = |row: &tokio_postgres::Row| {
        Ok(Name::new(
            row.try_get::<_, String>("schema")?,
            row.try_get::<_, String>("name")?,
        ))
    };
    rows.iter().map(name).collect()
}

async fn judged(
    client: &impl GenericClient,
    names: &[String],
    leaves: &[Leaf],
) -> Result<Result<Option<Key>, KeyFault>, tokio_postgres::Error> {
    let mut key = None;
    for leaf in leaves {
        let of_leaf = match columns(client, names, leaf).await? {
            Ok(of_leaf) => of_leaf,
            Err(fault) => return Ok(Err(fault)),
        };
        let index = client
            .query_opt(
                include_str!("../../sql/job/key_index.sql"),
                &[&leaf.oid, &names],
            )
            .await?;
        if index.is_none() {
            return Ok(Err(KeyFault::NotUnique {
                table: leaf.name.to_string(),
                key: names.join(", "),
            }));
        }
        key.get_or_insert(of_leaf);
    }
    Ok(Ok(key))
}

async fn columns(
    client: &impl GenericClient,
    names: &[String],
    leaf: &Leaf,
) -> Result<Result<Key, KeyFault>, tokio_postgres::Error> {
    let rows = client
        .query(
            include_str!("../../sql/job/key_columns.sql"),
            &[&leaf.oid, &names],
        )
        .await?;
    let table = leaf.name.to_string();
    let mut columns = Vec::new();
    for row in &rows {
        let name: String = row.try_get("name")?;
        if !row.try_get::<_, bool>("not_null")? {
            return Ok(Err(KeyFault::Nullable {
                table,
                column: name,
            }));
        }
        columns.push(KeyColumn {
            name,
            type_sql: row.try_get("type")?,
        });
    }
    let is_there = |name: &String| columns.iter().any(|column| column.name == *name);
    if let Some(missing) = names.iter().find(|name| !is_there(name)) {
        return Ok(Err(KeyFault::NoColumn {
            table,
            column: missing.clone(),
        }));
    }
    Ok(Ok(Key { columns }))
}
