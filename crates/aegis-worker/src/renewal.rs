//! Renewal of the lease: on its own thread, its own runtime, its own connection and its own role.
//!
//! Invariants: neither a busy runtime nor an exhausted pool delays a beat; the lease is moved first, by one statement that
//! does not grow with the number of tasks; what is held is compared by further statements that never cost the lease; what
//! comes back is obeyed at once, from this thread.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use aegis_model::{Held, WorkerState};
use aegis_store::StoreError;
use aegis_store::worker::{Beat, LeaseConn, Order, Renewed};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::cancel::CancelReason;
use crate::incarnation::Incarnation;
use crate::self_fence::{boot_ns, to_ns};
use crate::shared::Shared;
use crate::worker::Event;
use crate::writer::jittered;

/// Compares in a row that found nothing absent before an idle worker stops comparing.
const CALM_COMPARES: u32 = 2;

/// A running renewal. Stopped last.
pub(crate) struct Renewal {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Renewal {
    /// Starts the thread.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        incarnation: &Arc<Incarnation>,
        events: mpsc::UnboundedSender<Event>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = CancellationToken::new();
        let beating = Beating {
            shared: Arc::clone(shared),
            incarnation: Arc::clone(incarnation),
            events,
            beat: 0,
            conn: None,
            fenced: false,
            calm: 0,
            absent: 0,
            acquisitions: 0,
            busy_ns: boot_ns(),
        };
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("aegis-renewal".to_owned())
            .spawn(move || {
                let shared = Arc::clone(&beating.shared);
                shared.pulse.renewal.moved();
                let span = shared.span.clone();
                runtime.block_on(beating.run(stopped).instrument(span));
                shared.pulse.renewal.ended();
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Stops renewing, and returns when no beat is on its way any more.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A beat has its own deadline, so this is short; the join itself must not block a runtime thread.
            tokio::task::spawn_blocking(move || thread.join())
                .await
                .ok();
        }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Beating {
    shared: Arc<Shared>,
    incarnation: Arc<Incarnation>,
    events: mpsc::UnboundedSender<Event>,
    beat: i64,
    conn: Option<LeaseConn>,
    /// The executions of this incarnation were cancelled because eligibility ended.
    fenced: bool,
    /// Compares in a row, while nothing was held or acquired, after which nothing was absent.
    calm: u32,
    /// Running rows that the compare of before the last beat did not name and that are still there.
    absent: i32,
    /// Acquire calls sent by the last beat.
    acquisitions: u64,
    /// When something was held, or an acquire call was sent, for the last time.
    busy_ns: i64,
}

impl Beating {
    async fn run(mut self, stop: CancellationToken) {
        let ttl = self.shared.options.lease_ttl;
        let mut pause = ttl / 4;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.watch(pause) => {}
            }
            if self.shared.pulse.is_given_up() {
                // Whoever holds its tasks does not move: nobody may believe that they are in good hands.
                self.cancel_all();
                return;
            }
            let beating = self.beat(ttl / 6);
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                alive = beating => match alive {
                    Some(true) => pause = jittered(ttl / 4).min(ttl / 4),
                    // Missed: soon again, well before the next beat would be due.
                    Some(false) => pause = jittered(ttl / 20),
                    None => return,
                }
            }
        }
    }

    /// Sleeps, and fences on the way when eligibility ends. Short naps: the timer's clock stops while the machine sleeps.
    async fn watch(&mut self, pause: Duration) {
        let nap = (self.shared.options.lease_ttl / 20).max(Duration::from_millis(5));
        let until = tokio::time::Instant::now() + pause;
        loop {
            self.shared.pulse.renewal.moved();
            if self.shared.pulse.is_given_up() {
                return;
            }
            self.fence_if_over();
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                return;
            }
            let eligible = self.incarnation.fence.left().max(Duration::from_millis(1));
            let eligible = if self.fenced { left } else { eligible };
            tokio::time::sleep(left.min(nap).min(eligible)).await;
        }
    }

    fn fence_if_over(&mut self) {
        if self.fenced || self.incarnation.fence.is_eligible() {
            return;
        }
        self.fenced = true;
        self.shared.counters.self_fenced.add(1);
        tracing::error!(worker = %self.incarnation.id, "eligibility has ended without a renewal; every execution is cancelled");
        self.cancel_all();
    }

    fn cancel_all(&self) {
        for execution in self.shared.gate.in_flight() {
            if execution.claim.held.owner == self.incarnation.id {
                execution.canceller.cancel(CancelReason::LeaseLost);
            }
        }
        self.shared.gate.touch();
    }

    /// One beat. `Some(true)`: applied; `Some(false)`: missed; `None`: the lease is lost.
    async fn beat(&mut self, deadline: Duration) -> Option<bool> {
        let sent_ns = boot_ns();
        // Dropping a late call drops its connection with it, so no half-used one is left.
        let renewed = tokio::time::timeout(deadline, self.renew()).await;
        let state = match renewed {
            Ok(Ok(Renewed::Alive { state, absent })) => {
                self.absent = absent;
                state
            }
            Ok(Ok(Renewed::Lost)) => {
                self.lost();
                return None;
            }
            Ok(Err(error)) => {
                self.missed(&crate::task_error::chain(&error));
                return Some(false);
            }
            Err(_) => {
                self.missed("no answer within the beat's deadline");
                return Some(false);
            }
        };
        self.shared.counters.renewals.add(1);
        if state == WorkerState::Draining {
            self.shared.drain.cancel();
        }
        match tokio::time::timeout(deadline, self.compare(sent_ns)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "what is held could not be compared");
                self.conn = None;
            }
            Err(_) => {
                tracing::warn!("what is held could not be compared in time");
                self.conn = None;
            }
        }
        Some(true)
    }

    async fn renew(&mut self) -> Result<Renewed, StoreError> {
        let conn = match self.conn.take() {
            Some(conn) if !conn.is_closed() => conn,
            _ => LeaseConn::connect(self.shared.store.config()).await?,
        };
        // Above every number that may still be on its way.
        self.beat += 1;
        let (executing, _) = self.shared.executor.load();
        let counts = self.shared.counters.read();
        let beat = Beat {
            number: self.beat,
            executing: i32::try_from(executing).unwrap_or(i32::MAX),
            claim_ticks: i64::try_from(counts.claim_ticks).unwrap_or(i64::MAX),
            progress_ticks: i64::try_from(counts.movements()).unwrap_or(i64::MAX),
        };
        let sent = std::time::Instant::now();
        let renewed = conn.renew(self.incarnation.id, beat).await?;
        self.shared.metrics.renewal_took(sent.elapsed());
        self.conn = Some(conn);
        Ok(renewed)
    }

    /// Tells the database what is held and obeys what it answers.
    async fn compare(&mut self, sent_ns: i64) -> Result<(), StoreError> {
        let held: Vec<Held> = self
            .shared
            .gate
            .in_flight()
            .iter()
            .map(|execution| execution.claim.held)
            .filter(|held| held.owner == self.incarnation.id)
            .collect();
        if self.has_long_been_idle(held.is_empty()) {
            self.believe(sent_ns);
            return Ok(());
        }
        // Whatever ends this early was no compare.
        let calm = std::mem::take(&mut self.calm);
        let Some(conn) = self.conn.take() else {
            return Ok(());
        };
        for (task, epoch, order) in conn.orders(self.incarnation.id, &held).await? {
            let Some(execution) = self.shared.gate.find((task, epoch)) else {
                continue;
            };
            match order {
                Order::Lost => {
                    tracing::warn!(%task, epoch, "a task is not this worker's any more; its execution is cancelled");
                    execution.give_up();
                }
                Order::Cancel(cause) => {
                    execution.canceller.cancel(cause.into());
                }
                Order::Regressed => {
                    execution.give_up();
                    self.events.send(Event::Regressed).ok();
                }
            }
        }
        self.believe(sent_ns);
        let ids: HashSet<_> = held.iter().map(|held| held.task).collect();
        let ids: Vec<_> = ids.into_iter().collect();
        let start_ttl_ms =
            i64::try_from(self.shared.options.start_ttl.as_millis()).unwrap_or(i64::MAX);
        let returned = conn
            .return_absent(self.incarnation.id, &ids, start_ttl_ms)
            .await?;
        self.conn = Some(conn);
        if !returned.is_empty() {
            self.shared.counters.absent_returned.add(returned.len());
            tracing::warn!(
                tasks = returned.len(),
                "claims that this worker does not know went back to their lanes"
            );
        }
        self.calm = calm + 1;
        Ok(())
    }

    /// Only who has heard what it lost may go on believing: a promotion ends claims of a worker whose lease lives.
    fn believe(&mut self, sent_ns: i64) {
        self.incarnation.fence.extend(sent_ns);
        self.fenced = !self.incarnation.fence.is_eligible();
    }

    /// Whatever went missing between this worker and the database is two beats and the start deadline old by then, and was
    /// returned, which the last two compares have seen: an idle worker costs one statement a beat.
    fn has_long_been_idle(&mut self, holds_nothing: bool) -> bool {
        let acquisitions = self.shared.counters.read().acquisitions;
        if !holds_nothing || acquisitions != self.acquisitions {
            self.acquisitions = acquisitions;
            self.busy_ns = boot_ns();
            self.calm = 0;
        }
        if self.absent > 0 {
            self.calm = 0;
        }
        let options = &self.shared.options;
        let long_ago = boot_ns() - self.busy_ns > to_ns(options.start_ttl + options.lease_ttl);
        long_ago && self.calm >= CALM_COMPARES
    }

    fn missed(&mut self, why: &str) {
        self.conn = None;
        self.shared.counters.renewals_missed.add(1);
        tracing::warn!(worker = %self.incarnation.id, left = ?self.incarnation.fence.left(), why, "a renewal was missed");
    }

    fn lost(&mut self) {
        self.incarnation.fence.lose();
        self.shared.counters.leases_lost.add(1);
        tracing::error!(worker = %self.incarnation.id, "the lease is lost; every execution is cancelled");
        self.cancel_all();
        self.events.send(Event::LeaseLost(self.incarnation.id)).ok();
    }
}
