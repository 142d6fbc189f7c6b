//! Runs tasks to their end, on a private database whose time passes by itself.
//!
//! Invariants: one run at a time; a worker is the shipped one, with its claim loop, its renewal and its own connections; a lost
//! worker is lost to the engine by the expiry of its lease and nothing else.

use std::sync::Arc;
use std::time::Duration;

use aegis_model::limits::LEASE_TTL_MS;
use aegis_model::{Class, OperationState, State};
use aegis_store::view::TaskDetail;
use aegis_store::{NewTask, Store};
use aegis_worker::WorkerBuilder;
use jiff::Timestamp;
use tokio::time::Instant;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::clock;
use crate::effects::Effects;
use crate::error::HarnessError;
use crate::fault::{Blow, Fault, Nth};
use crate::incarnation::{Furnish, Incarnation};
use crate::run::{Outcome, Run};
use crate::script::{Ear, Followed, Script, Seen};
use crate::server::Database;

/// A task that was started so often hardly ends.
const EXECUTIONS_MAX: usize = 1000;
/// Real time that a frozen worker gets to end after it has waked up, and a lost one to be noticed.
const SOON: Duration = Duration::from_secs(10);
/// Real time that an execution gets to reach its last point after the database knows its end.
const LAST_POINT_WITHIN: Duration = Duration::from_millis(500);
/// How often the database is looked at while nothing is heard.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// A private database, an outside world, and workers that may die.
pub struct Harness {
    database: Database,
    admin: Client,
    store: Store,
    effects: Effects,
    furnish: Arc<Furnish>,
    script: Arc<Script>,
    worker: Option<Incarnation>,
    frozen: Vec<Incarnation>,
    started: usize,
    lease: Duration,
    patience: Duration,
    executions_max: usize,
    passed: Duration,
}

impl Harness {
    /// Starts with an empty database. `furnish` puts the handlers into a worker; it is called for each incarnation anew, as a
    /// process starts anew after a crash: what a handler keeps in its own memory is gone then.
    ///
    /// The first harness of a process starts a private PostgreSQL, from the programs on the machine; it ends with the process.
    ///
    /// # Errors
    /// No PostgreSQL, or it refuses.
    pub async fn start<F>(furnish: F) -> Result<Self, HarnessError>
    where
        F: Fn(WorkerBuilder, &Effects) -> WorkerBuilder + Send + Sync + 'static,
    {
        let database = Database::create().await?;
        let admin = database.admin().await?;
        let store = Store::connect(database.config("aegis harness")?).await?;
        let effects = Effects::new();
        let world = effects.clone();
        Ok(Self {
            database,
            admin,
            store,
            effects,
            furnish: Arc::new(move |builder| furnish(builder, &world)),
            script: Arc::default(),
            worker: None,
            frozen: Vec::new(),
            started: 0,
            lease: Duration::from_millis(LEASE_TTL_MS),
            patience: Duration::from_mins(1),
            executions_max: EXECUTIONS_MAX,
            passed: Duration::ZERO,
        })
    }

    /// The lease of the workers; 30 s unless said otherwise, as in production. So much time passes at each crash.
    pub fn set_lease(&mut self, lease: Duration) {
        self.lease = lease;
    }

    /// How much real time a run may take; 60 s unless said otherwise.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// How often a task may be started; 1,000 unless said otherwise.
    pub fn set_executions_max(&mut self, executions: usize) {
        self.executions_max = executions;
    }

    /// The record of the outside world.
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// The engine's database, to submit, look and decide.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The database's URL, with every right: for tables of your own.
    pub fn database_url(&self) -> String {
        self.database.url("postgres")
    }

    /// Runs SQL with every right, such as the tables that your `commit` writes to. The engine's role is `aegis_engine`.
    ///
    /// # Errors
    /// What the database says.
    pub async fn sql(&self, sql: &str) -> Result<(), HarnessError> {
        self.admin
            .batch_execute(sql)
            .await
            .map_err(|source| HarnessError::Database {
                what: "run the test's own SQL",
                source,
            })
    }

    /// Lets time pass: leases of living workers are renewed, everything else becomes older, and what falls due is done.
    ///
    /// # Errors
    /// What the database says.
    pub async fn advance(&mut self, by: Duration) -> Result<(), HarnessError> {
        self.pass(by, &[]).await
    }

    async fn pass(&mut self, by: Duration, dead: &[Uuid]) -> Result<(), HarnessError> {
        self.passed += by;
        clock::advance(&self.admin, by, dead).await
    }

    /// Submits a task, runs it to its end, and lets the time pass that it waits for.
    ///
    /// # Errors
    /// The kit's own; how the task ended is in the [`Run`].
    pub async fn run(&mut self, task: NewTask) -> Result<Run, HarnessError> {
        self.run_with(task, &[]).await
    }

    /// The same, with faults that befall the worker one after another.
    ///
    /// # Errors
    /// The kit's own; [`HarnessError::NotReached`] when a fault has not struck.
    pub async fn run_with(&mut self, task: NewTask, faults: &[Fault]) -> Result<Run, HarnessError> {
        let (run, followed) = self.follow(task, faults).await?;
        match followed.left_over {
            None => Ok(run),
            Some(fault) => Err(HarnessError::NotReached {
                point: fault.point.to_string(),
                nth: fault.nth,
                seen: names(&followed.seen),
            }),
        }
    }

    /// Submits a task, without running it yet.
    ///
    /// # Errors
    /// What the engine refuses.
    pub async fn submit(&self, task: NewTask) -> Result<Uuid, HarnessError> {
        if let Some(key) = task.key {
            return Err(HarnessError::HasKey { key });
        }
        Ok(self.store.submit(task).await?.task)
    }

    /// Runs a submitted task until it waits for time or a person, or has ended. The clock stands still.
    ///
    /// # Errors
    /// The kit's own.
    pub async fn settle(&mut self, task: Uuid) -> Result<TaskDetail, HarnessError> {
        self.script.begin(task, &[]);
        let at_rest = self.until_rest(task, Instant::now() + self.patience).await;
        self.script.end();
        at_rest
    }

    pub(crate) async fn follow(
        &mut self,
        task: NewTask,
        faults: &[Fault],
    ) -> Result<(Run, Followed), HarnessError> {
        let mark = self.effects.len();
        let before = self.passed;
        self.script.await_task();
        let id = match self.submit(task).await {
            Ok(id) => id,
            Err(error) => {
                self.script.end();
                return Err(error);
            }
        };
        self.script.begin(id, faults);
        let ended = self.run_to_end(id).await;
        let followed = self.script.end();
        let (outcome, result, late_from) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                // Whatever it holds up must not hold up the next run.
                self.discard_worker().await?;
                return Err(error);
            }
        };
        let run = Run {
            task: id,
            outcome,
            result,
            executions: followed.executions,
            points: followed
                .seen
                .iter()
                .map(|seen| seen.point.clone())
                .collect(),
            effects: self.effects.since(mark, id),
            late: self.effects.since(late_from, id).into_keys().collect(),
            passed: self.passed.saturating_sub(before),
        };
        Ok((run, followed))
    }

    async fn run_to_end(
        &mut self,
        id: Uuid,
    ) -> Result<(Outcome, Option<serde_json::Value>, usize), HarnessError> {
        let deadline = Instant::now() + self.patience;
        let (outcome, result) = loop {
            let task = self.until_rest(id, deadline).await?;
            if let Some(outcome) = Outcome::of(&task) {
                break (outcome, result_of(&task)?);
            }
            if State::from_number(task.state) == State::Reconciling {
                break (self.doubt(id).await?, None);
            }
            let executions = self.script.executions();
            if executions > self.executions_max {
                return Err(HarnessError::Endless {
                    task: id,
                    executions,
                });
            }
            self.pass(until(task.run_at), &[]).await?;
        };
        let late_from = self.effects.len();
        self.wake_frozen().await?;
        Ok((outcome, result, late_from))
    }

    /// Until the task waits for time or a person, or has ended. Faults strike on the way.
    async fn until_rest(
        &mut self,
        id: Uuid,
        deadline: Instant,
    ) -> Result<TaskDetail, HarnessError> {
        let mut asked_at = None;
        let mut at_rest = None;
        loop {
            if let Some(fault) = self.script.take_struck() {
                self.strike(fault).await?;
                (asked_at, at_rest) = (None, None);
            }
            let task = self.look(id).await?;
            match State::from_number(task.state) {
                State::Running => at_rest = None,
                State::Ready => {
                    at_rest = None;
                    if self.worker.is_none() {
                        self.worker = Some(self.start_worker().await?);
                    }
                    // Once for each time that it becomes ready, and now and then in case it was overheard.
                    let asked = (task.rev, Instant::now());
                    let again = asked_at.is_none_or(|(rev, at): (i64, Instant)| {
                        rev != task.rev || at.elapsed() > Duration::from_millis(50)
                    });
                    if again && let Some(worker) = &self.worker {
                        worker.handle.look_now();
                        asked_at = Some(asked);
                    }
                }
                // The database knows first: the execution itself may stand a moment before its last point.
                _ => {
                    // What is seen first counts: the clock on the wall goes on, too.
                    let (first, since) = at_rest.get_or_insert((task, Instant::now()));
                    if self.is_idle() || since.elapsed() > LAST_POINT_WITHIN {
                        return Ok(first.clone());
                    }
                    self.wait().await;
                    continue;
                }
            }
            if let Some(how) = self.worker.as_ref().and_then(Incarnation::ended) {
                return Err(HarnessError::Worker {
                    what: format!("it ended by itself: {how}"),
                });
            }
            if Instant::now() > deadline {
                return Err(HarnessError::Stuck {
                    task: id,
                    within: self.patience,
                    why: format!(
                        "it is {:?} at epoch {}",
                        State::from_number(task.state),
                        task.epoch
                    ),
                });
            }
            self.wait().await;
        }
    }

    /// For a fault, or for the time to look again.
    async fn wait(&self) {
        tokio::select! {
            () = self.script.struck.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }

    /// Has the worker nothing in its hands, and was nothing struck that is not dealt with?
    fn is_idle(&self) -> bool {
        let busy = self
            .worker
            .as_ref()
            .is_some_and(|worker| worker.handle.snapshot().in_flight > 0);
        // In this order: what is idle strikes no more.
        !busy && !self.script.has_struck()
    }

    async fn look(&self, id: Uuid) -> Result<TaskDetail, HarnessError> {
        self.store.task(id).await?.ok_or(HarnessError::Stuck {
            task: id,
            within: Duration::ZERO,
            why: "it is gone from the database".to_owned(),
        })
    }

    async fn start_worker(&mut self) -> Result<Incarnation, HarnessError> {
        self.started += 1;
        let application = format!("aegis harness worker {}", self.started);
        Incarnation::start(
            self.database.config(&application)?,
            application,
            self.lease,
            Arc::clone(&self.furnish),
            Ear::new(&self.script),
        )
        .await
    }

    /// A fault has struck the worker: its lease expires.
    async fn strike(&mut self, fault: Fault) -> Result<(), HarnessError> {
        let Some(worker) = self.worker.take() else {
            return Ok(());
        };
        let id = worker.handle.id();
        match fault.blow {
            Blow::Crash => worker.kill(&self.admin).await?,
            Blow::Freeze => self.frozen.push(worker),
        }
        match id {
            Some(id) => self.lose(id).await,
            None => Ok(()),
        }
    }

    /// Lets a lease expire. A frozen worker's renewal may still be under way, so it takes as long as the engine takes.
    async fn lose(&mut self, worker: Uuid) -> Result<(), HarnessError> {
        let deadline = Instant::now() + SOON;
        let mut lease = self.lease + Duration::from_millis(1);
        loop {
            self.pass(lease, &[worker]).await?;
            if clock::is_lost(&self.admin, worker).await? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(HarnessError::Worker {
                    what: "the lease of a lost one does not expire".to_owned(),
                });
            }
            lease = Duration::from_millis(1);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The frozen go on, late, and are ended when they have stopped.
    async fn wake_frozen(&mut self) -> Result<(), HarnessError> {
        for worker in std::mem::take(&mut self.frozen) {
            worker.ear.wake();
            let deadline = Instant::now() + SOON;
            while worker.handle.snapshot().executing > 0 && Instant::now() < deadline {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            worker.kill(&self.admin).await?;
        }
        Ok(())
    }

    async fn discard_worker(&mut self) -> Result<(), HarnessError> {
        self.wake_frozen().await?;
        if let Some(worker) = self.worker.take() {
            worker.kill(&self.admin).await?;
        }
        Ok(())
    }

    /// A task's unknown operations.
    async fn doubt(&self, task: Uuid) -> Result<Outcome, HarnessError> {
        let unknown = OperationState::Unknown.number();
        let rows = self.store.operations(&[unknown], Some(task), 1000).await?;
        let own = format!("{task}/");
        Ok(Outcome::WaitsForPerson {
            expected: rows.iter().all(|row| {
                matches!(
                    Class::from_number(row.class),
                    Some(Class::Queryable | Class::Blind)
                )
            }),
            operations: rows
                .into_iter()
                .map(|row| row.id.replace(&own, ""))
                .collect(),
        })
    }
}

impl std::fmt::Debug for Harness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Harness")
            .field("database", &self.database)
            .field("workers_started", &self.started)
            .finish_non_exhaustive()
    }
}

fn result_of(task: &TaskDetail) -> Result<Option<serde_json::Value>, HarnessError> {
    Ok(match task.result.as_deref() {
        Some(bytes) => Some(serde_json::from_slice(bytes)?),
        None => None,
    })
}

/// From now until a stored moment, and a little more: both clocks are this machine's.
fn until(run_at: Option<Timestamp>) -> Duration {
    let left = run_at.map_or(Duration::ZERO, |at| {
        Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
    });
    left + Duration::from_millis(1)
}

pub(crate) fn names(seen: &[Seen]) -> String {
    let names: Vec<_> = seen
        .iter()
        .map(|seen| Nth(&seen.point, seen.nth).to_string())
        .collect();
    names.join(", ")
}
