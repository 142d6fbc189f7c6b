//! One session of a runner: batches until the end, with a look at what people and the throttle say before each.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_postgres::Client;

use super::batch::{Batch, Place, Walk};
use super::begin::{Begun, Taken, begin, lock, old_side_counts, trigger};
use super::error::Fault;
use super::progress::Progress;
use super::size::Size;
use super::{AtPause, JobError, Ports, Report, Spec, Told, Who};
use crate::key::KeyValue;
use crate::throttle::{Limits, Sampler};
use crate::{Pause, STANDSTILL};

/// How often a held-back or paused job looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often a job that moves asks the throttle, and tells.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the same reason of a wait is told.
const TELL_AGAIN: Duration = Duration::from_secs(10);
/// How often it looks whether the trigger still fires.
const TRIGGER_EVERY: Duration = Duration::from_secs(5);
/// How often a row that is locked, or too slow, is tried alone.
const ALONE_TRIES: u32 = 30;
/// How often a locked table is waited for, 5 s apart at most.
const TABLE_TRIES: u32 = 720;
const BUSY_PAUSE: Duration = Duration::from_millis(100);
const BUSY_PAUSE_MAX: Duration = Duration::from_secs(5);
/// After so many rows that could not be moved it is not the rows.
const FAILED_ROWS_MAX: u32 = 1000;

/// Rows that are read at once when failed ones are tried again.
const FAILURES_AT_ONCE: i64 = 10_000;

struct Running<'a, 'p> {
    client: Client,
    ports: Ports<'p>,
    who: &'a Who,
    walk: Walk<'a>,
    size: Size,
    sampler: Sampler,
    limits: Limits,
    looked: Option<Instant>,
    trigger_seen: Instant,
    told: Told<'a>,
    told_at: Option<Instant>,
    /// What was told last of why it does not move.
    waits_for: Option<String>,
    failed: u32,
}

/// Runs a job in a session of its own. `committed` counts its batches.
pub(crate) async fn run(
    ports: Ports<'_>,
    spec: &Spec,
    who: &Who,
    told: Told<'_>,
    committed: &mut u64,
) -> Result<Report, JobError> {
    let mut client = (ports.connect)().await.map_err(JobError::Connect)?;
    client.batch_execute(&format!("SET {STANDSTILL}")).await?;
    lock(&client, &spec.change, ports.wait).await?;
    let taken = match begin(&mut client, spec, who, ports.at_pause).await? {
        Begun::Done(report) => {
            unlock(&client, spec).await;
            return Ok(report);
        }
        Begun::Taken(taken) => *taken,
    };
    let Taken {
        walk,
        batch_rows,
        open,
        gone,
    } = taken;
    let limits = (ports.limits)().map_err(JobError::Precondition)?;
    let mut running = Running {
        client,
        ports,
        who,
        size: Size::new(spec.batch, batch_rows),
        walk,
        sampler: Sampler::default(),
        limits,
        looked: None,
        trigger_seen: Instant::now(),
        told,
        told_at: None,
        waits_for: None,
        failed: 0,
    };
    let ended = running.whole(open, &gone, committed).await;
    if !ended.as_ref().is_err_and(JobError::is_lost) {
        unlock(&running.client, spec).await;
    }
    ended
}

/// What goes wrong here hides nothing: the lock goes with the session.
async fn unlock(client: &Client, spec: &Spec) {
    client
        .query_one(include_str!("../../sql/job/unlock.sql"), &[&spec.change])
        .await
        .ok();
}

impl Running<'_, '_> {
    async fn whole(
        &mut self,
        open: Vec<(Place, super::leaf::Leaf)>,
        gone: &[String],
        committed: &mut u64,
    ) -> Result<Report, JobError> {
        for leaf in gone {
            self.client
                .execute(
                    include_str!("../../sql/job/gone.sql"),
                    &[&self.walk.spec.change, &self.walk.epoch, leaf],
                )
                .await?;
            (self.told)(
                &json!({ "event": "backfill_leaf", "change": self.walk.spec.change, "leaf": leaf, "state": "gone" }),
            );
        }
        self.failures_again(committed).await?;
        for (mut place, leaf) in open {
            while self.one(&mut place, leaf.oid, committed).await? {}
            (self.told)(
                &json!({ "event": "backfill_leaf", "change": self.walk.spec.change, "leaf": place.leaf, "state": "done" }),
            );
        }
        self.finish(None).await
    }

    /// One batch, with all that is waited for before it. False: the leaf is done.
    async fn one(
        &mut self,
        place: &mut Place,
        table: u32,
        committed: &mut u64,
    ) -> Result<bool, JobError> {
        let (mut tries, mut pause) = (0, Pause::growing(BUSY_PAUSE, BUSY_PAUSE_MAX));
        loop {
            self.may_go(table).await?;
            let rows = self.size.rows();
            let batch = self
                .walk
                .batch(&mut self.client, place, rows, self.size.kept())
                .await?;
            match batch {
                Batch::Done {
                    rows,
                    cursor,
                    is_last,
                    took_ms,
                    ..
                } => {
                    *committed += 1;
                    self.waits_for = None;
                    self.size.went(rows, took_ms);
                    place.cursor = cursor;
                    self.tell_progress(place, false).await?;
                    return Ok(!is_last);
                }
                // People have moved it, or another runner has it: the next look says which.
                Batch::Fenced => self.still_mine().await?,
                Batch::TableLocked { said } => {
                    tries += 1;
                    if tries >= TABLE_TRIES {
                        return self.refused(&format!("{}: {said}", place.leaf)).await;
                    }
                    self.waits(&format!("the table is locked: {said}"), pause.take())
                        .await?;
                }
                Batch::Refused {
                    rows,
                    last,
                    fault,
                    sqlstate,
                    said,
                } => {
                    tries += 1;
                    let alone = match fault {
                        Fault::Statement => {
                            return self
                                .refused(&format!("{}: {said} ({sqlstate})", place.leaf))
                                .await;
                        }
                        Fault::Row | Fault::Lost => self.size.refused(rows),
                        Fault::Resources => {
                            if tries >= ALONE_TRIES {
                                return self
                                    .refused(&format!("{}: {said} ({sqlstate})", place.leaf))
                                    .await;
                            }
                            self.waits(&said, pause.take()).await?;
                            false
                        }
                        Fault::Lock | Fault::Time => {
                            let is_spent = rows <= 1 && tries >= ALONE_TRIES;
                            if rows > 1 {
                                tries = 0;
                            }
                            self.size.shrink(rows);
                            if !is_spent {
                                self.waits(&said, pause.take()).await?;
                            }
                            is_spent
                        }
                    };
                    if alone {
                        self.skip(place, last, &sqlstate, &said).await?;
                        *committed += 1;
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Goes past a row that cannot be moved, and keeps it.
    async fn skip(
        &mut self,
        place: &mut Place,
        key: KeyValue,
        sqlstate: &str,
        said: &str,
    ) -> Result<(), JobError> {
        let kept = self.size.kept();
        let skipped = self
            .walk
            .skip(&mut self.client, place, &key, sqlstate, said, kept)
            .await?;
        if !skipped {
            return self.still_mine().await;
        }
        (self.told)(
            &json!({ "event": "backfill_row_failed", "change": self.walk.spec.change, "leaf": place.leaf, "key": key, "sqlstate": sqlstate, "said": said }),
        );
        place.cursor = Some(key);
        self.failed += 1;
        if self.failed >= FAILED_ROWS_MAX {
            self.refused(&format!(
                "{FAILED_ROWS_MAX} rows could not be moved, the last one with: {said} ({sqlstate})"
            ))
            .await?;
        }
        Ok(())
    }

    /// Rows that an earlier run could not move, each alone.
    async fn failures_again(&mut self, committed: &mut u64) -> Result<(), JobError> {
        let rows = self
            .client
            .query(
                include_str!("../../sql/job/failures.sql"),
                &[&self.walk.spec.change, &FAILURES_AT_ONCE],
            )
            .await?;
        for row in &rows {
            let key: KeyValue = row.try_get("key")?;
            let place = Place {
                leaf: row.try_get("leaf")?,
                upper: key.clone(),
                cursor: row.try_get("after_key")?,
            };
            loop {
                self.may_go(0).await?;
                match self.walk.again(&mut self.client, &place, &key).await? {
                    Batch::Done { .. } => *committed += 1,
                    Batch::Fenced => {
                        self.still_mine().await?;
                        continue;
                    }
                    Batch::TableLocked { .. } => {}
                    Batch::Refused { sqlstate, said, .. } => {
                        self.client
                            .execute(
                                include_str!("../../sql/job/attempted.sql"),
                                &[
                                    &self.walk.spec.change,
                                    &self.walk.epoch,
                                    &place.leaf,
                                    &key,
                                    &sqlstate,
                                    &said,
                                ],
                            )
                            .await?;
                    }
                }
                break;
            }
        }
        Ok(())
    }

    /// Returns when the job may go on: it is running, the trigger fires, no source holds it back.
    async fn may_go(&mut self, table: u32) -> Result<(), JobError> {
        loop {
            let paused = self.state().await?;
            if let Some(paused) = paused {
                self.waits(&paused, LOOK_AGAIN).await?;
                continue;
            }
            if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
                return Ok(());
            }
            if self.trigger_seen.elapsed() >= TRIGGER_EVERY {
                trigger(&self.client, self.walk.spec).await?;
                self.trigger_seen = Instant::now();
            }
            match (self.ports.limits)() {
                Ok(limits) => self.limits = limits,
                Err(error) => {
                    tracing::warn!(%error, "the throttle could not be read again; what it was still holds");
                }
            }
            let look = self
                .sampler
                .look(
                    &mut self.client,
                    &self.limits,
                    table,
                    &self.walk.spec.schema,
                    self.walk.spec.run_as.as_deref(),
                )
                .await?;
            for unknown in &look.unknown {
                tracing::warn!(%unknown, "a throttle source gives no answer, and on_unknown says to go on");
            }
            let Some(why) = look.wait else {
                self.looked = Some(Instant::now());
                return Ok(());
            };
            self.looked = None;
            self.waits(&why, LOOK_AGAIN).await?;
        }
    }

    /// Why it is paused; an error when it is not this runner's any more.
    async fn state(&mut self) -> Result<Option<String>, JobError> {
        let change = &self.walk.spec.change;
        let row = self
            .client
            .query_opt(include_str!("../../sql/job/look.sql"), &[change])
            .await?;
        let fenced = || JobError::Fenced {
            change: change.clone(),
            epoch: self.walk.epoch,
        };
        let row = row.ok_or_else(fenced)?;
        if row.try_get::<_, i64>("epoch")? != self.walk.epoch {
            // A move of the switch takes it away too.
            old_side_counts(&self.client, change).await?;
            return Err(fenced());
        }
        let (state, by, reason): (String, String, String) = (
            row.try_get("state")?,
            row.try_get("state_by")?,
            row.try_get("state_reason")?,
        );
        match state.as_str() {
            "running" => Ok(None),
            "paused" if self.ports.at_pause == AtPause::Ends => Err(JobError::Paused {
                change: change.clone(),
                by,
                reason,
            }),
            "paused" => Ok(Some(format!(
                "paused by {by} ({reason}); `aegis migrate backfill resume {change}` goes on"
            ))),
            "cancelled" => Err(JobError::Cancelled {
                change: change.clone(),
                by,
                reason,
            }),
            _ => Err(fenced()),
        }
    }

    /// After a fence that did not hold: paused is waited for by the caller, everything else is an error.
    async fn still_mine(&mut self) -> Result<(), JobError> {
        if self.state().await?.is_some() {
            return Ok(());
        }
        // Running, and this runner's: only the cursor is not where it was.
        Err(JobError::Fenced {
            change: self.walk.spec.change.clone(),
            epoch: self.walk.epoch,
        })
    }

    /// Says why it does not move, and waits.
    async fn waits(&mut self, why: &str, pause: Duration) -> Result<(), JobError> {
        let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        self.client
            .execute(
                include_str!("../../sql/job/waits.sql"),
                &[&self.walk.spec.change, &self.walk.epoch, &why, &pause_ms],
            )
            .await?;
        let is_news = self.waits_for.as_deref() != Some(why);
        if is_news || self.told_at.is_none_or(|at| at.elapsed() >= TELL_AGAIN) {
            self.told_at = Some(Instant::now());
            self.waits_for = Some(why.to_owned());
            (self.told)(
                &json!({ "event": "backfill_waits", "change": self.walk.spec.change, "why": why }),
            );
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    async fn tell_progress(&mut self, place: &Place, is_done: bool) -> Result<(), JobError> {
        if !is_done && self.told_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        self.told_at = Some(Instant::now());
        let row = self
            .client
            .query_opt(
                include_str!("../../sql/job/progress.sql"),
                &[&self.walk.spec.change],
            )
            .await?;
        let Some(row) = row else { return Ok(()) };
        let progress = Progress::of(
            row.try_get("rows_seen")?,
            row.try_get("rows_changed")?,
            row.try_get("rows_estimated")?,
            row.try_get("worked_ms")?,
            row.try_get("waited_ms")?,
            is_done,
        );
        (self.told)(
            &json!({ "event": "backfill", "change": self.walk.spec.change, "leaf": place.leaf, "batch_rows": self.size.kept(), "progress": progress, "words": progress.words() }),
        );
        Ok(())
    }

    /// Ends the job as failed, with what was in the way.
    async fn refused<T>(&mut self, said: &str) -> Result<T, JobError> {
        self.finish(Some(said)).await?;
        Err(JobError::Failed {
            change: self.walk.spec.change.clone(),
            said: said.to_owned(),
        })
    }

    /// The end: done, or failed where rows are left or `said` tells why.
    async fn finish(&mut self, said: Option<&str>) -> Result<Report, JobError> {
        loop {
            let change = &self.walk.spec.change;
            let row = self
                .client
                .query_opt(
                    include_str!("../../sql/job/finish.sql"),
                    &[change, &self.walk.epoch, &said],
                )
                .await?;
            let Some(row) = row else {
                self.still_mine().await?;
                self.may_go(0).await?;
                continue;
            };
            let report = Report {
                was_done: false,
                rows_seen: row.try_get("rows_seen")?,
                rows_changed: row.try_get("rows_changed")?,
            };
            let state: String = row.try_get("state")?;
            let error: Option<String> = row.try_get("error")?;
            (self.told)(
                &json!({ "event": "backfill_ended", "change": change, "state": state, "report": report, "error": error, "by": self.who.by }),
            );
            if state == "done" {
                return Ok(report);
            }
            return Err(JobError::Failed {
                change: change.clone(),
                said: error.unwrap_or_default(),
            });
        }
    }
}
