//! A backfill of a large table beside a bare loop over the same keys with the same batches, and one that is killed ten times.
//!
//! The bare loop has no fence and no cursor in the database: what a person would write in a script. Its table has the same trigger
//! that keeps both sides alike, as it must while programs write; what that costs is told by a second loop on a table without one.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aegis_backfill::job::{AtPause, BatchSize, Connecting, Ports, Report, Spec, Who, Write, run};
use aegis_backfill::pass::{self, Asked, What};
use aegis_backfill::sync::{self, Rule, Sides};
use aegis_backfill::throttle::Limits;
use aegis_catalog::Name;
use anyhow::Context as _;
use tokio_postgres::Client;

use super::{Database, connect};
use crate::setting::Setting;
use crate::{Figures, figure};

/// Of both sides.
const BATCH: u32 = 10_000;
/// Kills of the second figure.
const KILLS: u32 = 10;
/// A batch is never made smaller: the sides have the same.
const TARGET_MS: u32 = 3_600_000;

/// Both, on tables of `rows` rows.
#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
pub(super) async fn measure(setting: &Setting, rows: u32) -> anyhow::Result<Figures> {
    let database = Database::make(setting, "bench_backfill").await?;
    prepare(&database.client).await?;
    fill(&database.client, "plain", rows).await?;
    let plain = bare_loop(&database.client, &rule("plain")).await?;
    database
        .client
        .batch_execute("DROP TABLE app.plain")
        .await?;
    fill(&database.client, "bare", rows).await?;
    trigger(&database.client, &rule("bare")).await?;
    let bare = bare_loop(&database.client, &rule("bare")).await?;
    database.client.batch_execute("DROP TABLE app.bare").await?;
    fill(&database.client, "moved", rows).await?;
    trigger(&database.client, &rule("moved")).await?;
    let before = resident_kib()?;
    let (mut grown, start) = (0, Instant::now());
    let report = moved(&database.url, &forward(), &mut || {
        grown = grown.max(resident_kib().unwrap_or(u64::MAX).saturating_sub(before));
    })
    .await?;
    let ours = start.elapsed();
    anyhow::ensure!(
        report.rows_changed == i64::from(rows),
        "{} of {rows} rows were moved",
        report.rows_changed
    );
    let unlike = unlike(&database.client).await?;
    anyhow::ensure!(unlike == 0, "{unlike} rows were not moved");
    let mut figures = vec![
        figure(
            "backfill_vs_bare_loop",
            ours.as_secs_f64() / bare.as_secs_f64(),
        ),
        figure(
            "backfill_vs_loop_without_trigger",
            ours.as_secs_f64() / plain.as_secs_f64(),
        ),
        figure(
            "backfill_rows_per_second",
            f64::from(rows) / ours.as_secs_f64(),
        ),
        figure("backfill_memory_growth_kib", grown as f64),
    ];
    database
        .client
        .batch_execute("DROP TABLE app.moved")
        .await?;
    figures.extend(killed(&database, rows, ours).await?);
    Ok(figures)
}

async fn prepare(client: &Client) -> anyhow::Result<()> {
    client
        .batch_execute("CREATE SCHEMA aegis_migrate; CREATE SCHEMA app")
        .await?;
    client.batch_execute(sync::SCHEMA).await?;
    client.batch_execute(aegis_backfill::SCHEMA).await?;
    Ok(())
}

async fn fill(client: &Client, table: &str, rows: u32) -> anyhow::Result<()> {
    client
        .batch_execute(&format!(
            "CREATE TABLE app.{table} (id bigint PRIMARY KEY, name text NOT NULL, first_name text, last_name text, times int NOT NULL DEFAULT 0);
             INSERT INTO app.{table} (id, name) SELECT n, 'Ada Lovelace ' || n FROM generate_series(1, {rows}) n"
        ))
        .await?;
    client
        .batch_execute(&format!("VACUUM ANALYZE app.{table}"))
        .await?;
    client.batch_execute("CHECKPOINT").await?;
    Ok(())
}

fn rule(table: &str) -> Rule {
    Rule {
        change: format!("20261129T1030_{table}"),
        table: Name::new("app", table),
        old: vec!["name".to_owned()],
        new: vec!["first_name".to_owned(), "last_name".to_owned()],
        reject_both: false,
        forward: [
            ("first_name", "split_part(name, ' ', 1)"),
            (
                "last_name",
                "substr(name, length(split_part(name, ' ', 1)) + 2)",
            ),
        ]
        .map(|(column, from)| (column.to_owned(), from.to_owned()))
        .into(),
        backward: [(
            "name".to_owned(),
            "concat_ws(' ', first_name, last_name)".to_owned(),
        )]
        .into(),
    }
}

async fn trigger(client: &Client, rule: &Rule) -> anyhow::Result<()> {
    for statement in Sides::read(client, rule).await?.pin(client).await?.create() {
        client.batch_execute(&statement).await?;
    }
    Ok(())
}

/// A script's loop: the next keys, the same UPDATE, a transaction each.
async fn bare_loop(client: &Client, rule: &Rule) -> anyhow::Result<Duration> {
    let table = rule.table.sql();
    let find = client
        .prepare(&format!(
            "SELECT max(id) FROM (SELECT id FROM {table} WHERE id > $1 ORDER BY id LIMIT $2) AS b"
        ))
        .await?;
    let update = client
        .prepare(&format!(
            "UPDATE {table} SET first_name = split_part(name, ' ', 1), last_name = substr(name, length(split_part(name, ' ', 1)) + 2)
             WHERE id > $1 AND id <= $2"
        ))
        .await?;
    let begin = format!(
        "BEGIN; SET LOCAL {} = '{}'",
        sync::SILENT_SETTING,
        rule.change
    );
    let start = Instant::now();
    let mut from = 0_i64;
    loop {
        client.batch_execute(&begin).await?;
        let row = client.query_one(&find, &[&from, &i64::from(BATCH)]).await?;
        let Some(to) = row.try_get::<_, Option<i64>>(0)? else {
            client.batch_execute("COMMIT").await?;
            return Ok(start.elapsed());
        };
        client.execute(&update, &[&from, &to]).await?;
        client.batch_execute("COMMIT").await?;
        from = to;
    }
}

fn spec(change: &str, table: &str, write: Write) -> Spec {
    Spec {
        change: change.to_owned(),
        schema: "app".to_owned(),
        table: Name::new("app", table),
        key: vec!["id".to_owned()],
        write,
        run_as: None,
        batch: BatchSize {
            start: BATCH,
            max: BATCH,
            target_ms: TARGET_MS,
        },
    }
}

fn forward() -> Spec {
    let rule = rule("moved");
    spec(&rule.change.clone(), "moved", Write::Forward(rule))
}

/// Counts how often a row was moved: the least forgiving of statements.
fn counting() -> Spec {
    spec(
        "20261129T1031_killed",
        "killed",
        Write::Statement {
            file: "backfill.sql".to_owned(),
            sql: "UPDATE killed SET times = times + 1 WHERE id > :from AND id <= :to".to_owned(),
        },
    )
}

async fn moved(url: &str, spec: &Spec, look: &mut (dyn FnMut() + Send)) -> anyhow::Result<Report> {
    let url = url.to_owned();
    let ports = Ports {
        connect: &move || -> Connecting {
            let url = url.clone();
            Box::pin(async move { connect(&url).await.map_err(|error| error.to_string()) })
        },
        limits: &|| Ok(Limits::default()),
        wait: Duration::from_mins(1),
        at_pause: AtPause::Waits,
    };
    Ok(run(ports, spec, &who(), &mut |_| look()).await?)
}

/// Rows that are not what the old side says, by a query of the bench's own.
async fn unlike(client: &Client) -> anyhow::Result<i64> {
    let sql = "SELECT count(*) FROM app.moved WHERE first_name IS DISTINCT FROM 'Ada' OR last_name IS DISTINCT FROM 'Lovelace ' || id";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

/// The role of a process that is killed.
pub(crate) async fn process(url: &str) -> anyhow::Result<()> {
    moved(url, &counting(), &mut || {}).await?;
    Ok(())
}

/// Runs in a process of its own, killed ten times; the times between are drawn so that all of them fall into the work.
#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
async fn killed(database: &Database, rows: u32, whole: Duration) -> anyhow::Result<Figures> {
    fill(&database.client, "killed", rows).await?;
    let mut seed = u64::from(std::process::id()) | 1;
    let mut landed = 0;
    for _ in 0..KILLS {
        // xorshift: where it stands in a batch shall be nobody's choice.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let share = f64::from(u32::try_from(seed % 1000)?) / 1000.0;
        let mut child = start(&database.url)?;
        tokio::time::sleep(
            whole.mul_f64(share / f64::from(2 * KILLS)) + Duration::from_millis(200),
        )
        .await;
        if child.try_wait()?.is_none() {
            landed += 1;
            child.kill()?;
        }
        child.wait()?;
    }
    let status = tokio::task::spawn_blocking({
        let mut child = start(&database.url)?;
        move || child.wait()
    })
    .await??;
    anyhow::ensure!(status.success(), "the last run ended with {status}");
    let sql = "SELECT count(*) FILTER (WHERE times = 0), count(*) FILTER (WHERE times > 1), count(*) FROM app.killed";
    let row = database.client.query_one(sql, &[]).await?;
    let (missed, twice, all): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    anyhow::ensure!(all == i64::from(rows), "{all} rows of {rows}");
    anyhow::ensure!(
        landed == KILLS,
        "only {landed} of {KILLS} kills met a running backfill"
    );
    let asked = Asked {
        change: "20261129T1031_killed".to_owned(),
        schema: "app".to_owned(),
        run_as: None,
        key: vec!["id".to_owned()],
        what: What::Query {
            file: "reconcile.sql".to_owned(),
            sql: "SELECT id::text, CASE WHEN times = 0 THEN 'missing' ELSE 'mismatch' END FROM killed WHERE times <> 1".to_owned(),
            trigger: None,
        },
    };
    let wrong = counted(&database.url, &asked).await?;
    Ok(vec![
        figure("killed_backfill_kills", f64::from(landed)),
        figure("killed_backfill_missed", missed as f64),
        figure("killed_backfill_twice", twice as f64),
        figure("killed_backfill_reconciled_wrong", wrong as f64),
    ])
}

/// What a pass finds wrong.
async fn counted(url: &str, asked: &Asked) -> anyhow::Result<i64> {
    let mut client = connect(url).await?;
    let counts = pass::run(&mut client, asked, &who(), &mut |_| {}).await?;
    anyhow::ensure!(!counts.is_empty(), "the pass counted nothing");
    Ok(counts
        .iter()
        .map(|count| count.missing + count.mismatch + count.orphaned)
        .sum())
}

fn who() -> Who {
    Who {
        run: "bench".to_owned(),
        by: "bench".to_owned(),
        release: "none".to_owned(),
    }
}

fn start(url: &str) -> anyhow::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["backfill", url])
        .stdin(Stdio::null())
        .spawn()
        .context("the backfill's process cannot be started")
}

/// What this process holds in memory.
fn resident_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS")?.parse()?)
}
