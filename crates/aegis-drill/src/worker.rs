//! A worker process of the drill: a step, a checkpoint, an operation of one of the four classes, and own SQL in the fence's
//! transaction.
//!
//! Invariant: what it sees is in its history before it goes on. Must never decide for itself whether an effect may be repeated.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;

use aegis_worker::points::{Listener, Reached, Subject};
use aegis_worker::{
    Budgets, CallError, Class, Config, Exit, HttpCall, HttpPolicy, OperationCall, Probe,
    ProtocolRange, Protocols, Store, TaskContext, TaskError, TaskHandler, Worker, WorkerHandle,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::DrillError;
use crate::history::{Event, History, now_ns};
use crate::oracle::{CALM, CLASSES, REQUEST_LIFE};

/// The kind of the drill's tasks.
pub const KIND: &str = "drill";
/// The lease of the drill's workers.
pub const LEASE: Duration = Duration::from_secs(2);
/// A connection that is dead in silence is noticed so late.
const DEADLINE: Duration = Duration::from_secs(5);
/// Below the oracle's lateness, so that a late effect is a lost answer.
const CALL_TIMEOUT: Duration = Duration::from_millis(300);
/// Whose process will be killed at a cut: an answer that a busy machine delays is not lost, or a blind task would wait for a
/// person and never stand there.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(3);
/// A clock that runs does not move so much between two looks.
const CLOCK_MOVED_MS: i64 = 60_000;
const STOPS_WITHIN: Duration = Duration::from_millis(100);
const COUNTS_EVERY: Duration = Duration::from_millis(100);
const OWN_SQL: &str = include_str!("../sql/own.sql");

/// How a worker of the drill is started.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The database.
    pub url: String,
    /// Around the pooler, when the first goes through one.
    pub direct_url: Option<String>,
    /// The oracle.
    pub oracle: String,
    /// Its history.
    pub history: PathBuf,
    /// What people call it.
    pub name: String,
    /// Where its tasks wait.
    pub queue: String,
    /// Executions at once.
    pub slots: usize,
    /// Every execution stops here, for ever: the cut's word.
    pub hold_at: Option<String>,
    /// What stands there is no cut: it only keeps its task.
    pub in_hand: bool,
    /// The process freezes itself in its first call, after the last look at the lease, and sends when it is woken.
    pub freeze: bool,
    /// It reads protocols 1 to this one, and writes this one.
    pub protocol: i32,
}

/// What a task is asked to do.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Work {
    /// Its number; decides the class of its operation.
    pub n: u64,
    /// Its calls go well: the kill is what goes wrong.
    pub calm: bool,
}

#[derive(Debug, Clone)]
struct Handler {
    oracle: String,
    client: reqwest::Client,
    history: Arc<History>,
    freeze: bool,
    call_timeout: Duration,
    protocols: Protocols,
}

#[derive(Debug, Deserialize)]
struct Probed {
    answer: String,
    result: Option<Value>,
}

/// Runs a worker until SIGTERM.
///
/// # Errors
/// [`DrillError`] when it cannot start.
pub async fn work(options: WorkerOptions) -> Result<Exit, DrillError> {
    let history = Arc::new(History::open(&options.history)?);
    let range = ProtocolRange::new(1, options.protocol, options.protocol).map_err(|error| {
        DrillError::Child {
            name: options.name.clone(),
            why: error.to_string(),
        }
    })?;
    let is_newer = options.protocol > 1;
    if is_newer {
        history.tell(Event::Reads {
            max: options.protocol,
        })?;
    }
    let handler = Handler {
        oracle: options.oracle,
        client: reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(2))
            .build()?,
        history: Arc::clone(&history),
        freeze: options.freeze,
        call_timeout: if options.hold_at.is_some() {
            PATIENT_TIMEOUT
        } else {
            CALL_TIMEOUT
        },
        protocols: Protocols::new(range),
    };
    let mut config = Config::from_url(&options.url)?
        .with_pool_size(3)
        .with_deadline(DEADLINE);
    if let Some(direct) = &options.direct_url {
        config = config.with_direct_url(direct)?;
    }
    let config = config.with_application_name(&options.name);
    let store = Store::connect(config).await?;
    // Many tasks have to stand at a cut before one kill: a busy machine must not take the lease before. A newer one holds few.
    let lease = if options.hold_at.is_some() && !is_newer {
        LEASE * 3
    } else {
        LEASE
    };
    let mut builder = Worker::builder(store)
        .name(&options.name)
        .queue(&options.queue)
        .handler(handler)
        .slots(options.slots)
        .lease_ttl(lease)
        .kill_after(Duration::from_secs(1))
        .http_policy(HttpPolicy::public_only().allow_loopback())
        .budgets(Budgets {
            stop_acquiring: Duration::from_secs(2),
            drain: Duration::from_secs(2),
            cancel_and_save: Duration::from_secs(1),
            exit_margin: Duration::from_secs(2),
        });
    if let Some(at) = options.hold_at {
        builder = builder.points(Arc::new(Holding {
            at,
            stands: match (is_newer, options.in_hand) {
                (true, _) => Stands::WithNewer,
                (false, true) => Stands::InHand,
                (false, false) => Stands::AtACut,
            },
            history: Arc::clone(&history),
        }));
    }
    let worker = builder.build()?;
    let counting = tokio::spawn(count(worker.handle(), Arc::clone(&history)));
    let handle = worker.handle();
    let exit = worker.run_until_signal().await?;
    counting.abort();
    history.tell(counts(&handle))?;
    history.tell(Event::Ended { code: exit.code() })?;
    Ok(exit)
}

/// A killed worker's counts are those of a moment before.
async fn count(handle: WorkerHandle, history: Arc<History>) {
    let mut last = None;
    let mut beat = tokio::time::interval(COUNTS_EVERY);
    let mut apart = apart_ms();
    loop {
        beat.tick().await;
        let moved_ms = apart_ms() - apart;
        if moved_ms.abs() > CLOCK_MOVED_MS {
            apart += moved_ms;
            if history.tell(Event::Clock { moved_ms }).is_err() {
                return;
            }
        }
        let now = counts(&handle);
        if last.as_ref() != Some(&now) {
            if history.tell(now.clone()).is_err() {
                return;
            }
            last = Some(now);
        }
    }
}

/// How far the wall clock is from the monotonic one.
fn apart_ms() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall_ms = wall.map_or(0, |since| since.as_millis());
    i64::try_from(wall_ms).unwrap_or_default() - now_ns() / 1_000_000
}

fn counts(handle: &WorkerHandle) -> Event {
    let counts = handle.snapshot().counts;
    Event::Counts {
        fenced: counts.fenced,
        unknown_resolved: counts.unknown_resolved,
        acquire_repeated: counts.acquire_repeated,
        leases_lost: counts.leases_lost,
    }
}

impl TaskHandler for Handler {
    const KIND: &'static str = KIND;
    type Input = Work;
    type Output = u64;
    /// 1: begun; 2: its own row is there.
    type Checkpoint = u8;

    fn protocols(&self) -> Protocols {
        self.protocols.clone()
    }

    async fn run(&self, ctx: TaskContext<u8>, work: Work) -> Result<u64, TaskError> {
        let task = ctx.task_id();
        self.tell(Event::Started { task })?;
        let twice: u64 = ctx
            .step("double", work.n, || async { Ok(work.n.wrapping_mul(2)) })
            .await?;
        let saved = ctx.checkpoint().await?.unwrap_or_default();
        if saved < 1 {
            ctx.save_checkpoint(&1).await?;
        }
        let class = class_of(work.n);
        self.perform(&ctx, work, class).await?;
        self.tell(Event::Told {
            task,
            class: class.to_owned(),
        })?;
        if saved < 2 {
            ctx.commit(&2, move |tx| {
                Box::pin(async move {
                    tx.execute(OWN_SQL, &[&task]).await?;
                    Ok(())
                })
            })
            .await?;
        }
        Ok(twice)
    }
}

/// By turn.
pub(crate) fn class_of(n: u64) -> &'static str {
    match n % 4 {
        0 => CLASSES[0],
        1 => CLASSES[1],
        2 => CLASSES[2],
        _ => CLASSES[3],
    }
}

impl Handler {
    fn tell(&self, event: Event) -> Result<(), TaskError> {
        // Without a history the run tells nothing, so it must not go on.
        self.history
            .tell(event)
            .map_err(|error| TaskError::terminal("history", error.to_string()))
    }

    async fn perform(
        &self,
        ctx: &TaskContext<u8>,
        work: Work,
        class: &'static str,
    ) -> Result<Value, TaskError> {
        let body = json!({ "n": work.n });
        let mut call = HttpCall::post(format!("{}/{class}", self.oracle), &body);
        if work.calm {
            call = call.header(CALM, "1");
        }
        let operation = ctx
            .operation(class, work.n)
            .request(&body)
            .timeout(self.call_timeout)
            .quiet(REQUEST_LIFE);
        if self.freeze {
            let url = format!("{}/{class}", self.oracle);
            let call = |asked| self.freeze_and_send(url.clone(), class, asked);
            let done = match class {
                "idempotent" => operation.class(Class::Idempotent).execute(call).await,
                "fenced" => operation.class(Class::Fenced).execute(call).await,
                "queryable" => {
                    operation
                        .probe(|asked| self.probe(asked))
                        .execute(call)
                        .await
                }
                _ => operation.class(Class::Blind).execute(call).await,
            };
            return Ok(done?);
        }
        let done = match class {
            "idempotent" => operation.class(Class::Idempotent).http(call).await,
            "fenced" => operation.class(Class::Fenced).http(call).await,
            "queryable" => operation.probe(|asked| self.probe(asked)).http(call).await,
            _ => operation.class(Class::Blind).http(call).await,
        };
        Ok(done?)
    }

    /// Stops this process where no look at the lease comes any more, and sends when somebody has woken it up.
    async fn freeze_and_send(
        &self,
        url: String,
        class: &'static str,
        asked: OperationCall,
    ) -> Result<Value, CallError> {
        let not_sent = |message: String| CallError::turned_away(message);
        let task = asked.task;
        let request = self
            .client
            .post(url)
            .header(CALM, "1")
            .header("Aegis-Operation", &asked.id)
            .header("Idempotency-Key", &asked.id)
            .header("Aegis-Task", task.to_string())
            .header("Fencing-Token", asked.fencing_token.to_string());
        let window = Event::Window {
            task,
            class: class.to_owned(),
        };
        self.history
            .tell(window)
            .map_err(|error| not_sent(error.to_string()))?;
        kill(getpid(), Signal::SIGSTOP).map_err(|errno| not_sent(errno.to_string()))?;
        // A request that has left cannot be called back, so it must not end with this future.
        let history = Arc::clone(&self.history);
        let sent = tokio::spawn(async move {
            // This thread may run on for a moment until the signal stops all of them, and nothing may leave before that.
            tokio::time::sleep(STOPS_WITHIN).await;
            let status = request
                .send()
                .await
                .ok()
                .map(|answer| answer.status().as_u16());
            history.tell(Event::Woken { task, status }).ok();
            status
        });
        match sent.await {
            Ok(Some(200)) => Ok(Value::Null),
            _ => Err(CallError::Doubtful {
                message: "the answer of a late request".to_owned(),
            }),
        }
    }

    async fn probe(&self, asked: OperationCall) -> Result<Probe<Value>, TaskError> {
        let failed =
            |error: reqwest::Error| TaskError::retryable("probe_failed", error.to_string());
        let mut url = reqwest::Url::parse(&self.oracle)
            .map_err(|error| TaskError::terminal("bad_url", error.to_string()))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["queryable", &asked.id]);
        }
        let answer: Probed = self
            .client
            .get(url)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .map_err(failed)?
            .json()
            .await
            .map_err(failed)?;
        Ok(match (answer.answer.as_str(), answer.result) {
            ("happened", Some(result)) => Probe::Happened(result),
            ("did_not_happen", _) => Probe::DidNotHappen,
            _ => Probe::CannotTell,
        })
    }
}

/// What an execution that is held says of itself.
#[derive(Debug, Clone, Copy)]
enum Stands {
    AtACut,
    WithNewer,
    InHand,
}

/// Holds every execution at one cut of its operation.
struct Holding {
    at: String,
    stands: Stands,
    history: Arc<History>,
}

impl Listener for Holding {
    fn reached(&self, reached: Reached) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let here = matches!(reached.point.subject, Subject::Operation { .. })
                && reached.point.cut.word() == self.at;
            if here {
                let task = reached.task;
                let event = match self.stands {
                    Stands::WithNewer => Event::NewerSaved { task },
                    Stands::InHand => Event::InHand { task },
                    Stands::AtACut => Event::Held {
                        task,
                        point: reached.point.to_string(),
                    },
                };
                if self.history.tell(event).is_ok() {
                    std::future::pending::<()>().await;
                }
            }
        })
    }
}
