//! What pg_walinspect finds in the WAL of a phase.

use crate::setting::Setting;

/// One type of record.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) count: f64,
    pub(super) bytes: f64,
    /// The part that is full pages, written for the first change after a checkpoint.
    pub(super) page_bytes: f64,
}

/// False where the server has none.
pub(super) async fn enable(setting: &Setting) -> bool {
    let enable = "CREATE EXTENSION pg_walinspect";
    setting.client().batch_execute(enable).await.is_ok()
}

/// Where the WAL ends now.
pub(super) async fn position(setting: &Setting) -> anyhow::Result<String> {
    let row = setting
        .client()
        .query_one("SELECT pg_current_wal_insert_lsn()::text", &[])
        .await?;
    Ok(row.try_get(0)?)
}

/// The largest first.
pub(super) async fn records(setting: &Setting, from: &str) -> anyhow::Result<Vec<Line>> {
    let rows = setting
        .client()
        .query(
            "SELECT \"resource_manager/record_type\", count::float8, combined_size::float8, fpi_size::float8
             FROM pg_get_wal_stats($1::text::pg_lsn, pg_current_wal_flush_lsn(), true) WHERE count > 0 ORDER BY 3 DESC",
            &[&from],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Line {
                name: row.try_get(0)?,
                count: row.try_get(1)?,
                bytes: row.try_get(2)?,
                page_bytes: row.try_get(3)?,
            })
        })
        .collect()
}
