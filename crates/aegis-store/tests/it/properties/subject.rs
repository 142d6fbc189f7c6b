//! The real store, moved by the same commands, and compared with the model after each.

use aegis_model::{Cause, Class, Held, Outcome, Resolution, State};
use aegis_store::guarded::{
    Completion, Dispatched, OperationResult, ReadBack, Release, SaveTo, StepValue,
};
use aegis_store::overrides::Decided;
use aegis_store::worker::{Beat, LeaseConn, Renewed};
use aegis_store::{Claim, RetryPolicy};
use uuid::Uuid;

use super::model::{Came, MAX_CRASHES, MAX_FAILURES, Model};
use super::moves::{Lost, Move, Verb};
use crate::support::{Bed, Worker, dispatch, failure, release};

const HOUR_MS: i64 = 3_600_000;

/// What one execution holds: its claim with the newest rev that it has heard of.
struct Hold {
    held: Held,
    lane: i32,
}

/// The store, its two workers, and one that only keeps house.
pub(super) struct Subject {
    bed: Bed,
    lease: LeaseConn,
    keeper: Worker,
    slots: [Worker; 2],
    tasks: Vec<Uuid>,
    holds: Vec<Hold>,
    /// Numbers of beats and names of steps, none twice.
    number: i64,
}

/// What the store said to a write.
enum Said {
    Moved(i64),
    Refused,
    Ended(State),
    Fenced(aegis_model::FenceReason),
}

impl Subject {
    pub(super) async fn new() -> Self {
        let bed = Bed::new().await;
        let lease = LeaseConn::connect(bed.store.config()).await.unwrap();
        let keeper = bed.worker(&["other"]).await;
        let slots = [bed.worker(&["k"]).await, bed.worker(&["k"]).await];
        Self {
            bed,
            lease,
            keeper,
            slots,
            tasks: Vec::new(),
            holds: Vec::new(),
            number: 0,
        }
    }

    /// Does what the model has done already, and compares what was answered.
    pub(super) async fn apply(&mut self, model: &Model, one: Move) {
        match one {
            Move::Submit => self.submit().await,
            Move::Claim { slot } => {
                let claims = self.bed.acquire(&self.slots[slot], 100).await;
                self.took(model, claims);
            }
            Move::ClaimSuspect { slot } => {
                let claim = self.bed.acquire_suspect(&self.slots[slot]).await;
                self.took(model, claim.into_iter().collect());
            }
            Move::Expire { slot } => self.bed.expire(&self.slots[slot]).await,
            Move::Renew { slot } => self.renew(model, slot).await,
            Move::Reap => self.reap().await,
            Move::Promote => {
                self.bed
                    .sql("update aegis.task set run_at = clock_timestamp() - interval '1 s' where state = 0")
                    .await;
                self.bed.tick(&self.keeper).await;
            }
            Move::Write {
                hold,
                verb,
                behind,
                lost,
            } => self.write(model, hold, verb, behind, lost).await,
            Move::Cancel { task } => {
                let asked = self.bed.store.cancel(self.tasks[task], "ann", "a property");
                asked.await.unwrap();
            }
            Move::Resolve {
                task,
                class,
                resolution,
            } => self.resolve(task, class, resolution).await,
            Move::Redrive { task } => {
                let redriven = self
                    .bed
                    .store
                    .redrive(self.tasks[task], "ann", "a property");
                assert!(redriven.await.unwrap());
            }
        }
    }

    async fn submit(&mut self) {
        let change = |task: &mut aegis_store::NewTask| {
            task.policy = RetryPolicy {
                max_failures: MAX_FAILURES,
                max_crashes: MAX_CRASHES,
                backoff_initial_ms: HOUR_MS,
                backoff_cap_ms: HOUR_MS,
                kill_after_ms: HOUR_MS,
                ..RetryPolicy::default()
            };
        };
        self.tasks.push(self.bed.submit_with("k", change).await);
    }

    /// Exactly what the model claimed was claimed.
    fn took(&mut self, model: &Model, mut claims: Vec<Claim>) {
        claims.sort_by_key(|claim| self.tasks.iter().position(|id| *id == claim.held.task));
        let taken: Vec<Uuid> = claims.iter().map(|claim| claim.held.task).collect();
        let wanted: Vec<Uuid> = model.claimed.iter().map(|task| self.tasks[*task]).collect();
        assert_eq!(taken, wanted, "another claim");
        self.holds.extend(claims.into_iter().map(|claim| Hold {
            held: claim.held,
            lane: claim.lane,
        }));
    }

    async fn renew(&mut self, model: &Model, slot: usize) {
        self.number += 1;
        let beat = Beat {
            number: self.number,
            executing: 1,
            claim_ticks: self.number,
            progress_ticks: self.number,
        };
        let renewed = self.lease.renew(self.slots[slot].id, beat).await.unwrap();
        assert_eq!(
            renewed == Renewed::Lost,
            model.slots[slot].expired,
            "{renewed:?}"
        );
    }

    async fn reap(&mut self) {
        self.bed.tick(&self.keeper).await;
        for slot in 0..self.slots.len() {
            let tick = self.bed.store.tick(self.slots[slot].id).await.unwrap();
            if tick.state == Some(aegis_model::WorkerState::Lost) {
                self.slots[slot] = self.bed.worker(&["k"]).await;
            }
        }
    }

    async fn resolve(&mut self, task: usize, class: Class, resolution: Resolution) {
        let decided = self.bed.store.resolve_operation_early(
            self.tasks[task],
            class.word(),
            resolution,
            None,
            "ann",
            "a property",
        );
        assert_eq!(decided.await.unwrap(), Decided::Done);
    }

    async fn write(&mut self, model: &Model, hold: usize, verb: Verb, behind: bool, lost: Lost) {
        let came = model.came.unwrap();
        let held = Held {
            rev: self.holds[hold].held.rev - i64::from(behind),
            ..self.holds[hold].held
        };
        let lane = self.holds[hold].lane;
        if lost != Lost::Request {
            let said = self.send(held, lane, verb).await;
            if lost == Lost::Nothing {
                self.heard(hold, came, said);
                return;
            }
        }
        // Nobody heard the answer: the row itself says what became of the write.
        let read = self.bed.store.read_back(held, None).await.unwrap();
        match came {
            Came::Applied => {
                let ReadBack::Applied { rev, .. } = read else {
                    panic!("an applied {verb:?} was read back as {read:?}");
                };
                self.holds[hold].held.rev = rev;
            }
            Came::Refused => assert_eq!(read, ReadBack::NotApplied, "{verb:?}"),
            Came::Ended(..) if verb == Verb::HandBack => {
                assert!(matches!(read, ReadBack::Fenced(_)), "{verb:?}: {read:?}");
            }
            // An outcome that was stored before bears the claim of then.
            Came::Ended(_, true) => assert_ne!(read, ReadBack::NotApplied, "{verb:?}"),
            Came::Ended(state, false) => {
                assert!(
                    matches!(read, ReadBack::Applied { state: found, .. } if found == state),
                    "{verb:?} led to {state} and was read back as {read:?}"
                );
            }
            Came::Fenced(reason) => assert!(
                !matches!(read, ReadBack::Applied { .. }),
                "{verb:?} was fenced by {reason} and read back as {read:?}"
            ),
        }
    }

    fn heard(&mut self, hold: usize, came: Came, said: Said) {
        match (came, said) {
            (Came::Applied, Said::Moved(rev)) => self.holds[hold].held.rev = rev,
            (Came::Refused, Said::Refused) => {}
            (Came::Ended(wanted, _), Said::Ended(state)) => assert_eq!(state, wanted),
            (Came::Fenced(wanted), Said::Fenced(reason)) => {
                assert_eq!(reason.word(), wanted.word());
            }
            (came, said) => {
                let said = match said {
                    Said::Moved(_) => "moved".to_owned(),
                    Said::Refused => "refused".to_owned(),
                    Said::Ended(state) => format!("ended as {state}"),
                    Said::Fenced(reason) => format!("fenced: {reason}"),
                };
                panic!("the model says {came:?}, the store: {said}");
            }
        }
    }

    async fn send(&mut self, held: Held, lane: i32, verb: Verb) -> Said {
        self.number += 1;
        let store = &self.bed.store;
        let to = SaveTo {
            held,
            lane,
            protocol: 1,
            data: b"1".to_vec(),
        };
        match verb {
            Verb::Checkpoint => moved(store.checkpoint(to).await.unwrap().map(|saved| saved.rev)),
            Verb::Step => {
                let step = StepValue {
                    name: "s".to_owned(),
                    key: self.number.to_string(),
                    to,
                };
                moved(store.step(step).await.unwrap().map(|saved| saved.rev))
            }
            Verb::Dispatch(class) => {
                let dispatch = dispatch(held, lane, class, class.word());
                match store.dispatch(dispatch).await.unwrap() {
                    Outcome::Applied(Dispatched::Refused) => Said::Refused,
                    Outcome::Applied(Dispatched::Go { saved, .. }) => Said::Moved(saved.rev),
                    Outcome::Fenced(reason) => Said::Fenced(reason),
                    Outcome::Unknown => panic!("the answer was really lost"),
                }
            }
            Verb::Settle(class, succeeded) => {
                let result = OperationResult {
                    held,
                    lane,
                    operation: class.word().to_owned(),
                    succeeded,
                    protocol: 1,
                    result: Some(b"{}".to_vec()),
                    note: None,
                };
                moved(store.settle(result).await.unwrap().map(|saved| saved.rev))
            }
            Verb::Complete => {
                let group = vec![Completion {
                    held,
                    result: Some(b"{}".to_vec()),
                }];
                let said = ended(store.complete(group).await.unwrap().remove(0));
                // A claim that only settled comes back after a moment: not before the model says so.
                self.bed
                    .sql("update aegis.task set run_at = clock_timestamp() + interval '1 h' where state = 0")
                    .await;
                said
            }
            Verb::Fail { retryable } => {
                let group = vec![aegis_store::guarded::Failure {
                    retryable,
                    ..failure(held)
                }];
                ended(store.fail(group).await.unwrap().remove(0))
            }
            Verb::Snooze => {
                let later = Release {
                    run_after_ms: Some(HOUR_MS),
                    ..release(held, Cause::Snooze)
                };
                ended(store.release(later).await.unwrap())
            }
            Verb::HandBack => ended(store.release(release(held, Cause::Drain)).await.unwrap()),
        }
    }

    /// Each task stands where the model has it, with its counters and its operations.
    pub(super) async fn compare(&self, model: &Model) {
        for (id, wanted) in self.tasks.iter().zip(&model.tasks) {
            let id = *id;
            assert_eq!(self.bed.state(id).await, wanted.state, "task {id}");
            let places: i64 = self
                .bed
                .value(
                    "select (select count(*) from aegis.task where id = $1) + (select count(*) from aegis.parked where id = $1)
                          + (select count(*) from aegis.task_history where id = $1)",
                    &[&id],
                )
                .await;
            assert_eq!(places, 1, "task {id} stands in {places} places");
            if !wanted.state.is_terminal() {
                let counters: Vec<i32> = self
                    .bed
                    .live(id, "array[failures, interruptions, crashes, snoozes]")
                    .await;
                assert_eq!(counters, wanted.counters, "task {id}");
                assert_eq!(
                    self.bed.live::<i64>(id, "epoch").await,
                    wanted.epoch,
                    "task {id}"
                );
                let open: i32 = self.bed.live(id, "open_ops").await;
                assert_eq!(usize::try_from(open).unwrap(), wanted.open(), "task {id}");
            }
            let ledger = self.bed.store.ledger(id).await.unwrap();
            let mut found: Vec<_> = ledger
                .iter()
                .map(|entry| (entry.class.number(), entry.state))
                .collect();
            found.sort_by_key(|(class, _)| *class);
            let expected: Vec<_> = wanted
                .operations
                .iter()
                .map(|(class, operation)| (*class, operation.state))
                .collect();
            assert_eq!(found, expected, "task {id}");
        }
    }
}

fn moved(outcome: Outcome<i64>) -> Said {
    match outcome {
        Outcome::Applied(rev) => Said::Moved(rev),
        Outcome::Fenced(reason) => Said::Fenced(reason),
        Outcome::Unknown => panic!("the answer was really lost"),
    }
}

fn ended(outcome: Outcome<State>) -> Said {
    match outcome {
        Outcome::Applied(state) => Said::Ended(state),
        Outcome::Fenced(reason) => Said::Fenced(reason),
        Outcome::Unknown => panic!("the answer was really lost"),
    }
}
