//! The database's clock, moved under it: an hour forward, back, and forward again, with small steps between.
//!
//! Invariants: the file of the clock stands in the data folder, so a standby has its primary's clock; the clock ends ahead of
//! every moment that was written down before, or a lease and a retry of then would be hours away.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aegis_devpg::Server;

use super::breaking::Drill;
use super::stage::Stage;
use crate::error::DrillError;
use crate::facts;
use crate::faketime;
use crate::history::Event;
use crate::worker::LEASE;

/// Looked for in the data folder, where the server works.
pub(super) const FILE: &str = "drill.clock";
const HOUR_MS: i64 = 3_600_000;
/// Less than what the checker forgives on a busy machine.
const STEP_MS: i64 = 200;
/// A clock that was moved is so near to where it was put.
const NEAR_MS: i64 = 60_000;

/// How far the database's clock is off, and what the database said of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clocks {
    offset_ms: i64,
    /// Jumps that the database was asked about, and saw.
    pub(super) forward: u64,
    pub(super) back: u64,
    pub(super) steps: u64,
}

/// Sets the clock of a server, where there is one.
pub(super) fn set(server: &Server, there: bool, offset_ms: i64) -> Result<(), DrillError> {
    if there {
        faketime::set(&server.data_dir().join(FILE), offset_ms)?;
    }
    Ok(())
}

impl Drill {
    /// The whole course: what comes after an hour ahead is taken over in a mass; what was leased there is leased for an hour.
    pub(super) async fn move_database_clock(
        &mut self,
        stage: &mut Stage,
    ) -> Result<bool, DrillError> {
        if stage.faketime.is_none() {
            return Ok(false);
        }
        let began = stage.clocks.offset_ms;
        for offset_ms in [began + HOUR_MS, began, began + HOUR_MS] {
            let forward = offset_ms > stage.clocks.offset_ms;
            stage.set_database_clock(offset_ms)?;
            let saw = stage.database_clock_is_at(offset_ms).await;
            if forward {
                stage.clocks.forward += saw;
            } else {
                stage.clocks.back += saw;
            }
            for step in [STEP_MS, 0, -STEP_MS, 0] {
                self.go_on_for(stage, LEASE / 3).await?;
                stage.set_database_clock(offset_ms + step)?;
                stage.clocks.steps += 1;
            }
        }
        Ok(true)
    }
}

impl Stage {
    fn set_database_clock(&mut self, offset_ms: i64) -> Result<(), DrillError> {
        let moved_ms = offset_ms - self.clocks.offset_ms;
        set(&self.server, true, offset_ms)?;
        self.clocks.offset_ms = offset_ms;
        self.history.tell(Event::DatabaseClock { moved_ms })
    }

    /// 1 when the database says that its clock is there. One that is away says nothing.
    async fn database_clock_is_at(&self, offset_ms: i64) -> u64 {
        let Ok(admin) = facts::connect(&self.admin_url).await else {
            return 0;
        };
        let Ok(database_ms) = facts::clock_ms(&admin).await else {
            return 0;
        };
        let here = SystemTime::now().duration_since(UNIX_EPOCH);
        let here_ms = here.map_or(Duration::ZERO, |since| since).as_millis();
        let here_ms = i64::try_from(here_ms).unwrap_or_default();
        u64::from((database_ms - here_ms - offset_ms).abs() < NEAR_MS)
    }
}
