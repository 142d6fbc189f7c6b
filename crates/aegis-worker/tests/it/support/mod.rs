//! What the tests share: a database with a store, short leases, running workers, submitted tasks.

pub(crate) mod collector;
pub(crate) mod proxy;

use std::time::Duration;

use aegis_store::view::TaskDetail;
use aegis_store::{Config, NewTask, RetryPolicy, Store};
use aegis_testkit::{TestDb, wait_until};
use aegis_worker::{Budgets, Exit, Worker, WorkerBuilder, WorkerError, WorkerHandle};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Long enough for a slow machine, short enough to wait for its end.
pub(crate) const TTL: Duration = Duration::from_millis(1500);
/// Nothing takes longer on a machine that works at all.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// A database with a store on it.
pub(crate) struct Bench {
    pub(crate) db: TestDb,
    pub(crate) store: Store,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let db = TestDb::new().await;
        let store = store_at(&db.url_as("aegis_engine")).await;
        Self { db, store }
    }

    /// A worker with a short lease and budgets that a test can wait for.
    pub(crate) fn worker(&self) -> WorkerBuilder {
        worker_on(self.store.clone())
    }

    pub(crate) async fn submit(&self, kind: &str, input: Value) -> Uuid {
        self.submit_task(NewTask::new(kind, input.to_string()))
            .await
    }

    pub(crate) async fn submit_task(&self, task: NewTask) -> Uuid {
        self.store.submit(task).await.unwrap().task
    }

    /// The task when it has ended or is parked.
    pub(crate) async fn ended(&self, task: Uuid) -> TaskDetail {
        let ended = self.store.wait(task, BOUND).await.unwrap();
        match ended {
            Some(ended) => ended,
            None => panic!(
                "task {task} has not ended: {:?}, events {:?}, errors {:?}",
                self.store.task(task).await,
                self.causes(task).await,
                self.store.attempt_errors(task).await
            ),
        }
    }

    /// Waits until a task has so many steps.
    pub(crate) async fn wait_steps(&self, task: Uuid, wanted: i64) {
        let sql = "select count(*) from aegis.step where task = $1";
        wait_until("the steps", BOUND, async || {
            self.count(sql, task).await == wanted
        })
        .await;
    }

    /// One number about a task.
    pub(crate) async fn count(&self, sql: &str, task: Uuid) -> i64 {
        let row = self.db.admin.query_one(sql, &[&task]).await.unwrap();
        row.get(0)
    }

    /// The causes of a task's events, in order.
    pub(crate) async fn causes(&self, task: Uuid) -> Vec<String> {
        let events = self.store.events(task).await.unwrap();
        events.into_iter().map(|event| event.cause).collect()
    }
}

pub(crate) async fn store_at(url: &str) -> Store {
    let mark = if url.contains('?') { '&' } else { '?' };
    let config = Config::from_url(&format!("{url}{mark}statements=named")).unwrap();
    Store::connect(config).await.unwrap()
}

/// For a line through the proxy: the text of each statement is in each request.
pub(crate) async fn store_at_unnamed(url: &str) -> Store {
    Store::connect(Config::from_url(url).unwrap())
        .await
        .unwrap()
}

pub(crate) fn worker_on(store: Store) -> WorkerBuilder {
    Worker::builder(store)
        .name("test")
        .lease_ttl(TTL)
        .kill_after(Duration::from_secs(10))
        .budgets(Budgets {
            stop_acquiring: Duration::from_secs(5),
            drain: Duration::from_secs(20),
            cancel_and_save: Duration::from_secs(5),
            exit_margin: Duration::from_secs(10),
        })
}

/// A running worker.
pub(crate) struct Running {
    pub(crate) handle: WorkerHandle,
    _shutdown: oneshot::Sender<()>,
    exit: JoinHandle<Result<Exit, WorkerError>>,
}

impl Running {
    pub(crate) fn start(builder: WorkerBuilder) -> Self {
        let worker = builder.build().unwrap();
        let handle = worker.handle();
        let (shutdown, asked) = oneshot::channel::<()>();
        let exit = tokio::spawn(worker.run(async {
            asked.await.ok();
        }));
        Self {
            handle,
            _shutdown: shutdown,
            exit,
        }
    }

    /// How it ends, without asking it to.
    pub(crate) async fn exit(self) -> Exit {
        let exit = tokio::time::timeout(BOUND, self.exit).await;
        exit.expect("the worker did not end").unwrap().unwrap()
    }

    pub(crate) async fn drain(self) -> Exit {
        self.handle.drain();
        self.exit().await
    }
}

/// The result of a task that has succeeded.
pub(crate) fn result(task: &TaskDetail) -> Value {
    assert_eq!(task.state, 5, "{task:?}");
    serde_json::from_slice(task.result.as_deref().unwrap()).unwrap()
}

/// A policy whose retries do not keep a test waiting.
pub(crate) fn quick_retries() -> RetryPolicy {
    RetryPolicy {
        backoff_initial_ms: 1,
        backoff_cap_ms: 1,
        ..RetryPolicy::default()
    }
}

/// Waits until a worker has so many handlers running.
pub(crate) async fn started(worker: &Running, wanted: usize) {
    wait_until("running handlers", BOUND, async || {
        worker.handle.snapshot().executing == wanted
    })
    .await;
}

/// A task without input whose retries are quick.
pub(crate) fn quick_task(kind: &str) -> NewTask {
    NewTask {
        policy: quick_retries(),
        ..NewTask::new(kind, "null")
    }
}
