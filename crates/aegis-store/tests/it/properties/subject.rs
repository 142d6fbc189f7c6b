//! The real store, moved by the same commands, and compared with the model after each.

use std::time::Duration;

use aegis_model::{Cause, Class, Held, OperationState, Outcome, Resolution, State};
use aegis_store::guarded::{
    Completion, Dispatched, OperationResult, ReadBack, Release, SaveTo, StepValue, fence_in,
};
use aegis_store::overrides::Decided;
use aegis_store::transaction::commit_checked;
use aegis_store::worker::{Beat, LeaseConn, Renewed};
use aegis_store::{AcquireRequest, Claim, Config, RetryPolicy, Store, StoreError};
use aegis_testkit::wait_until;
use uuid::Uuid;

use super::cut::{ACQUIRES, CANCELS, COMMITS, DRAINS, GUARDED, Line, Place};
use super::model::{Came, Heard, MAX_CRASHES, MAX_FAILURES, Model};
use super::moves::{Move, Verb};
use crate::support::{Bed, Worker, dispatch, failure, release, request};

const HOUR_MS: i64 = 3_600_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Where tasks stand, in one look.
const STANDS: &str = "select u.id,
    (select count(*) from aegis.task_any a where a.id = u.id),
    (select a.state from aegis.task_any a where a.id = u.id limit 1),
    array[t.failures, t.interruptions, t.crashes, t.snoozes], t.epoch, t.rev, t.open_ops,
    (select count(*) from public.own o where o.task = u.id),
    (select coalesce(array_agg(o.class order by o.class), '{}') from aegis.operation o where o.task = u.id),
    (select coalesce(array_agg(o.state order by o.class), '{}') from aegis.operation o where o.task = u.id)
    from unnest($1::uuid[]) with ordinality u (id, n) left join aegis.task t on t.id = u.id order by u.n";

/// What an execution does when the answer to its write was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Habit {
    /// It reads back, and sends again what was not applied.
    ReadsBack,
    /// It sends the same write again and believes what that one says.
    Repeats,
    /// It looks at which rev the row stands and sends the write again from there.
    RepeatsFromTheRow,
    /// It goes on as if the write had been applied.
    Assumes,
}

/// What one execution holds: its claim with the newest rev that it has heard of.
struct Hold {
    held: Held,
    lane: i32,
}

/// The store, its two workers, and one that only keeps house.
pub(super) struct Subject {
    habit: Habit,
    bed: Bed,
    line: Line,
    /// By the line: what can be cut off.
    store: Store,
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
    /// The connection is gone: applied or not.
    Unknown,
}

impl Subject {
    pub(super) async fn new(habit: Habit) -> Self {
        let bed = Bed::new().await;
        bed.sql("create table public.own (task uuid); grant all on public.own to public")
            .await;
        let line = Line::to(&bed.db.url_as("aegis_engine")).await;
        let config = Config::from_url(line.url()).unwrap().with_pool_size(1);
        let store = Store::connect(config).await.unwrap();
        let lease = LeaseConn::connect(bed.store.config()).await.unwrap();
        let keeper = bed.worker(&["other"]).await;
        let slots = [bed.worker(&["k"]).await, bed.worker(&["k"]).await];
        Self {
            habit,
            bed,
            line,
            store,
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
            Move::Submit { cut } => self.submit(cut).await,
            Move::Claim { slot, cut } => {
                let request = request(&self.slots[slot], 100);
                let claims = self.acquire(request, cut, false).await;
                self.took(model, claims);
            }
            Move::ClaimSuspect { slot, cut } => {
                let request = request(&self.slots[slot], 1);
                let claims = self.acquire(request, cut, true).await;
                self.took(model, claims);
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
            Move::Drain { slot, cut } => {
                let id = self.slots[slot].id;
                if self.cut(cut, DRAINS) {
                    let lost = self.store.drain(id).await.unwrap_err();
                    self.gone(&lost).await;
                }
                let first = self.store.drain(id).await.unwrap();
                assert_eq!(
                    first,
                    !matches!(cut, Some(Place::Behind | Place::Answered)),
                    "a gate closes once"
                );
            }
            Move::Leave { slot } => {
                assert!(self.store.stop(self.slots[slot].id).await.unwrap());
                self.slots[slot] = self.bed.worker(&["k"]).await;
            }
            Move::Write {
                hold,
                verb,
                behind,
                cut,
            } => self.write(model, hold, verb, behind, cut).await,
            Move::Resume { hold } => self.resume(model, hold).await,
            Move::Cancel { task, cut } => {
                let id = self.tasks[task];
                if self.cut(cut, CANCELS) {
                    let lost = self.store.cancel(id, "ann", "a property").await;
                    self.gone(&lost.unwrap_err()).await;
                }
                self.store.cancel(id, "ann", "a property").await.unwrap();
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

    /// Arms a cut; gives whether there is one.
    fn cut(&self, cut: Option<Place>, text: &'static str) -> bool {
        if let Some(place) = cut {
            self.line.arm(place, text);
        }
        cut.is_some()
    }

    /// An answer was lost, and the server has done all that it will do of it.
    async fn gone(&self, error: &StoreError) {
        assert!(error.lost_answer(), "{error}");
        self.settled().await;
    }

    /// The server's process that was cut off has ended.
    async fn settled(&self) {
        let process = self.line.cut_off();
        wait_until("the end of what was cut off", PATIENCE, async || {
            let left: i64 = self
                .bed
                .value(
                    "select count(*) from pg_stat_activity where pid = $1",
                    &[&process],
                )
                .await;
            left == 0
        })
        .await;
    }

    async fn submit(&mut self, cut: Option<Place>) {
        let mut task = aegis_store::NewTask::new("k", "{}");
        task.key = Some(format!("task {}", self.tasks.len()));
        task.policy = RetryPolicy {
            max_failures: MAX_FAILURES,
            max_crashes: MAX_CRASHES,
            backoff_initial_ms: HOUR_MS,
            backoff_cap_ms: HOUR_MS,
            kill_after_ms: HOUR_MS,
            ..RetryPolicy::default()
        };
        if self.cut(cut, COMMITS) {
            let lost = self.store.submit(task.clone()).await.unwrap_err();
            self.gone(&lost).await;
        }
        self.tasks.push(self.store.submit(task).await.unwrap().task);
        let all: i64 = self
            .bed
            .value(
                "select (select count(*) from aegis.task) + (select count(*) from aegis.task_history) + (select count(*) from aegis.parked)",
                &[],
            )
            .await;
        assert_eq!(usize::try_from(all).unwrap(), self.tasks.len(), "one key");
    }

    /// Claims. A claimer that lost the answer asks what it holds, and sends the same request again.
    async fn acquire(
        &self,
        request: AcquireRequest,
        cut: Option<Place>,
        suspect: bool,
    ) -> Vec<Claim> {
        let call = async |request| {
            if suspect {
                self.store.acquire_suspect(request).await
            } else {
                self.store.acquire(request).await
            }
        };
        let mut held = None;
        if self.cut(cut, ACQUIRES) {
            let lost = call(request.clone()).await.unwrap_err();
            self.gone(&lost).await;
            let acquired = self.store.acquired(request.worker, request.request).await;
            held = Some(acquired.unwrap().claims.len());
        }
        let claims = call(request).await.unwrap().claims;
        if let Some(held) = held {
            let before = if cut == Some(Place::Before) {
                0
            } else {
                claims.len()
            };
            assert_eq!(held, before, "{cut:?}");
        }
        claims
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

    async fn write(
        &mut self,
        model: &Model,
        hold: usize,
        verb: Verb,
        behind: bool,
        cut: Option<Place>,
    ) {
        let held = Held {
            rev: self.holds[hold].held.rev - i64::from(behind),
            ..self.holds[hold].held
        };
        let lane = self.holds[hold].lane;
        let is_cut = self.cut(cut, if verb == Verb::Own { COMMITS } else { GUARDED });
        let said = self.send(held, lane, verb).await;
        if is_cut {
            assert!(matches!(said, Said::Unknown), "{verb:?} cut {cut:?}");
            self.settled().await;
        } else {
            self.heard(hold, model.came.unwrap(), said);
        }
    }

    /// After a lost answer.
    async fn resume(&mut self, model: &Model, hold: usize) {
        let Hold { held, lane } = self.holds[hold];
        let wanted = model.heard.unwrap();
        let verb = model.resumed.unwrap();
        let stays = matches!(wanted, Heard::Applied);
        match self.habit {
            Habit::ReadsBack => {
                let read = self.store.read_back(held, None).await.unwrap();
                self.read(hold, verb, wanted, read);
                if let Heard::NotApplied(came) = wanted {
                    let said = self.send(held, lane, verb).await;
                    self.heard(hold, came, said);
                }
            }
            Habit::Repeats => {
                let said = self.send(held, lane, verb).await;
                match wanted {
                    Heard::NotApplied(came) => self.heard(hold, came, said),
                    _ => assert_eq!(
                        matches!(said, Said::Moved(_)),
                        stays,
                        "{verb:?} had been applied, and its execution stops"
                    ),
                }
            }
            Habit::RepeatsFromTheRow => {
                let rev: Option<i64> = self
                    .bed
                    .value(
                        "select max(rev) from aegis.task where id = $1",
                        &[&held.task],
                    )
                    .await;
                let from = Held {
                    rev: rev.unwrap_or(held.rev),
                    ..held
                };
                let said = self.send(from, lane, verb).await;
                match (wanted, said) {
                    (Heard::NotApplied(came), said) => self.heard(hold, came, said),
                    (_, Said::Moved(rev)) => self.holds[hold].held.rev = rev,
                    _ => {}
                }
            }
            Habit::Assumes => self.holds[hold].held.rev += 1,
        }
    }

    /// What was read back is what has really happened.
    fn read(&mut self, hold: usize, verb: Verb, wanted: Heard, read: ReadBack) {
        match wanted {
            Heard::Applied => {
                let ReadBack::Applied { rev, .. } = read else {
                    panic!("an applied {verb:?} was read back as {read:?}");
                };
                assert_eq!(rev, self.holds[hold].held.rev + 1);
                self.holds[hold].held.rev = rev;
            }
            Heard::NotApplied(_) => assert_eq!(read, ReadBack::NotApplied, "{verb:?}"),
            Heard::Ended(_) if verb == Verb::HandBack => {
                assert!(matches!(read, ReadBack::Fenced(_)), "{verb:?}: {read:?}");
            }
            Heard::Ended(Came::Ended(state, false)) => assert!(
                matches!(read, ReadBack::Applied { state: found, .. } if found == state),
                "{verb:?} led to {state} and was read back as {read:?}"
            ),
            // An outcome that was stored before bears the claim of then.
            Heard::Ended(_) | Heard::Over { applied: true } => {
                assert_ne!(read, ReadBack::NotApplied, "{verb:?}");
            }
            Heard::Over { applied: false } => {
                assert!(matches!(read, ReadBack::Fenced(_)), "{verb:?}: {read:?}");
            }
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
                    Said::Unknown => "nothing".to_owned(),
                };
                panic!("the model says {came:?}, the store: {said}");
            }
        }
    }

    async fn send(&mut self, held: Held, lane: i32, verb: Verb) -> Said {
        self.number += 1;
        let store = &self.store;
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
            Verb::Own => own(store, &to).await,
            Verb::Dispatch(class) => {
                let dispatch = dispatch(held, lane, class, class.word());
                match store.dispatch(dispatch).await.unwrap() {
                    Outcome::Applied(Dispatched::Refused) => Said::Refused,
                    Outcome::Applied(Dispatched::Go { saved, .. }) => Said::Moved(saved.rev),
                    Outcome::Fenced(reason) => Said::Fenced(reason),
                    Outcome::Unknown => Said::Unknown,
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

    /// Each task stands where the model has it, with its counters, its operations and its handlers' rows.
    pub(super) async fn compare(&self, model: &Model) {
        let rows = self.bed.db.admin.query(STANDS, &[&self.tasks]).await;
        for (row, wanted) in rows.unwrap().iter().zip(&model.tasks) {
            let id: Uuid = row.get(0);
            let places: i64 = row.get(1);
            assert_eq!(places, 1, "task {id} stands in {places} places");
            let state = State::from_number(row.get(2));
            assert_eq!(state, wanted.state, "task {id}");
            if !wanted.state.is_terminal() {
                assert_eq!(row.get::<_, Vec<i32>>(3), wanted.counters, "task {id}");
                assert_eq!(row.get::<_, i64>(4), wanted.epoch, "epoch of task {id}");
                assert_eq!(row.get::<_, i64>(5), wanted.rev, "rev of task {id}");
                let open: i32 = row.get(6);
                assert_eq!(usize::try_from(open).unwrap(), wanted.open(), "task {id}");
            }
            let own: i64 = row.get(7);
            assert_eq!(own, wanted.own, "rows of the handlers of task {id}");
            let (classes, states): (Vec<i16>, Vec<i16>) = (row.get(8), row.get(9));
            let found: Vec<_> = classes
                .into_iter()
                .zip(states)
                .map(|(class, state)| (class, OperationState::from_number(state)))
                .collect();
            let expected: Vec<_> = wanted
                .operations
                .iter()
                .map(|(class, operation)| (*class, Some(operation.state)))
                .collect();
            assert_eq!(found, expected, "task {id}");
        }
    }
}

/// A handler's transaction: a row of its own, the fence last.
async fn own(store: &Store, to: &SaveTo) -> Said {
    let lane = store.lane_after(to.lane, to.protocol).await.unwrap();
    let mut client = store.handler_pool().get().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    let row = format!("insert into public.own values ('{}')", to.held.task);
    transaction.batch_execute(&row).await.unwrap();
    let Some(saved) = fence_in(&*transaction, to, lane).await.unwrap() else {
        transaction.rollback().await.unwrap();
        let conn = store.conn().await.unwrap();
        let reason = store.fenced(&conn.conn(), &to.held, "checkpoint").await;
        return Said::Fenced(reason.unwrap());
    };
    match commit_checked(transaction).await {
        Ok(()) => Said::Moved(saved.rev),
        Err(error) if error.lost_answer() => Said::Unknown,
        Err(error) => panic!("{error}"),
    }
}

fn moved(outcome: Outcome<i64>) -> Said {
    match outcome {
        Outcome::Applied(rev) => Said::Moved(rev),
        Outcome::Fenced(reason) => Said::Fenced(reason),
        Outcome::Unknown => Said::Unknown,
    }
}

fn ended(outcome: Outcome<State>) -> Said {
    match outcome {
        Outcome::Applied(state) => Said::Ended(state),
        Outcome::Fenced(reason) => Said::Fenced(reason),
        Outcome::Unknown => Said::Unknown,
    }
}
