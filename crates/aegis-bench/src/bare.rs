//! What the same server does bare: the limit that ratios are taken to.

use anyhow::{Context as _, bail};

use crate::setting::Setting;

/// Rows a second that pgbench claims and completes in batches of 100, one connection, prepared.
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
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), include_str!("../sql/limit.sql"))?;
    let mut command = setting.pgbench();
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
