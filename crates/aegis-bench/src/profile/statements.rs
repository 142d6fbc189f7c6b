//! What pg_stat_statements counted.

use crate::setting::Setting;

/// One statement of the engine, by the name that stands in its text; everything else together.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) calls: f64,
    pub(super) rows: f64,
    /// Planning and execution.
    pub(super) us: f64,
    pub(super) wal_bytes: f64,
}

/// False where the server has none, or did not load it.
pub(super) async fn enable(setting: &Setting) -> bool {
    let enable = "CREATE EXTENSION pg_stat_statements; SELECT count(*) FROM pg_stat_statements";
    setting.client().batch_execute(enable).await.is_ok()
}

/// Counts from here on.
pub(super) async fn reset(setting: &Setting) -> anyhow::Result<()> {
    setting
        .client()
        .batch_execute("SELECT pg_stat_statements_reset()")
        .await?;
    Ok(())
}

/// The dearest first.
pub(super) async fn read(setting: &Setting) -> anyhow::Result<Vec<Line>> {
    let rows = setting
        .client()
        .query(
            "SELECT coalesce(substring(s.query FROM '^/\\* ([a-z0-9_/]+) \\*/'), 'everything else'), sum(s.calls)::float8, sum(s.rows)::float8,
                1000 * sum(s.total_exec_time + s.total_plan_time), sum(s.wal_bytes)::float8
             FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
             WHERE r.rolname IN ('aegis_engine', 'aegis_lease')
             GROUP BY 1 ORDER BY 4 DESC",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Line {
                name: row.try_get(0)?,
                calls: row.try_get(1)?,
                rows: row.try_get(2)?,
                us: row.try_get(3)?,
                wal_bytes: row.try_get(4)?,
            })
        })
        .collect()
}
