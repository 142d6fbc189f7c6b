//! A database with the engine's schema, a store on it, and the few moves that most tests begin with.

use std::collections::BTreeMap;

use aegis_model::{Class, Held, Outcome, ProtocolRange, State};
use aegis_store::guarded::{Completion, Dispatch, Dispatched, Failure, OperationResult, Release};
use aegis_store::worker::{Capability, Registration, Tick};
use aegis_store::{AcquireRequest, Claim, Config, Cursor, KindCapacity, NewTask, Store};
use aegis_testkit::TestDb;
use tokio_postgres::Client;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use uuid::Uuid;

/// A test's database and the store as the engine's role sees it.
pub(crate) struct Bed {
    pub(crate) db: TestDb,
    pub(crate) store: Store,
}

/// A registered worker and what it may be given.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) id: Uuid,
    pub(crate) kinds: Vec<(String, String)>,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let db = TestDb::new().await;
        let store = Self::store_as(&db, "aegis_engine").await;
        Self { db, store }
    }

    pub(crate) async fn store_as(db: &TestDb, role: &str) -> Store {
        let config = Config::from_url(&db.url_as(role))
            .unwrap()
            .with_pool_size(4);
        Store::connect(config).await.unwrap()
    }

    /// A connection as the engine's role, for generated functions.
    pub(crate) async fn engine(&self) -> Client {
        self.db.connect_as("aegis_engine").await
    }

    /// Runs SQL as the superuser.
    pub(crate) async fn sql(&self, sql: &str) {
        if let Err(error) = self.db.admin.batch_execute(sql).await {
            panic!("{sql}: {error:?}");
        }
    }

    /// One value, as the superuser.
    pub(crate) async fn value<T: FromSqlOwned>(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> T {
        match self.db.admin.query_one(sql, params).await {
            Ok(row) => row.get(0),
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }

    /// Registers a worker of these kinds of the default queue, with a long lease.
    pub(crate) async fn worker(&self, kinds: &[&str]) -> Worker {
        self.worker_with(kinds, |_| {}).await
    }

    /// The same with changes.
    pub(crate) async fn worker_with(
        &self,
        kinds: &[&str],
        change: impl FnOnce(&mut Registration),
    ) -> Worker {
        let mut registration = registration(kinds);
        change(&mut registration);
        let worker = Worker {
            id: registration.worker,
            kinds: registration
                .capabilities
                .iter()
                .map(|one| (one.queue.clone(), one.kind.clone()))
                .collect(),
        };
        self.store.register(registration).await.unwrap();
        worker
    }

    pub(crate) async fn submit(&self, kind: &str) -> Uuid {
        self.submit_with(kind, |_| {}).await
    }

    pub(crate) async fn submit_with(&self, kind: &str, change: impl FnOnce(&mut NewTask)) -> Uuid {
        let mut task = NewTask::new(kind, "{}");
        change(&mut task);
        self.store.submit(task).await.unwrap().task
    }

    pub(crate) async fn submit_many(&self, kind: &str, count: usize) -> Vec<Uuid> {
        let tasks = vec![NewTask::new(kind, "{}"); count];
        let answers = self.store.submit_batch(tasks).await.unwrap();
        answers.into_iter().map(|one| one.task).collect()
    }

    /// Claims up to `count` tasks, with a fresh request.
    pub(crate) async fn acquire(&self, worker: &Worker, count: usize) -> Vec<Claim> {
        let acquired = self.store.acquire(request(worker, count)).await.unwrap();
        acquired.claims
    }

    pub(crate) async fn acquire_suspect(&self, worker: &Worker) -> Option<Claim> {
        let acquired = self.store.acquire_suspect(request(worker, 1)).await;
        acquired.unwrap().claims.pop()
    }

    /// Submits one task of the worker's first kind and claims it.
    pub(crate) async fn claim(&self, worker: &Worker) -> Claim {
        self.claim_with(worker, |_| {}).await
    }

    pub(crate) async fn claim_with(
        &self,
        worker: &Worker,
        change: impl FnOnce(&mut NewTask),
    ) -> Claim {
        let kind = worker.kinds[0].1.clone();
        let id = self.submit_with(&kind, change).await;
        let mut claims = self.acquire(worker, 1).await;
        assert_eq!(claims.len(), 1, "the task was not claimed");
        let claim = claims.remove(0);
        assert_eq!(claim.held.task, id, "another task was claimed");
        claim
    }

    /// Claims again what is ready now.
    pub(crate) async fn claim_again(&self, worker: &Worker) -> Claim {
        let mut claims = self.acquire(worker, 1).await;
        assert_eq!(claims.len(), 1, "nothing was claimed");
        claims.remove(0)
    }

    pub(crate) async fn complete(&self, held: Held) -> Outcome<State> {
        let group = vec![Completion {
            held,
            result: Some(b"{}".to_vec()),
        }];
        self.store.complete(group).await.unwrap().remove(0)
    }

    pub(crate) async fn fail(&self, held: Held) -> Outcome<State> {
        let group = vec![failure(held)];
        self.store.fail(group).await.unwrap().remove(0)
    }

    pub(crate) async fn release(&self, held: Held, cause: aegis_model::Cause) -> Outcome<State> {
        self.store.release(release(held, cause)).await.unwrap()
    }

    /// Dispatches an operation named after its class; gives the claim with its next rev.
    pub(crate) async fn dispatch(&self, claim: &Claim, class: Class) -> Held {
        self.dispatch_named(claim.held, claim.lane, class, class.word())
            .await
    }

    pub(crate) async fn dispatch_named(
        &self,
        held: Held,
        lane: i32,
        class: Class,
        name: &str,
    ) -> Held {
        let outcome = self
            .store
            .dispatch(dispatch(held, lane, class, name))
            .await
            .unwrap();
        let Outcome::Applied(Dispatched::Go { saved, .. }) = outcome else {
            panic!("the dispatch of {name} was not applied: {outcome:?}");
        };
        Held {
            rev: saved.rev,
            ..held
        }
    }

    /// Stores an operation's good result; gives the claim with its next rev.
    pub(crate) async fn settle(&self, held: Held, lane: i32, name: &str) -> Held {
        let outcome = self
            .store
            .settle(OperationResult {
                held,
                lane,
                operation: name.to_owned(),
                succeeded: true,
                protocol: 1,
                result: Some(b"{}".to_vec()),
                note: None,
            })
            .await
            .unwrap();
        let Outcome::Applied(saved) = outcome else {
            panic!("the result of {name} was not applied: {outcome:?}");
        };
        Held {
            rev: saved.rev,
            ..held
        }
    }

    /// Where a task stands, wherever it stands.
    pub(crate) async fn state(&self, id: Uuid) -> State {
        let task = self.store.task(id).await.unwrap();
        State::from_number(task.unwrap().state)
    }

    /// A column of the task's live row.
    pub(crate) async fn live<T: FromSqlOwned>(&self, id: Uuid, column: &str) -> T {
        let sql = format!("select {column} from aegis.task where id = $1");
        self.value(&sql, &[&id]).await
    }

    /// The causes of a task's events, in order.
    pub(crate) async fn causes(&self, id: Uuid) -> Vec<String> {
        let events = self.store.events(id).await.unwrap();
        events.into_iter().map(|event| event.cause).collect()
    }

    /// Ends a worker's lease as time would, well after the database came up.
    pub(crate) async fn expire(&self, worker: &Worker) {
        self.sql(&format!(
            "update aegis.database set up_since = clock_timestamp() - interval '1 day';
             update aegis.worker_lease set lease_until = clock_timestamp() - interval '1 ms' where worker = '{}'",
            worker.id
        ))
        .await;
    }

    /// Makes every job due and runs one tick.
    pub(crate) async fn tick(&self, worker: &Worker) -> Tick {
        self.sql("update aegis.housekeeping set next_at = '-infinity' where job not in ('suspect', 'partition')")
            .await;
        self.store.tick(worker.id).await.unwrap()
    }

    /// All rows of all tables of the engine, as text.
    pub(crate) async fn rows(&self) -> BTreeMap<String, Vec<String>> {
        all_rows(&self.db.admin).await
    }
}

/// A registration of these kinds of the default queue.
pub(crate) fn registration(kinds: &[&str]) -> Registration {
    Registration {
        worker: Uuid::now_v7(),
        predecessor: None,
        name: "w".to_owned(),
        host: "localhost".to_owned(),
        pid: 1,
        release: "r1".to_owned(),
        build: "b1".to_owned(),
        digest: "none".to_owned(),
        slots: 1000,
        ttl_ms: 600_000,
        capabilities: kinds.iter().map(|kind| capability(kind)).collect(),
    }
}

/// Reads and writes protocol 1 of a kind of the default queue.
pub(crate) fn capability(kind: &str) -> Capability {
    Capability {
        queue: "default".to_owned(),
        kind: kind.to_owned(),
        protocols: ProtocolRange::new(1, 1, 1).unwrap(),
        slots: 1000,
    }
}

/// An acquire call of all of a worker's kinds, with room for everything.
pub(crate) fn request(worker: &Worker, count: usize) -> AcquireRequest {
    AcquireRequest {
        worker: worker.id,
        request: Uuid::new_v4(),
        capacity: worker
            .kinds
            .iter()
            .map(|(queue, kind)| KindCapacity {
                queue: queue.clone(),
                kind: kind.clone(),
                kind_free: 1000,
                queue_free: 1000,
            })
            .collect(),
        count,
        cursor: Cursor::default(),
    }
}

pub(crate) fn failure(held: Held) -> Failure {
    Failure {
        held,
        code: "broken".to_owned(),
        message: "it broke".to_owned(),
        retryable: true,
        details: None,
        retry_after_ms: None,
    }
}

pub(crate) fn release(held: Held, cause: aegis_model::Cause) -> Release {
    Release {
        held,
        cause,
        run_at: None,
        run_after_ms: None,
        unknown_operations: Vec::new(),
        note: None,
    }
}

pub(crate) fn dispatch(held: Held, lane: i32, class: Class, name: &str) -> Dispatch {
    Dispatch {
        held,
        lane,
        operation: name.to_owned(),
        name: name.to_owned(),
        key: "1".to_owned(),
        class,
        protocol: 1,
        timeout_ms: 1000,
        quiet_ms: 1000,
        key_valid_ms: None,
        fingerprint: vec![1],
        request: None,
        release: "r1".to_owned(),
        probed: false,
    }
}

/// All rows of all tables of the engine, as text: what a refused write must leave as it was.
pub(crate) async fn all_rows(client: &Client) -> BTreeMap<String, Vec<String>> {
    let tables = client
        .query(
            "select relname::text from pg_class where relnamespace = 'aegis'::regnamespace
             and relkind in ('r', 'p') and not relispartition order by 1",
            &[],
        )
        .await
        .unwrap();
    let mut all = BTreeMap::new();
    for table in tables {
        let name: String = table.get(0);
        let sql = format!("select to_jsonb(x)::text from aegis.{name} x order by 1");
        let rows = client.query(&sql, &[]).await.unwrap();
        all.insert(name, rows.into_iter().map(|row| row.get(0)).collect());
    }
    all
}
