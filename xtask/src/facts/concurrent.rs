//! A form that does not run inside a transaction: looked at by a second session, while others hold it up.
//!
//! Three looks, each on a fresh schema: it waits behind a lock that conflicts (which mode does it ask for?); it runs beside a
//! transaction that has written (does it wait for it, and does a reader or a writer then wait for the form?); its files and counters
//! after its end.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio_postgres::Client;

use super::forms::Case;
use super::measure::{connect, locks, prepare};
use super::row::Row;

/// How often a look is repeated, 5 ms apart, before it is given up.
const LOOKS_MAX: u32 = 2_000;

pub(super) async fn measure(url: &str, case: &Case) -> anyhow::Result<Row> {
    let mut row = Row {
        form: case.form.clone(),
        with: case.with.clone(),
        statement: case.statement.clone(),
        ..Row::default()
    };
    let table = &case.table;
    let hold = format!("LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE");
    if !run(url, case, &hold, &mut row).await? {
        return Ok(row);
    }
    let write = format!("INSERT INTO {table} (id) VALUES (42000)");
    let write = if table == "p" {
        "INSERT INTO p (id) VALUES (7)".to_owned()
    } else {
        write
    };
    run(url, case, &write, &mut row).await?;
    Ok(row)
}

/// Runs the statement beside a transaction that does `beside`; whether the server took it.
async fn run(url: &str, case: &Case, beside: &str, row: &mut Row) -> anyhow::Result<bool> {
    let looks = connect(url).await?;
    prepare(&looks, case).await?;
    let names = names(&looks).await?;
    let files = files(&looks).await?;
    let other = connect(url).await?;
    other
        .batch_execute(&format!("SET search_path = f; BEGIN; {beside}"))
        .await?;
    let runs = connect(url).await?;
    runs.batch_execute("SET search_path = f").await?;
    let pid: i32 = runs.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
    let statement = case.statement.clone();
    let task = tokio::spawn(async move { runs.batch_execute(&statement).await });
    let mut waited = false;
    for _ in 0..LOOKS_MAX {
        if task.is_finished() {
            break;
        }
        if waits(&looks, pid).await? {
            // It stands still: what it holds and asks for now does not change from run to run.
            for (relation, mode) in locks(&looks, Some(pid)).await? {
                if let Some(name) = names.get(&relation) {
                    row.lock(name, &mode);
                }
            }
            waited = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if beside.starts_with("LOCK") {
        row.judge_by_locks();
    } else {
        row.waits_for_writers = Some(waited);
        if waited {
            row.blocks_reads =
                !passes(&looks, &format!("SELECT 1 FROM {} LIMIT 1", case.table)).await?;
            row.blocks_writes = !passes(
                &looks,
                &format!("UPDATE {} SET c = c WHERE id = 2", case.table),
            )
            .await?;
        }
    }
    other.batch_execute("ROLLBACK").await?;
    if let Err(error) = task.await? {
        row.refused(&error)?;
        return Ok(false);
    }
    for (name, (kind, file)) in self::files(&looks).await? {
        if let Some((_, old)) = files.get(&name)
            && *old != file
        {
            let into = if kind == b'i'.cast_signed() {
                &mut row.rebuilds
            } else {
                &mut row.rewrites
            };
            into.insert(name);
        }
    }
    Ok(true)
}

async fn waits(looks: &Client, pid: i32) -> anyhow::Result<bool> {
    let waiting = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'";
    Ok(looks.query_opt(waiting, &[&pid]).await?.is_some())
}

/// Whether a statement of somebody else comes through now; nothing of it stays.
async fn passes(client: &Client, statement: &str) -> anyhow::Result<bool> {
    client
        .batch_execute("BEGIN; SET LOCAL lock_timeout = '300ms'")
        .await?;
    let passed = client.batch_execute(statement).await.is_ok();
    client.batch_execute("ROLLBACK").await?;
    Ok(passed)
}

async fn names(client: &Client) -> anyhow::Result<BTreeMap<u32, String>> {
    let all = "SELECT oid, relname FROM pg_class WHERE relnamespace = 'f'::regnamespace";
    let rows = client.query(all, &[]).await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect())
}

async fn files(client: &Client) -> anyhow::Result<BTreeMap<String, (i8, u32)>> {
    let all =
        "SELECT relname, relkind, relfilenode FROM pg_class WHERE relnamespace = 'f'::regnamespace";
    let rows = client.query(all, &[]).await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.get(0), (row.get(1), row.get(2))))
        .collect())
}
