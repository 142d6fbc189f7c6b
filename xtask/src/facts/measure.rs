//! A form inside a transaction, looked at from inside before it is rolled back.
//!
//! How a scan is told: `pg_stat_get_xact_numscans` counts the sequential scans that this transaction began on a table; the server
//! counts those of a rewrite, of a check of a constraint and of an index build as well as those of a query. A count that grew is a
//! scan; an index scan of a foreign key's check is none.

use std::collections::BTreeMap;

use anyhow::Context as _;
use tokio_postgres::{Client, NoTls};

use super::forms::Case;
use super::row::Row;

/// What a relation is at one moment.
struct Seen {
    name: String,
    kind: i8,
    file: u32,
    scans: i64,
}

pub(super) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // Its error is the client's too.
    tokio::spawn(async move { connection.await.ok() });
    Ok(client)
}

/// A fresh schema `f` with what the case needs.
pub(super) async fn prepare(client: &Client, case: &Case) -> anyhow::Result<()> {
    client
        .batch_execute(
            "SET client_min_messages = error; SET search_path = f;
             DROP SCHEMA IF EXISTS f CASCADE; CREATE SCHEMA f;",
        )
        .await?;
    client
        .batch_execute(&case.setup)
        .await
        .with_context(|| format!("the setup:\n{}", case.setup))
}

pub(super) async fn measure(url: &str, case: &Case) -> anyhow::Result<Row> {
    let client = connect(url).await?;
    prepare(&client, case).await?;
    let mut row = Row {
        form: case.form.clone(),
        with: case.with.clone(),
        statement: case.statement.clone(),
        ..Row::default()
    };
    client.batch_execute("BEGIN").await?;
    let before = relations(&client).await?;
    if let Err(error) = client.batch_execute(&case.statement).await {
        row.refused(&error)?;
        return Ok(row);
    }
    for (relation, mode) in locks(&client, None).await? {
        // That somebody looked into an index depends on what the backend had cached, and holds nobody up.
        let looked = |seen: &Seen| seen.kind == b'i'.cast_signed() && mode == "AccessShareLock";
        if let Some(seen) = before.get(&relation)
            && !looked(seen)
        {
            row.lock(&seen.name, &mode);
        }
    }
    compare(&mut row, &before, &relations(&client).await?);
    row.judge_by_locks();
    client.batch_execute("ROLLBACK").await?;
    Ok(row)
}

fn compare(row: &mut Row, before: &BTreeMap<u32, Seen>, after: &BTreeMap<u32, Seen>) {
    for (oid, old) in before {
        let is_index = old.kind == b'i'.cast_signed();
        match after.get(oid) {
            Some(new) => {
                if new.scans > old.scans && !is_index {
                    row.scans.insert(old.name.clone());
                }
                if new.file != old.file {
                    let into = if is_index {
                        &mut row.rebuilds
                    } else {
                        &mut row.rewrites
                    };
                    into.insert(old.name.clone());
                }
            }
            // ALTER TYPE makes an index anew under its name; it is a rebuild unless the file was taken over.
            None if is_index => {
                let again = after.values().find(|new| new.name == old.name);
                if again.is_some_and(|new| new.file != old.file) {
                    row.rebuilds.insert(old.name.clone());
                }
            }
            None => {}
        }
    }
}

async fn relations(client: &Client) -> anyhow::Result<BTreeMap<u32, Seen>> {
    let rows = client
        .query(
            "SELECT oid, relname, relkind, relfilenode, pg_stat_get_xact_numscans(oid)
             FROM pg_class WHERE relnamespace = 'f'::regnamespace",
            &[],
        )
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let seen = Seen {
                name: row.get::<_, String>(1),
                kind: row.get(2),
                file: row.get(3),
                scans: row.get(4),
            };
            (row.get(0), seen)
        })
        .collect())
}

/// The relations that a backend (this one, where none is named) has locked or waits for.
pub(super) async fn locks(client: &Client, pid: Option<i32>) -> anyhow::Result<Vec<(u32, String)>> {
    let rows = client
        .query(
            "SELECT relation, mode FROM pg_locks
             WHERE locktype = 'relation' AND pid = coalesce($1, pg_backend_pid())
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            &[&pid],
        )
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect())
}
