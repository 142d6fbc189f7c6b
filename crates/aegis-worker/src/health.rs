//! What a worker answers at its address: does it move, does it take work, what has it measured.
//!
//! Invariants: answered from memory by a thread of its own, whatever the rest of the process does. `/livez` asks the platform
//! to restart the process, so it stays good during a drain, without a database, and after a lost lease: a restart mends
//! none of these. It is bad when something that has to move does not.

use std::sync::Arc;
use std::time::Duration;

use aegis_telemetry::prometheus_client::registry::Registry;
use aegis_telemetry::{Health, Probes, encode};

use crate::gate::GateState;
use crate::metrics::Metrics;
use crate::shared::{Shared, WorkerHandle, WorkerPhase};

/// Answers for one worker.
pub(crate) struct Probed {
    handle: WorkerHandle,
    registry: Registry,
}

impl Probed {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            handle: WorkerHandle {
                shared: Arc::clone(shared),
            },
            registry: Metrics::registry(shared),
        }
    }
}

impl Probes for Probed {
    fn live(&self) -> Health {
        let shared = &self.handle.shared;
        let stuck_after = shared.options.stuck_after;
        let pulse = &shared.pulse;
        if pulse.is_given_up() {
            return Health::Bad(
                "handlers block every thread of the runtime; the lease was given up and the worker ends".to_owned(),
            );
        }
        let runtime = pulse.runtime_still();
        if runtime > stuck_after / 2 {
            return Health::Bad(format!(
                "the runtime of the handlers has run nothing for {}; after {} the worker ends. Blocking work belongs on spawn_blocking",
                shown(runtime),
                shown(stuck_after)
            ));
        }
        // A beat has deadlines of a third of the lease together.
        let renewal_max = shared.options.lease_ttl.max(Duration::from_secs(5));
        if let Some(still) = pulse.renewal.still().filter(|still| *still > renewal_max) {
            return Health::Bad(format!(
                "the renewal thread has not moved for {}",
                shown(still)
            ));
        }
        // The loop may wait for an answer as long as the lease lasts, and for the database's deadlines before and after.
        let claimer_max = shared.options.lease_ttl + stuck_after;
        if let Some(still) = pulse.claimer.still().filter(|still| *still > claimer_max) {
            return Health::Bad(format!(
                "the claim loop has not turned for {}: the worker lives and claims nothing",
                shown(still)
            ));
        }
        Health::Good("it moves".to_owned())
    }

    fn ready(&self) -> Health {
        let shared = &self.handle.shared;
        let snapshot = self.handle.snapshot();
        let incarnation = shared.incarnation();
        let lost = incarnation.is_some_and(|now| now.fence.is_lost());
        match snapshot.phase {
            WorkerPhase::Starting if shared.drain.is_cancelled() => {
                Health::Bad("it was asked to end before it was registered".to_owned())
            }
            WorkerPhase::Starting => Health::Bad("it is not registered yet".to_owned()),
            WorkerPhase::Ended => Health::Bad("it has ended".to_owned()),
            WorkerPhase::Draining => Health::Bad(format!(
                "it drains; {} of its tasks are in flight",
                snapshot.in_flight
            )),
            _ if shared.drain.is_cancelled() => Health::Bad("it was asked to drain".to_owned()),
            _ if lost => Health::Bad(
                "its lease is lost; it registers anew when what it executed has stopped".to_owned(),
            ),
            _ if !snapshot.eligible => Health::Bad(
                "no renewal of its lease was applied in time: the database cannot be reached, or does not answer"
                    .to_owned(),
            ),
            WorkerPhase::Held => Health::Bad(
                "it claims nothing: the database has to be adopted (`aegis db adopt`), or it registers anew".to_owned(),
            ),
            WorkerPhase::Accepting if shared.gate.state() == GateState::Accepting => {
                Health::Good("it claims".to_owned())
            }
            // It moved between two looks.
            WorkerPhase::Accepting => Health::Bad("it has just stopped claiming".to_owned()),
        }
    }

    fn metrics(&self, accept: &str) -> (String, &'static str) {
        encode(&self.registry, accept).unwrap_or_else(|error| {
            tracing::error!(error = %error, "metrics cannot be printed");
            (String::new(), "text/plain")
        })
    }
}

fn shown(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
