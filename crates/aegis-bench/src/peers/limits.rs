//! What the server does bare, over the same loopback TCP: single-row commits, and claim-and-complete of 100 rows a
//! statement, both by pgbench.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::lab::Lab;

const DATABASE: &str = "peer_limits";
const ROWS: i32 = 200_000;
const COMMIT_SECONDS: &str = "3";

/// One round of limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Durable commits of one row a second, one client.
    pub(crate) commits_per_second: f64,
    /// Rows claimed and completed a second, 100 a statement, one client.
    pub(crate) rows_per_second: f64,
    /// The same by as many clients as the engines' concurrency.
    pub(crate) rows_per_second_concurrent: f64,
    pub(crate) wal_bytes_per_row: f64,
    pub(crate) flush_us: f64,
}

/// Measures once.
pub(crate) async fn measure(lab: &Lab, clients: u32) -> anyhow::Result<Limits> {
    let pgbench = lab
        .program("pgbench")
        .context("the PostgreSQL of this run has no pgbench beside it")?;
    lab.empty(DATABASE).await?;
    let look = lab.client(DATABASE).await?;
    look.batch_execute(
        "CREATE TABLE l1 (id int PRIMARY KEY, v bigint NOT NULL);
         INSERT INTO l1 SELECT i, 0 FROM generate_series(1, 1000) i;
         CREATE TABLE l2 (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL DEFAULT 'ready',
            payload jsonb NOT NULL, done_at timestamptz);
         CREATE INDEX l2_ready ON l2 (id) WHERE state = 'ready'",
    )
    .await?;
    let commit = include_str!("../../sql/peers/limit_commit.sql");
    let claim = include_str!("../../sql/peers/limit_claim.sql");
    let commits_per_second = bench(lab, &pgbench, commit, 1, &["--time", COMMIT_SECONDS]).await?;
    let mut rows = Vec::new();
    let mut wal_bytes_per_row = 0.0;
    for clients in [1, clients] {
        look.batch_execute("TRUNCATE l2").await?;
        look.execute(
            "INSERT INTO l2 (payload) SELECT '{}' FROM generate_series(1, $1::int)",
            &[&ROWS],
        )
        .await?;
        look.batch_execute("VACUUM (ANALYZE) l2").await?;
        lab.admin().batch_execute("CHECKPOINT").await?;
        let wal = lab.wal_bytes().await?;
        // A little less than all: with several clients the last statements find fewer than 100 rows.
        let transactions = (ROWS / 100 - 50) / i32::try_from(clients)?;
        let tps = bench(
            lab,
            &pgbench,
            claim,
            clients,
            &["--transactions", &transactions.to_string()],
        )
        .await?;
        let done: i64 = look
            .query_one("SELECT count(*) FROM l2 WHERE state = 'done'", &[])
            .await?
            .try_get(0)?;
        let done = f64::from(i32::try_from(done)?);
        let statements = f64::from(transactions) * f64::from(clients);
        rows.push(tps * done / statements);
        if clients == 1 {
            let bytes = lab.wal_bytes().await? - wal;
            wal_bytes_per_row = f64::from(i32::try_from(bytes)?) / done;
        }
    }
    drop(look);
    lab.drop_database(DATABASE).await?;
    Ok(Limits {
        commits_per_second,
        rows_per_second: rows.first().copied().unwrap_or_default(),
        rows_per_second_concurrent: rows.last().copied().unwrap_or_default(),
        wal_bytes_per_row,
        flush_us: tokio::task::spawn_blocking(flush_us).await??,
    })
}

/// Transactions a second.
async fn bench(
    lab: &Lab,
    pgbench: &std::path::Path,
    script: &str,
    clients: u32,
    how: &[&str],
) -> anyhow::Result<f64> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), script)?;
    let mut command = tokio::process::Command::new(pgbench);
    command
        .args([
            "--no-vacuum",
            "--protocol",
            "prepared",
            "--client",
            &clients.to_string(),
        ])
        .args(["--jobs", &clients.min(2).to_string()])
        .args(how)
        .arg("--file")
        .arg(file.path())
        .arg(lab.url(DATABASE)?)
        .kill_on_drop(true);
    let output = command
        .output()
        .await
        .context("pgbench cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "pgbench failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let tps = text
        .lines()
        .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.with_context(|| format!("pgbench printed no tps: {text}"))
}

/// Microseconds of a write of 8 kB and its flush: the median of 40.
pub(crate) fn flush_us() -> anyhow::Result<f64> {
    let mut file = tempfile::tempfile()?;
    let block = [b'x'; 8192];
    for _ in 0..8 {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let mut took = Vec::new();
    for at in 0..40_u64 {
        file.seek(SeekFrom::Start(at % 8 * 8192))?;
        let start = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        took.push(start.elapsed());
    }
    took.sort_unstable();
    Ok(took
        .get(took.len() / 2)
        .copied()
        .unwrap_or(Duration::ZERO)
        .as_secs_f64()
        * 1e6)
}
