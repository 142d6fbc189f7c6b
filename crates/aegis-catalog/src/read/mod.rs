//! Reading a live server: a constant number of statements, sent together, answered in one snapshot.
//!
//! Every setting that changes how the server prints an expression is fixed for the reading, so that two sessions with two time
//! zones read one structure. Nothing is written, and a lock is waited for at most [`LOCK_TIMEOUT_MS`] (in [`read`]).

mod parts;
mod statements;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, GenericClient};

use crate::catalog::{Catalog, FORMAT};
use crate::error::Error;
use crate::model::Index;
use crate::scope::Scope;

/// The oldest major version that is read.
pub const OLDEST: u32 = 14;
/// How long [`read`] waits for somebody's ACCESS EXCLUSIVE lock.
pub const LOCK_TIMEOUT_MS: u32 = 3_000;

/// Reads a database in a transaction of its own: REPEATABLE READ, read only. The client must not be in a transaction.
///
/// # Errors
/// An [`Error`] when the server is too old, does not let this role read, or a table is locked for long.
pub async fn read(client: &Client, scope: &Scope) -> Result<Catalog, Error> {
    let begin = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"
    );
    let at = |what| move |source| Error::Read { what, source };
    client
        .batch_execute(&begin)
        .await
        .map_err(at("a snapshot"))?;
    let catalog = read_within(client, scope).await;
    let end = if catalog.is_ok() {
        "COMMIT"
    } else {
        "ROLLBACK"
    };
    let ended = client.batch_execute(end).await.map_err(at("its end"));
    let catalog = catalog?;
    ended?;
    Ok(catalog)
}

/// Reads within the caller's transaction, whose settings are put back: what the transaction itself did is seen, and nothing is
/// waited for longer than its own timeouts say. In READ COMMITTED each part has a snapshot of its own, which is enough for
/// objects that the transaction has locked. The client must be in a transaction; after an error it is aborted.
///
/// # Errors
/// As [`read`].
pub async fn read_within<C: GenericClient + Sync>(
    client: &C,
    scope: &Scope,
) -> Result<Catalog, Error> {
    let settings = fix_settings(client).await?;
    let catalog = everything(client, scope).await?;
    put_back(client, settings).await?;
    Ok(catalog)
}

/// Settings with the values that they had.
type Settings = Vec<(String, String)>;

async fn fix_settings<C: GenericClient + Sync>(client: &C) -> Result<Settings, Error> {
    let at = |source| Error::Read {
        what: "settings",
        source,
    };
    let before = client
        .query_typed(include_str!("../../sql/settings.sql"), &[])
        .await
        .map_err(at)?;
    before
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(at)
}

async fn put_back<C: GenericClient + Sync>(client: &C, settings: Settings) -> Result<(), Error> {
    let (names, values): (Vec<String>, Vec<String>) = settings.into_iter().unzip();
    client
        .query_typed(
            include_str!("../../sql/settings_back.sql"),
            &[(&names, Type::TEXT_ARRAY), (&values, Type::TEXT_ARRAY)],
        )
        .await
        .map_err(|source| Error::Read {
            what: "settings",
            source,
        })?;
    Ok(())
}

/// Reads one index by its name, `None` for the schema: among this session's temporary ones. The client is in a transaction.
///
/// # Errors
/// As [`read`].
pub async fn read_index<C: GenericClient + Sync>(
    client: &C,
    schema: Option<&str>,
    name: &str,
) -> Result<Option<Index>, Error> {
    let at = |source| Error::Read {
        what: "an index",
        source,
    };
    let place = client
        .query_typed(
            include_str!("../../sql/table_of_index.sql"),
            &[(&schema, Type::TEXT), (&name, Type::TEXT)],
        )
        .await
        .map_err(at)?;
    let Some(row) = place.first() else {
        return Ok(None);
    };
    let table: u32 = row.try_get(0).map_err(at)?;
    let settings = fix_settings(client).await?;
    let indexes = rows::<Index, C>(
        client,
        "an index",
        include_str!("../../sql/index.sql"),
        &[(&vec![table], Type::OID_ARRAY), (&false, Type::BOOL)],
    )
    .await?;
    put_back(client, settings).await?;
    Ok(indexes.into_iter().find(|index| index.name.name == name))
}

/// What `scope.sql` answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Found {
    server_version_num: u32,
    database: String,
    reader: String,
    taken_at: String,
    spaces: Vec<u32>,
    relations: Vec<u32>,
    sequences: Vec<u32>,
    functions: Vec<u32>,
    types: Vec<u32>,
}

async fn everything<C: GenericClient + Sync>(client: &C, scope: &Scope) -> Result<Catalog, Error> {
    let found = found(client, scope).await?;
    let major = found.server_version_num / 10_000;
    if major < OLDEST {
        return Err(Error::Server {
            found: major,
            oldest: OLDEST,
        });
    }
    let mut catalog = Catalog {
        format: FORMAT,
        server_version_num: found.server_version_num,
        database: found.database.clone(),
        reader: found.reader.clone(),
        taken_at: found.taken_at.clone(),
        of_schemas: scope.schemas.clone(),
        ..Catalog::default()
    };
    parts::read(client, scope, &found, &mut catalog).await?;
    if scope.measured {
        parts::measure(client, &found, &mut catalog).await?;
        statements::read(client, &mut catalog).await?;
    }
    catalog.sort();
    Ok(catalog)
}

async fn found<C: GenericClient + Sync>(client: &C, scope: &Scope) -> Result<Found, Error> {
    let (schemas, names): (Option<Vec<&str>>, Option<Vec<&str>>) = match &scope.names {
        Some(names) => (
            Some(names.iter().map(|name| name.schema.as_str()).collect()),
            Some(names.iter().map(|name| name.name.as_str()).collect()),
        ),
        None => (None, None),
    };
    let found = rows::<Found, C>(
        client,
        "scope",
        include_str!("../../sql/scope.sql"),
        &[
            (&scope.schemas, Type::TEXT_ARRAY),
            (&schemas, Type::TEXT_ARRAY),
            (&names, Type::TEXT_ARRAY),
        ],
    )
    .await?;
    found.into_iter().next().ok_or_else(|| Error::Shape {
        what: "scope",
        row: String::new(),
        source: serde::de::Error::custom("the server answered no row"),
    })
}

/// Rows of one column, each a JSON document as text.
async fn rows<T: DeserializeOwned, C: GenericClient + Sync>(
    client: &C,
    what: &'static str,
    sql: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<T>, Error> {
    let at = |source| Error::Read { what, source };
    let rows = client.query_typed(sql, parameters).await.map_err(at)?;
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        let text: &str = row.try_get(0).map_err(at)?;
        values.push(serde_json::from_str(text).map_err(|source| Error::Shape {
            what,
            row: text.chars().take(200).collect(),
            source,
        })?);
    }
    Ok(values)
}

/// A part that is read beside the others.
type Part<'a> = BoxFuture<'a, Result<(), Error>>;
