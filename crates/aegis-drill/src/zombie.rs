//! A process that claims a task, is frozen beyond its lease, wakes up, and reports what it believes.
//!
//! Unlike a worker it has no clock of its own and obeys nobody: only the guard stands between its report and the task. It does
//! a worker's housekeeping before it freezes.

use std::path::Path;
use std::time::Duration;

use aegis_model::{Held, Outcome, ProtocolRange, State};
use aegis_store::guarded::{Completion, Failure};
use aegis_store::worker::{Capability, Registration};
use aegis_store::{AcquireRequest, Config, Cursor, KindCapacity, Store, StoreError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;
use uuid::Uuid;

use crate::error::DrillError;
use crate::history::{Event, History};
use crate::worker::KIND;

const LEASE_MS: i64 = 1000;
const TRIES: usize = 60;
/// On a busy machine there is nothing to claim for a while.
const CLAIM_TRIES: usize = 1500;

/// What it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The task is done.
    Complete,
    /// The task failed.
    Fail,
}

/// Claims, freezes itself, and reports when somebody has woken it up.
///
/// # Errors
/// [`DrillError`] when there is nothing to claim or the database cannot be used.
pub async fn haunt(
    url: &str,
    history: &Path,
    queue: &str,
    report: Report,
) -> Result<(), DrillError> {
    let history = History::open(history)?;
    let store = Store::connect(Config::from_url(url)?.with_pool_size(2)).await?;
    let held = claim(&store, queue).await?;
    history.tell(Event::Claimed {
        task: held.task,
        epoch: held.epoch,
    })?;
    kill(getpid(), Signal::SIGSTOP).map_err(|errno| {
        DrillError::system("stop this process")(std::io::Error::from_raw_os_error(errno as i32))
    })?;
    let mut answer = late(&store, held, report).await;
    for _ in 0..TRIES {
        if !matches!(answer, Ok(Outcome::Unknown) | Err(_)) {
            break;
        }
        // The database is away: it insists, as nobody should.
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = late(&store, held, report).await;
    }
    history.tell(Event::Late {
        task: held.task,
        epoch: held.epoch,
        report: match report {
            Report::Complete => "complete",
            Report::Fail => "fail",
        }
        .to_owned(),
        answer: match answer {
            Ok(Outcome::Applied(_)) => "applied",
            Ok(Outcome::Fenced(_)) => "fenced",
            Ok(Outcome::Unknown) | Err(_) => "unknown",
        }
        .to_owned(),
    })
}

async fn claim(store: &Store, queue: &str) -> Result<Held, DrillError> {
    let worker = Uuid::now_v7();
    store.register(registration(worker, queue)?).await?;
    for _ in 0..CLAIM_TRIES {
        store.tick(worker).await?;
        let request = AcquireRequest {
            worker,
            request: Uuid::new_v4(),
            capacity: vec![KindCapacity {
                queue: queue.to_owned(),
                kind: KIND.to_owned(),
                kind_free: 1,
                queue_free: 1,
            }],
            count: 1,
            cursor: Cursor::default(),
        };
        if let Some(claim) = store.acquire(request).await?.claims.pop() {
            return Ok(claim.held);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(DrillError::Child {
        name: "the frozen process".to_owned(),
        why: "there was nothing to claim".to_owned(),
    })
}

async fn late(store: &Store, held: Held, report: Report) -> Result<Outcome<State>, StoreError> {
    let answers = match report {
        Report::Complete => {
            let result = Some(b"\"late\"".to_vec());
            store.complete(vec![Completion { held, result }]).await?
        }
        Report::Fail => {
            let failure = Failure {
                held,
                code: "late".to_owned(),
                message: "a failure that was reported too late".to_owned(),
                retryable: false,
                details: None,
                retry_after_ms: None,
            };
            store.fail(vec![failure]).await?
        }
    };
    Ok(answers.into_iter().next().unwrap_or(Outcome::Unknown))
}

fn registration(worker: Uuid, queue: &str) -> Result<Registration, DrillError> {
    let protocols = ProtocolRange::new(1, 1, 1).map_err(|error| DrillError::Child {
        name: "the frozen process".to_owned(),
        why: error.to_string(),
    })?;
    Ok(Registration {
        worker,
        predecessor: None,
        name: "late".to_owned(),
        host: "drill".to_owned(),
        pid: i32::try_from(std::process::id()).unwrap_or_default(),
        release: "none".to_owned(),
        build: "none".to_owned(),
        digest: "none".to_owned(),
        slots: 1,
        ttl_ms: LEASE_MS,
        capabilities: vec![Capability {
            queue: queue.to_owned(),
            kind: KIND.to_owned(),
            protocols,
            slots: 1,
        }],
    })
}
