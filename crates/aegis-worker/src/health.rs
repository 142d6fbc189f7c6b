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

#[cfg(test)]
mod tests {
    //! A worker that was built and never started, whose parts are said to move or not.

    use aegis_store::{Config, Store};

    use super::*;
    use crate::context::TaskContext;
    use crate::handler::handler_fn;
    use crate::incarnation::Incarnation;
    use crate::self_fence::boot_ns;
    use crate::worker::Worker;

    const TTL: Duration = Duration::from_secs(30);
    const STUCK: Duration = Duration::from_mins(1);

    fn probed() -> Probed {
        let config = Config::from_url("postgresql://nobody@127.0.0.1:1/none").unwrap();
        let store = Store::connect_unverified(config).unwrap();
        let handler = handler_fn("any", |_: TaskContext, (): ()| async { Ok(()) });
        let worker = Worker::builder(store)
            .handler(handler)
            .lease_ttl(TTL)
            .stuck_after(STUCK)
            .build()
            .unwrap();
        Probed::new(&worker.shared)
    }

    fn why(health: Health) -> String {
        match health {
            Health::Good(_) => String::new(),
            Health::Bad(why) => why,
        }
    }

    #[tokio::test]
    async fn te_31_rl_33_a_worker_that_renews_and_claims_nothing_is_not_live() {
        let probed = probed();
        let pulse = &probed.handle.shared.pulse;
        pulse.renewal.moved();
        pulse.claimer.moved_before(TTL);
        assert_eq!(
            why(probed.live()),
            "",
            "it may wait for an answer that long"
        );
        pulse
            .claimer
            .moved_before(TTL + STUCK + Duration::from_secs(1));
        assert!(why(probed.live()).contains("claims nothing"));
    }

    #[tokio::test]
    async fn what_has_to_move_and_does_not_is_named() {
        let probed = probed();
        let pulse = &probed.handle.shared.pulse;
        assert_eq!(why(probed.live()), "", "nothing runs yet, and nothing need");
        pulse.renewal.moved_before(TTL + Duration::from_secs(1));
        assert!(why(probed.live()).starts_with("the renewal thread has not moved"));
        pulse.renewal.ended();
        assert_eq!(
            why(probed.live()),
            "",
            "between two incarnations nothing renews"
        );
        pulse.set_runtime_still(STUCK / 2 + Duration::from_secs(1));
        assert!(why(probed.live()).contains("has run nothing for 31.0 s"));
        pulse.set_runtime_still(Duration::ZERO);
        pulse.give_up();
        assert!(why(probed.live()).contains("the lease was given up"));
    }

    #[tokio::test]
    async fn readiness_says_what_is_missing() {
        let probed = probed();
        let shared = &probed.handle.shared;
        assert!(why(probed.ready()).contains("not registered"));
        let id = uuid::Uuid::from_u128(1);
        let fresh = Arc::new(Incarnation::new(id, boot_ns(), TTL));
        shared.set_incarnation(&fresh);
        assert!(why(probed.ready()).contains("aegis db adopt"));
        shared.gate.set(GateState::Accepting);
        assert_eq!(why(probed.ready()), "");
        let old = Incarnation::new(id, boot_ns() - 40_000_000_000, TTL);
        shared.set_incarnation(&Arc::new(old));
        assert!(why(probed.ready()).contains("no renewal"));
        fresh.fence.lose();
        shared.set_incarnation(&fresh);
        assert!(why(probed.ready()).contains("lost"));
        shared.drain.cancel();
        assert!(why(probed.ready()).contains("asked to drain"));
        shared.gate.set(GateState::Draining);
        assert!(why(probed.ready()).contains("drains"));
    }
}
