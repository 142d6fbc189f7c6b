//! How much a table is used: counters of the server, with the time over which they counted. Unknown is never zero.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// What was done with a table since the counters began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Which table.
    pub table: Name,
    /// Rows inserted.
    pub inserted: i64,
    /// Rows updated.
    pub updated: i64,
    /// Rows deleted.
    pub deleted: i64,
    /// Scans of the whole table.
    pub sequential_scans: i64,
    /// Scans of its indexes.
    pub index_scans: i64,
    /// Dead rows, estimated.
    pub dead_rows: i64,
    /// Calls of statements whose text has the table's name, by `pg_stat_statements`; `None` when that cannot be read.
    pub calls: Option<i64>,
}

/// Over which time counters counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// When the counters were set to zero.
    pub since: String,
    /// How long ago that was at the reading.
    pub seconds: f64,
}

impl Window {
    /// A count as calls a minute; `None` while less than a minute was counted.
    pub fn a_minute(&self, count: i64) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate for people, not an account"
        )]
        (self.seconds >= 60.0).then(|| count as f64 * 60.0 / self.seconds)
    }
}
