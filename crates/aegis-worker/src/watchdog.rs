//! Watches the worker from outside of its runtime: signals, a runtime that stands still, slots that never come back, a drain
//! that does not end in time.
//!
//! Invariants: a thread and a runtime of its own, so that handlers which block every other thread can neither keep the lease
//! for ever nor hide a signal; standing still is counted in the watchdog's own short naps, so a process that was frozen as a
//! whole, or a machine that slept, is not taken for one; the process is ended only where the worker owns it
//! ([`Worker::run_until_signal`](crate::Worker::run_until_signal)).
//!
//! Never: wait for anything of the runtime that it watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::cancel::CancelReason;
use crate::error::WorkerError;
use crate::exit::Exit;
use crate::gate::GateState;
use crate::shared::{Shared, WorkerHandle};
use crate::signals::Signals;
use crate::worker::Event;

/// Longest time between two looks.
const NAP_MAX: Duration = Duration::from_millis(250);
/// After a verdict the process has so long to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A running watchdog; stopped when it is dropped.
pub(crate) struct Watchdog {
    stop: CancellationToken,
    given_up: oneshot::Receiver<()>,
}

impl Watchdog {
    /// Starts watching the runtime that this is called on. `owns_process`: listen to signals, and end the process when
    /// nothing else does.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        events: mpsc::UnboundedSender<Event>,
        owns_process: bool,
    ) -> Result<Self, WorkerError> {
        let failed = |source: std::io::Error| WorkerError::Start {
            what: "watchdog",
            source: Box::new(source),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let signals = {
            let _inside = runtime.enter();
            owns_process.then(Signals::listen).transpose()?
        };
        let stop = CancellationToken::new();
        let (tell, given_up) = oneshot::channel();
        let watching = Watching {
            handle: WorkerHandle {
                shared: Arc::clone(shared),
            },
            watched: Handle::current(),
            events,
            tell: Some(tell),
            answered: Arc::new(AtomicBool::new(true)),
            still: Duration::ZERO,
            looked: Instant::now(),
            told_stuck: false,
            deadline: None,
            owns_process,
        };
        let stopped = stop.clone();
        std::thread::Builder::new()
            .name("aegis-watchdog".to_owned())
            .spawn(move || {
                let span = watching.handle.shared.span.clone();
                runtime.block_on(watching.run(signals, stopped).instrument(span));
            })
            .map_err(failed)?;
        Ok(Self { stop, given_up })
    }

    /// Ready when the runtime was given up; never otherwise.
    pub(crate) async fn gives_up(&mut self) {
        if (&mut self.given_up).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Watching {
    handle: WorkerHandle,
    /// The runtime of the executions.
    watched: Handle,
    events: mpsc::UnboundedSender<Event>,
    tell: Option<oneshot::Sender<()>>,
    /// The last probe was run by the watched runtime.
    answered: Arc<AtomicBool>,
    /// How long the current probe has waited.
    still: Duration,
    looked: Instant,
    told_stuck: bool,
    /// When the process is ended, and with which code.
    deadline: Option<(Instant, Exit)>,
    owns_process: bool,
}

impl Watching {
    async fn run(mut self, mut signals: Option<Signals>, stop: CancellationToken) {
        let nap =
            (self.handle.shared.options.stuck_after / 8).clamp(Duration::from_millis(5), NAP_MAX);
        let mut heard = 0_u32;
        loop {
            let signal = async {
                match &mut signals {
                    Some(signals) => signals.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = signal => {
                    heard = heard.saturating_add(1);
                    self.signalled(heard);
                }
                () = tokio::time::sleep(nap) => {}
            }
            self.look_at_runtime(nap);
            self.look_at_slots();
            self.look_at_drain();
            self.end_if_over();
        }
    }

    /// The first one drains, the second one goes straight to the cancel phase.
    fn signalled(&mut self, heard: u32) {
        let budgets = self.handle.shared.options.budgets;
        match heard {
            1 => {
                tracing::info!("a signal asks for a drain");
                self.handle.drain();
            }
            2 => {
                tracing::warn!("a second signal asks to stop now");
                self.handle.cancel_now();
                let rest = budgets.cancel_and_save + usable(budgets.exit_margin);
                self.end_after(rest, Exit::LeftToExpiry { tasks: 0 });
            }
            _ => tracing::warn!("another signal changes nothing: the worker is ending"),
        }
    }

    /// Puts a probe into the watched runtime's queue, and counts how long it lies there.
    fn look_at_runtime(&mut self, nap: Duration) {
        let shared = &self.handle.shared;
        let passed = counted(self.looked.elapsed(), nap);
        self.looked = Instant::now();
        if self.answered.swap(false, Ordering::SeqCst) {
            self.still = Duration::ZERO;
            let answered = Arc::clone(&self.answered);
            self.watched
                .spawn(async move { answered.store(true, Ordering::SeqCst) });
        } else {
            self.still += passed;
        }
        shared.pulse.set_runtime_still(self.still);
        if self.still <= shared.options.stuck_after || shared.pulse.is_given_up() {
            return;
        }
        let executing = shared.executor.load().0;
        tracing::error!(
            still_ms = u64::try_from(self.still.as_millis()).unwrap_or(u64::MAX),
            executing,
            "handlers block every thread of the runtime; its lease is renewed no more, and the worker ends. Blocking work belongs on spawn_blocking"
        );
        shared.pulse.give_up();
        shared.gate.set(GateState::Draining);
        if let Some(incarnation) = shared.incarnation() {
            incarnation.fence.lose();
            shared.counters.self_fenced.add(1);
        }
        for execution in shared.gate.in_flight() {
            execution.canceller.cancel(CancelReason::LeaseLost);
        }
        shared.drain.cancel();
        shared.ended.cancel();
        if let Some(tell) = self.tell.take() {
            // Nobody listens when the worker's own future is on the blocked runtime, too.
            tell.send(()).ok();
        }
        self.end_after(LAST_WORDS, Exit::RuntimeStuck);
    }

    /// Is every slot held by an execution that was asked to stop and did not?
    fn look_at_slots(&mut self) {
        let shared = &self.handle.shared;
        let ends_otherwise = shared.gate.state() == GateState::Draining
            || shared.incarnation().is_none_or(|now| now.fence.is_lost());
        if self.told_stuck
            || ends_otherwise
            || !shared.executor.is_stuck(shared, shared.options.kill_after)
        {
            return;
        }
        self.told_stuck = true;
        tracing::error!("every slot is taken by an execution that does not stop; the worker ends");
        let budgets = shared.options.budgets;
        self.events.send(Event::Stuck).ok();
        self.end_after(
            budgets.stop_acquiring + usable(budgets.exit_margin),
            Exit::Stuck,
        );
    }

    /// A drain has all of its budgets, whoever asked for it, and not more.
    fn look_at_drain(&mut self) {
        let shared = &self.handle.shared;
        if !shared.drain.is_cancelled() || self.deadline.is_some() {
            return;
        }
        let budgets = shared.options.budgets;
        let all = budgets.stop_acquiring
            + budgets.drain
            + budgets.cancel_and_save
            + usable(budgets.exit_margin);
        self.end_after(all, Exit::LeftToExpiry { tasks: 0 });
    }

    /// The earliest deadline stands.
    fn end_after(&mut self, left: Duration, exit: Exit) {
        let at = Instant::now() + left;
        if self.deadline.is_none_or(|(before, _)| at < before) {
            self.deadline = Some((at, exit));
        }
    }

    /// Nobody else can end it: what would return is blocked, or did not return in its time.
    fn end_if_over(&self) {
        let Some((at, exit)) = self.deadline else {
            return;
        };
        if !self.owns_process || Instant::now() < at {
            return;
        }
        let exit = match exit {
            Exit::LeftToExpiry { .. } => Exit::LeftToExpiry {
                tasks: self.handle.shared.gate.count(),
            },
            other => other,
        };
        tracing::error!(code = exit.code(), exit = %exit, "the worker did not end in its time; its process is ended");
        self.handle.shared.tracer.flush(Duration::from_secs(1));
        std::process::exit(exit.code().into());
    }
}

/// How much of the time since the last look counts as watched: frozen or asleep in between says nothing about the runtime.
fn counted(passed: Duration, nap: Duration) -> Duration {
    passed.min(nap * 2)
}

/// Of the exit margin: a tenth stays for the process itself.
fn usable(exit_margin: Duration) -> Duration {
    exit_margin.mul_f64(0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_hour_counts_as_two_naps() {
        let nap = Duration::from_millis(250);
        assert_eq!(counted(Duration::from_hours(1), nap), nap * 2);
        assert_eq!(
            counted(Duration::from_millis(260), nap),
            Duration::from_millis(260)
        );
    }

    #[test]
    fn a_tenth_of_the_margin_stays_for_the_process() {
        assert_eq!(usable(Duration::from_secs(140)), Duration::from_secs(126));
    }
}
