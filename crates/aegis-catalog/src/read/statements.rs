//! How many calls name a table, by pg_stat_statements. Where it is not there, not loaded or not readable, the answer is "unknown".

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tokio_postgres::GenericClient;

use super::parts::words;
use super::rows;
use crate::catalog::Catalog;
use crate::error::Error;
use crate::model::Window;
use crate::name::quote;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    calls: i64,
    query: Option<String>,
}

/// Adds up the calls of statements by the names in their text. A name that stands in two schemas counts for both tables.
pub(super) async fn read<C: GenericClient + Sync>(
    client: &C,
    catalog: &mut Catalog,
) -> Result<(), Error> {
    let at = |source| Error::Read {
        what: "statements",
        source,
    };
    let place = client
        .query_typed(include_str!("../../sql/statements_where.sql"), &[])
        .await
        .map_err(at)?;
    let Some(row) = place.first() else {
        return Ok(());
    };
    let schema = quote(row.try_get(0).map_err(at)?);
    // It is an error to ask when the library is not loaded, and the snapshot must outlive that.
    client
        .batch_execute("SAVEPOINT aegis_statements")
        .await
        .map_err(at)?;
    let read = calls(client, &schema).await;
    let end = if read.is_ok() {
        "RELEASE SAVEPOINT aegis_statements"
    } else {
        "ROLLBACK TO SAVEPOINT aegis_statements; RELEASE SAVEPOINT aegis_statements"
    };
    client.batch_execute(end).await.map_err(at)?;
    if let Ok((window, statements)) = read {
        count(catalog, &statements);
        catalog.calls_window = window;
    }
    Ok(())
}

async fn calls<C: GenericClient + Sync>(
    client: &C,
    schema: &str,
) -> Result<(Option<Window>, Vec<Statement>), Error> {
    let windows = format!(
        "SELECT json_build_object('since', to_char(stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), \
         'seconds', extract(epoch FROM clock_timestamp() - stats_reset)::float8)::text \
         FROM {schema}.pg_stat_statements_info"
    );
    let statements = format!(
        "SELECT json_build_object('calls', s.calls, 'query', s.query)::text FROM {schema}.pg_stat_statements s \
         JOIN pg_catalog.pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()"
    );
    let mut windows = rows(client, "statements", &windows, &[]).await?;
    let statements: Vec<Statement> = rows(client, "statements", &statements, &[]).await?;
    Ok((windows.pop(), statements))
}

fn count(catalog: &mut Catalog, statements: &[Statement]) {
    let mut of_table: BTreeMap<String, i64> = BTreeMap::new();
    for statement in statements {
        let text = statement.query.as_deref().unwrap_or_default();
        for word in words(text).collect::<BTreeSet<String>>() {
            *of_table.entry(word).or_default() += statement.calls;
        }
    }
    for rates in &mut catalog.rates {
        let name = rates.table.name.to_lowercase();
        rates.calls = Some(of_table.get(&name).copied().unwrap_or(0));
    }
}
