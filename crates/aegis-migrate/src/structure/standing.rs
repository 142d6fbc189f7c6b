//! How it stands with a step without a transaction that did not say how it ended: the server's catalog is the only witness.
//!
//! What an index should be is told by the server itself: the same statement on an empty copy of the table, rolled back. So its
//! predicate is compared as the server prints it, never as somebody wrote it.

use aegis_catalog::{Index, Name, quote, read_index};
use tokio_postgres::GenericClient;

use super::StructureError;
use super::head::head;

/// What a CREATE INDEX should make.
#[derive(Debug, Clone)]
pub struct ExpectedIndex {
    /// Its name.
    pub name: Name,
    index: Index,
}

/// Asks the server what the statement would make. The client is in a transaction whose `search_path` is the step's; a savepoint
/// is rolled back, nothing stays. A table's row is not looked at, and its lock is ACCESS SHARE.
///
/// # Errors
/// [`StructureError::Unprovable`] when the index has no name or needs more than the table's columns.
pub async fn expected_index<C: GenericClient + Sync>(
    client: &C,
    statement: &str,
    table: &Name,
) -> Result<ExpectedIndex, StructureError> {
    let unprovable = |why: &str| StructureError::Unprovable {
        why: why.to_owned(),
    };
    let Some(head) = head(statement) else {
        return Err(unprovable(
            "only CREATE INDEX with a name can be tried on an empty copy; give the index a name",
        ));
    };
    if head.table != table.name
        || head
            .schema
            .as_ref()
            .is_some_and(|schema| *schema != table.schema)
    {
        return Err(unprovable("the statement is about another table"));
    }
    let unique = if head.unique { "UNIQUE " } else { "" };
    let copy = quote(&head.table);
    // A temporary table takes its index's tablespace from another setting.
    let script = format!(
        "SAVEPOINT aegis_expected; SELECT set_config('temp_tablespaces', current_setting('default_tablespace'), true); \
         CREATE TEMPORARY TABLE {copy} (LIKE {}) ON COMMIT DROP; \
         CREATE {unique}INDEX {} ON pg_temp.{copy} {}",
        table.sql(),
        quote(&head.index),
        head.rest
    );
    let made = client.batch_execute(&script).await;
    let read = match &made {
        Ok(()) => read_index(client, None, &head.index).await,
        Err(_) => Ok(None),
    };
    let at = StructureError::sql("trying the statement on an empty copy");
    client
        .batch_execute("ROLLBACK TO SAVEPOINT aegis_expected; RELEASE SAVEPOINT aegis_expected")
        .await
        .map_err(at)?;
    if let Err(error) = made {
        let said = error
            .as_db_error()
            .map_or_else(|| error.to_string(), |said| said.message().to_owned());
        return Err(unprovable(&format!(
            "on an empty copy of the table the server says: {said}"
        )));
    }
    match read? {
        Some(index) => Ok(ExpectedIndex {
            name: Name::new(&*table.schema, &*head.index),
            index,
        }),
        None => Err(unprovable("the copy has no such index")),
    }
}

/// How it stands with an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexStanding {
    /// Nothing has its name.
    Absent,
    /// It is what it should be, valid, kept up by writes.
    Equal,
    /// It is another one, or something else has its name: both, in words.
    Wrong {
        /// What it should be.
        expected: String,
        /// What is there.
        found: String,
    },
    /// It is a leftover: its build or its drop was cut short. Whose it is only the ledger can say.
    Invalid {
        /// Writes keep it up already, at their cost.
        ready: bool,
    },
}

/// Looks. Without `expected` (a DROP INDEX CONCURRENTLY) every valid index is equal.
///
/// # Errors
/// When the catalog cannot be read.
pub async fn standing<C: GenericClient + Sync>(
    client: &C,
    index: &Name,
    expected: Option<&ExpectedIndex>,
    table: Option<&Name>,
) -> Result<IndexStanding, StructureError> {
    let at = StructureError::sql("looking for the index");
    let row = client
        .query_opt(
            include_str!("../../sql/structure/index.sql"),
            &[&index.schema, &index.name],
        )
        .await
        .map_err(at)?;
    if row.is_none() {
        return Ok(IndexStanding::Absent);
    }
    let words = |index: &Index| definition(index).join(", ");
    let should = expected.map_or_else(|| "an index".to_owned(), |e| words(&e.index));
    let Some(found) = read_index(client, Some(&index.schema), &index.name).await? else {
        let found = "a relation of that name that is no index".to_owned();
        return Ok(IndexStanding::Wrong {
            expected: should,
            found,
        });
    };
    if let Some(table) = table.filter(|table| **table != found.table) {
        return Ok(IndexStanding::Wrong {
            expected: format!("on {table}: {should}"),
            found: format!("on {}: {}", found.table, words(&found)),
        });
    }
    if expected.is_some_and(|e| definition(&e.index) != definition(&found)) {
        return Ok(IndexStanding::Wrong {
            expected: should,
            found: words(&found),
        });
    }
    Ok(if found.valid && found.ready && found.live {
        IndexStanding::Equal
    } else {
        IndexStanding::Invalid { ready: found.ready }
    })
}

/// What makes an index this one, whatever table it is on and however far its build came.
fn definition(index: &Index) -> Vec<String> {
    let mut words = vec![format!(
        "{}{}",
        if index.unique { "unique " } else { "" },
        index.method
    )];
    words.push(format!(
        "({})",
        index
            .keys
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<String>>()
            .join(", ")
    ));
    if !index.include.is_empty() {
        words.push(format!("INCLUDE ({})", index.include.join(", ")));
    }
    if index.nulls_not_distinct {
        words.push("NULLS NOT DISTINCT".to_owned());
    }
    if !index.options.is_empty() {
        words.push(format!("WITH ({})", index.options.join(", ")));
    }
    words.extend(
        index
            .tablespace
            .as_ref()
            .map(|space| format!("TABLESPACE {}", quote(space))),
    );
    words.extend(
        index
            .predicate
            .as_ref()
            .map(|predicate| format!("WHERE {predicate}")),
    );
    words
}

/// How it stands with a DETACH PARTITION … CONCURRENTLY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detach {
    /// It is no partition of it (any more).
    Done,
    /// It was cut short: only FINALIZE ends it, a retry fails.
    Pending,
    /// It has not begun, or was undone.
    Attached,
}

/// Looks.
///
/// # Errors
/// When the catalog cannot be read.
pub async fn detach<C: GenericClient + Sync>(
    client: &C,
    parent: &Name,
    partition: &Name,
) -> Result<Detach, StructureError> {
    let at = StructureError::sql("looking for the partition");
    let row = client
        .query_opt(
            include_str!("../../sql/structure/detach.sql"),
            &[
                &parent.schema,
                &parent.name,
                &partition.schema,
                &partition.name,
            ],
        )
        .await
        .map_err(at)?;
    Ok(match row.map(|row| row.get::<_, bool>(0)) {
        None => Detach::Done,
        Some(true) => Detach::Pending,
        Some(false) => Detach::Attached,
    })
}

/// Invalid indexes that a REINDEX CONCURRENTLY of this table has left: `…_ccnew`, `…_ccold`.
///
/// # Errors
/// When the catalog cannot be read.
pub async fn leftovers_of_reindex<C: GenericClient + Sync>(
    client: &C,
    table: &Name,
) -> Result<Vec<Name>, StructureError> {
    let at = StructureError::sql("looking for what REINDEX has left");
    let rows = client
        .query(
            include_str!("../../sql/structure/reindex.sql"),
            &[&table.schema, &table.name],
        )
        .await
        .map_err(at)?;
    let name =
        |row: &tokio_postgres::Row| Name::new(row.get::<_, String>(0), row.get::<_, String>(1));
    Ok(rows.iter().map(name).collect())
}
