//! What the same server does bare: the limit that ratios are taken to.

use anyhow::{Context as _, bail};

use crate::setting::Setting;

/// Rows a second that are claimed and completed bare, in batches of 100, on one connection, prepared.
pub(crate) async fn limit_rows_per_second(setting: &Setting, rows: usize) -> anyhow::Result<f64> {
    setting
        .client()
        .batch_execute(
            "DROP TABLE IF EXISTS bench.l2;
             CREATE TABLE bench.l2 (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL DEFAULT 'ready',
                 payload jsonb NOT NULL, done_at timestamptz);
             CREATE INDEX l2_ready ON bench.l2 (id) WHERE state = 'ready';",
        )
        .await?;
    setting
        .client()
        .execute("INSERT INTO bench.l2 (payload) SELECT '{\"n\": 1, \"order\": \"abcdefgh\"}' FROM generate_series(1, $1::int)", &[&i32::try_from(rows)?])
        .await?;
    setting
        .client()
        .batch_execute("VACUUM (ANALYZE) bench.l2")
        .await?;
    setting.client().batch_execute("CHECKPOINT").await?;
    match setting.pgbench() {
        Some(command) => by_pgbench(command, rows).await,
        None => by_own_loop(setting, rows).await,
    }
}

/// Who runs the limit script here: pgbench, or a loop of this program's where the server's programs came without it.
pub(crate) fn limit_by(setting: &Setting) -> &'static str {
    if setting.pgbench().is_some() {
        "pgbench"
    } else {
        "own loop"
    }
}

const SCRIPT: &str = include_str!("../sql/limit.sql");

/// The same on one connection of this program's, prepared. It spends a little more between two statements than pgbench does.
#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
async fn by_own_loop(setting: &Setting, rows: usize) -> anyhow::Result<f64> {
    let client = setting.bare().await?;
    let statement = client
        .prepare(SCRIPT.trim_end().trim_end_matches(';'))
        .await?;
    let begin = std::time::Instant::now();
    for _ in 0..rows / 100 {
        client.execute(&statement, &[]).await?;
    }
    Ok((rows / 100 * 100) as f64 / begin.elapsed().as_secs_f64())
}

async fn by_pgbench(mut command: std::process::Command, rows: usize) -> anyhow::Result<f64> {
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), SCRIPT)?;
    command
        .args([
            "--no-vacuum",
            "--client",
            "1",
            "--jobs",
            "1",
            "--protocol",
            "prepared",
            "--transactions",
            &(rows / 100).to_string(),
            "--file",
        ])
        .arg(script.path());
    let output = tokio::task::spawn_blocking(move || command.output())
        .await?
        .context("pgbench cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!(
            "pgbench failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let tps: f64 = text
        .lines()
        .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok())
        .with_context(|| format!("pgbench printed no tps: {text}"))?;
    Ok(tps * 100.0)
}
