//! Submit: one task, a batch, inside the caller's transaction, with idempotency keys, waiting for the result.
//!
//! Invariants: everything is checked before anything is written; a batch is written whole or not at all; the same key with
//! the same payload gives the same task; a notification is a hint, sent after the commit and outside of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aegis_model::LaneRange;
use aegis_model::limits::{
    DURATION_MS_MAX, KEY_CHARS_MAX, KEY_KEPT_MS, KILL_AFTER_MS, MAX_CRASHES, MAX_FAILURES,
    NAME_CHARS_MAX, NOTIFY_EVERY_MS, PAYLOAD_BYTES_MAX, SUBMIT_BATCH_MAX,
};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::error::StoreError;
use crate::generated::client;
use crate::session::{Conn, Session};
use crate::store::Store;
use crate::transaction::commit_checked;

/// How often a key that expires just then is reserved anew.
const KEY_TRIES: usize = 3;

/// When a task is tried again, given up, set aside, and how long it may take. Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    /// Handler errors until it is given up: 1 to 1000.
    pub max_failures: i32,
    /// Crashes alone until it is quarantined: 1 to 100.
    pub max_crashes: i32,
    /// First back-off; doubled at each failure, ± 25 %.
    pub backoff_initial_ms: i64,
    /// Longest back-off.
    pub backoff_cap_ms: i64,
    /// From submit to the first start.
    pub schedule_to_start_ms: Option<i64>,
    /// One attempt.
    pub start_to_close_ms: Option<i64>,
    /// From a cancel request or a deadline until the execution is ended for it.
    pub kill_after_ms: i64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_failures: MAX_FAILURES,
            max_crashes: MAX_CRASHES,
            backoff_initial_ms: 1000,
            backoff_cap_ms: 600_000,
            schedule_to_start_ms: None,
            start_to_close_ms: None,
            kill_after_ms: KILL_AFTER_MS,
        }
    }
}

/// A task to submit.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// What to do.
    pub kind: String,
    /// Where to wait.
    pub queue: String,
    /// Who it belongs to.
    pub tenant: String,
    /// The input, JSON; at most 256 KiB.
    pub input: Vec<u8>,
    /// The protocol of the input.
    pub protocol: i32,
    /// Same key and payload: same task.
    pub key: Option<String>,
    /// Not before.
    pub run_at: Option<Timestamp>,
    /// 0 first, 9 last.
    pub priority: i16,
    /// Ended or failed by then.
    pub deadline_at: Option<Timestamp>,
    /// For people's filters: an object of strings.
    pub labels: Option<Value>,
    /// Retries and deadlines.
    pub policy: RetryPolicy,
}

impl NewTask {
    /// A task of a kind with its JSON input, everything else at its default.
    pub fn new(kind: impl Into<String>, input: impl Into<Vec<u8>>) -> Self {
        Self {
            kind: kind.into(),
            queue: "default".to_owned(),
            tenant: "default".to_owned(),
            input: input.into(),
            protocol: 1,
            key: None,
            run_at: None,
            priority: 5,
            deadline_at: None,
            labels: None,
            policy: RetryPolicy::default(),
        }
    }

    fn check(&self, position: usize) -> Result<(), StoreError> {
        let bad = |field, problem: String| StoreError::BadTask {
            field,
            position,
            problem,
        };
        if self.input.len() > PAYLOAD_BYTES_MAX {
            return Err(StoreError::TooLarge {
                what: format!("the input of task {position}"),
                bytes: self.input.len(),
                limit: PAYLOAD_BYTES_MAX,
            });
        }
        let text = std::str::from_utf8(&self.input)
            .map_err(|error| bad("input", format!("is not UTF-8: {error}")))?;
        serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map_err(|error| bad("input", format!("is not JSON: {error}")))?;
        if let Some(escape) = unstorable(text) {
            return Err(bad("input", escape.problem().to_owned()));
        }
        let labels = self.labels.as_ref().map(Value::to_string);
        if let Some(escape) = labels.as_deref().and_then(unstorable) {
            return Err(bad("labels", escape.problem().to_owned()));
        }
        for (field, name) in [
            ("kind", &self.kind),
            ("queue", &self.queue),
            ("tenant", &self.tenant),
        ] {
            let chars = name.chars().count();
            if chars == 0 || chars > NAME_CHARS_MAX || name.contains('\0') {
                return Err(bad(
                    field,
                    format!("has {chars} characters; use 1 to {NAME_CHARS_MAX}, without NUL"),
                ));
            }
        }
        if let Some(key) = &self.key {
            let chars = key.chars().count();
            if chars == 0 || chars > KEY_CHARS_MAX || key.contains('\0') {
                return Err(bad(
                    "key",
                    format!("has {chars} characters; use 1 to {KEY_CHARS_MAX}, without NUL"),
                ));
            }
        }
        if self.protocol < 1 {
            return Err(bad(
                "protocol",
                format!("is {}; protocols start at 1", self.protocol),
            ));
        }
        if !(0..=9).contains(&self.priority) {
            return Err(bad(
                "priority",
                format!("is {}; use 0 (first) to 9 (last)", self.priority),
            ));
        }
        if self
            .deadline_at
            .zip(self.run_at)
            .is_some_and(|(deadline, run_at)| deadline <= run_at)
        {
            return Err(bad(
                "deadline_at",
                "is not after run_at; the task could never run".to_owned(),
            ));
        }
        self.policy
            .check()
            .map_err(|problem| bad("policy", problem))
    }
}

/// An escape that is JSON and that no PostgreSQL document can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unstorable {
    Nul,
    LoneSurrogate,
}

impl Unstorable {
    fn problem(self) -> &'static str {
        match self {
            Self::Nul => {
                "has the character \\u0000, which PostgreSQL's jsonb cannot hold; leave it out"
            }
            Self::LoneSurrogate => {
                "has half of a surrogate pair (\\ud800 to \\udfff), which is no character; write both halves, or none"
            }
        }
    }
}

/// Looks for one in a text that is known to be JSON.
fn unstorable(json: &str) -> Option<Unstorable> {
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0) => return Some(Unstorable::Nul),
            Some(0xd800..=0xdbff) => match unit(at + 6) {
                Some(0xdc00..=0xdfff) => at += 12,
                _ => return Some(Unstorable::LoneSurrogate),
            },
            Some(0xdc00..=0xdfff) => return Some(Unstorable::LoneSurrogate),
            Some(_) => at += 6,
            // Another escape, perhaps of a backslash.
            None => at += 2,
        }
    }
    None
}

impl RetryPolicy {
    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: i64, low: i64, high: i64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} is {value}; use {low} to {high}"))
            }
        };
        within("max_failures", self.max_failures.into(), 1, 1000)?;
        within("max_crashes", self.max_crashes.into(), 1, 100)?;
        within("backoff_initial_ms", self.backoff_initial_ms, 1, 86_400_000)?;
        within("backoff_cap_ms", self.backoff_cap_ms, 1, 604_800_000)?;
        within("kill_after_ms", self.kill_after_ms, 0, 86_400_000)?;
        within(
            "schedule_to_start_ms",
            self.schedule_to_start_ms.unwrap_or(1),
            1,
            DURATION_MS_MAX,
        )?;
        within(
            "start_to_close_ms",
            self.start_to_close_ms.unwrap_or(1),
            1,
            DURATION_MS_MAX,
        )
    }
}

/// What a submit gave for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The task's id.
    pub task: Uuid,
    /// False: the key was used before, with the same payload.
    pub is_new: bool,
}

/// A batch whose names were resolved to ids.
struct Resolved {
    tasks: Vec<NewTask>,
    lanes: Vec<i32>,
    tenants: Vec<i32>,
    policies: Vec<i32>,
}

impl Store {
    /// Submits one task.
    ///
    /// # Errors
    /// As [`Store::submit_batch`].
    pub async fn submit(&self, task: NewTask) -> Result<Submitted, StoreError> {
        let answers = self.submit_batch(vec![task]).await?;
        answers.into_iter().next().ok_or(StoreError::Panicked)
    }

    /// Submits a batch of at most 10,000, whole or not at all. Answers in the order given.
    ///
    /// # Errors
    /// [`StoreError::BadTask`], [`StoreError::TooLarge`] or [`StoreError::KeyConflict`] with nothing written. After
    /// [`StoreError::lost_answer`] submit again: tasks with keys are not doubled, others may be.
    pub async fn submit_batch(&self, tasks: Vec<NewTask>) -> Result<Vec<Submitted>, StoreError> {
        let resolved = self.resolve(tasks).await?;
        let queues: BTreeSet<&str> = resolved
            .tasks
            .iter()
            .map(|task| task.queue.as_str())
            .collect();
        let queues: Vec<String> = queues.into_iter().map(str::to_owned).collect();
        let submitted = self
            .detached(async move |store| {
                let mut pooled = store.conn().await?;
                if resolved.tasks.iter().all(|task| task.key.is_none()) {
                    return write(&pooled.conn(), &resolved, &vec![None; resolved.tasks.len()])
                        .await;
                }
                let mode = pooled.mode();
                let transaction = pooled.client().transaction().await?;
                let submitted =
                    write_keyed(&Conn::in_transaction(&transaction, mode), &resolved).await?;
                commit_checked(transaction).await?;
                Ok(submitted)
            })
            .await?;
        self.wake(&queues).await;
        Ok(submitted)
    }

    /// Submits inside a transaction of the caller's, in which the task becomes visible. Lanes, tenants and policies that are
    /// new are made in short transactions of their own. Nobody is woken: workers poll within one and a half.
    ///
    /// # Errors
    /// As [`Store::submit_batch`]; the caller then rolls back.
    pub async fn submit_in(
        &self,
        transaction: &tokio_postgres::Transaction<'_>,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<Submitted>, StoreError> {
        let resolved = self.resolve(tasks).await?;
        write_keyed(transaction, &resolved).await
    }

    async fn resolve(&self, tasks: Vec<NewTask>) -> Result<Resolved, StoreError> {
        if tasks.len() > SUBMIT_BATCH_MAX {
            return Err(StoreError::TooLarge {
                what: "the batch (counted in tasks)".to_owned(),
                bytes: tasks.len(),
                limit: SUBMIT_BATCH_MAX,
            });
        }
        for (position, task) in tasks.iter().enumerate() {
            task.check(position)?;
        }
        let mut resolved = Resolved {
            lanes: Vec::with_capacity(tasks.len()),
            tenants: Vec::with_capacity(tasks.len()),
            policies: Vec::with_capacity(tasks.len()),
            tasks,
        };
        for (n, task) in resolved.tasks.iter().enumerate() {
            // Most batches are of one kind: what the task before had is not looked up again.
            let before = n.checked_sub(1).map(|at| (&resolved.tasks[at], at));
            let lane = match before {
                Some((other, at))
                    if (&other.queue, &other.kind, other.protocol)
                        == (&task.queue, &task.kind, task.protocol) =>
                {
                    resolved.lanes[at]
                }
                _ => {
                    let range = LaneRange {
                        lo: task.protocol,
                        hi: task.protocol,
                    };
                    self.lane_id(&task.queue, &task.kind, range).await?
                }
            };
            let tenant = match before {
                Some((other, at)) if other.tenant == task.tenant => resolved.tenants[at],
                _ => self.tenant_id(&task.tenant).await?,
            };
            let policy = match before {
                Some((other, at)) if other.policy == task.policy => resolved.policies[at],
                _ => self.policy_id(&task.policy).await?,
            };
            resolved.lanes.push(lane);
            resolved.tenants.push(tenant);
            resolved.policies.push(policy);
        }
        Ok(resolved)
    }

    /// Wakes idle workers, at most once in 100 ms a queue from this process. A lost hint costs at most a poll.
    async fn wake(&self, queues: &[String]) {
        static LAST: Mutex<Option<HashMap<String, Instant>>> = Mutex::new(None);
        let due: Vec<&str> = {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            let last = last.get_or_insert_with(HashMap::new);
            let now = Instant::now();
            let every = Duration::from_millis(NOTIFY_EVERY_MS);
            queues
                .iter()
                .filter(|queue| {
                    let due = last
                        .get(*queue)
                        .is_none_or(|at| now.duration_since(*at) >= every);
                    if due {
                        last.insert((*queue).clone(), now);
                    }
                    due
                })
                .map(String::as_str)
                .collect()
        };
        if due.is_empty() {
            return;
        }
        let sent = async {
            client::notify(&self.conn().await?.conn(), &due)
                .await
                .map_err(StoreError::from)
        };
        if let Err(error) = sent.await {
            tracing::debug!(error = %error, "idle workers were not woken; they poll");
        }
    }
}

async fn write_keyed(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
) -> Result<Vec<Submitted>, StoreError> {
    let mut open: Vec<usize> = (0..batch.tasks.len())
        .filter(|&n| batch.tasks[n].key.is_some())
        .collect();
    let mut new: HashMap<(i32, String, String), Uuid> = HashMap::new();
    let mut known: HashMap<usize, Uuid> = HashMap::new();
    for _ in 0..KEY_TRIES {
        if open.is_empty() {
            break;
        }
        reserve(session, batch, &open, &mut new, &mut known).await?;
        open.retain(|n| !known.contains_key(n));
    }
    if let Some(&position) = open.first() {
        return Err(StoreError::BadTask {
            field: "key",
            position,
            problem: "expired again and again while it was used; submit once more".to_owned(),
        });
    }
    // The first of several equal keys in one batch makes the task; the others answer it.
    let mut ids: Vec<Option<Uuid>> = Vec::with_capacity(batch.tasks.len());
    let mut write_these = Vec::new();
    for (n, task) in batch.tasks.iter().enumerate() {
        let minted = task
            .key
            .as_ref()
            .and_then(|key| new.remove(&(batch.tenants[n], task.kind.clone(), key.clone())));
        if task.key.is_none() || minted.is_some() {
            write_these.push(n);
        }
        ids.push(minted);
    }
    let written = write_some(session, batch, &write_these, &ids).await?;
    Ok((0..batch.tasks.len())
        .map(|n| match written.get(&n).copied() {
            Some(task) => Submitted { task, is_new: true },
            None => Submitted {
                task: known.get(&n).copied().unwrap_or_default(),
                is_new: false,
            },
        })
        .collect())
}

/// Reserves the keys of the tasks `these` and reads what stands under them. A key that expires between the two statements is
/// neither new nor known afterwards.
async fn reserve(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    these: &[usize],
    new: &mut HashMap<(i32, String, String), Uuid>,
    known: &mut HashMap<usize, Uuid>,
) -> Result<(), StoreError> {
    let tasks = || these.iter().map(|&n| &batch.tasks[n]);
    let tenants: Vec<i32> = these.iter().map(|&n| batch.tenants[n]).collect();
    let kinds: Vec<&str> = tasks().map(|task| task.kind.as_str()).collect();
    let keys: Vec<&str> = tasks().filter_map(|task| task.key.as_deref()).collect();
    let protocols: Vec<i32> = tasks().map(|task| task.protocol).collect();
    let inputs: Vec<&[u8]> = tasks().map(|task| task.input.as_slice()).collect();
    let reservation = client::ReserveKeysParams {
        content_type: 0,
        keep_ms: KEY_KEPT_MS,
        tenants: &tenants,
        kinds: &kinds,
        keys: &keys,
        protocols: &protocols,
        inputs: &inputs,
    };
    for row in client::reserve_keys(session, &reservation).await? {
        new.insert((row.tenant, row.kind, row.key), row.task);
    }
    // A second statement: beside an uncommitted twin the first one cannot see what it waited for.
    for row in client::find_keys(session, 0, &tenants, &kinds, &keys, &protocols, &inputs).await? {
        let n = usize::try_from(row.position - 1)
            .ok()
            .and_then(|at| these.get(at))
            .copied()
            .ok_or(StoreError::Panicked)?;
        if !row.same {
            return Err(StoreError::KeyConflict {
                key: batch.tasks[n].key.clone().unwrap_or_default(),
                kind: batch.tasks[n].kind.clone(),
                task: row.task,
            });
        }
        known.insert(n, row.task);
    }
    Ok(())
}

async fn write_some(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    these: &[usize],
    ids: &[Option<Uuid>],
) -> Result<HashMap<usize, Uuid>, StoreError> {
    if these.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Option<Uuid>> = these.iter().map(|&n| ids[n]).collect();
    let part = Resolved {
        tasks: these.iter().map(|&n| batch.tasks[n].clone()).collect(),
        lanes: these.iter().map(|&n| batch.lanes[n]).collect(),
        tenants: these.iter().map(|&n| batch.tenants[n]).collect(),
        policies: these.iter().map(|&n| batch.policies[n]).collect(),
    };
    let written = write(session, &part, &ids).await?;
    Ok(these
        .iter()
        .copied()
        .zip(written.into_iter().map(|one| one.task))
        .collect())
}

async fn write(
    session: &(impl Session + ?Sized),
    batch: &Resolved,
    ids: &[Option<Uuid>],
) -> Result<Vec<Submitted>, StoreError> {
    let tasks = &batch.tasks;
    let protocols: Vec<i32> = tasks.iter().map(|task| task.protocol).collect();
    let priorities: Vec<i16> = tasks.iter().map(|task| task.priority).collect();
    let run_ats: Vec<Option<Timestamp>> = tasks.iter().map(|task| task.run_at).collect();
    let deadlines: Vec<Option<Timestamp>> = tasks.iter().map(|task| task.deadline_at).collect();
    let inputs: Vec<&[u8]> = tasks.iter().map(|task| task.input.as_slice()).collect();
    let labels: Vec<Option<&Value>> = tasks.iter().map(|task| task.labels.as_ref()).collect();
    let rows = client::submit(
        session,
        &client::SubmitParams {
            ids,
            lanes: &batch.lanes,
            tenants: &batch.tenants,
            policies: &batch.policies,
            protocols: &protocols,
            priorities: &priorities,
            run_ats: &run_ats,
            deadlines: &deadlines,
            inputs: &inputs,
            content_type: 0,
            labels: &labels,
            trace: None,
            submitter: None,
        },
    )
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Submitted {
            task: row.id,
            is_new: true,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_document_can_hold_is_found_and_nothing_else() {
        for (json, expected) in [
            (r#""\u0000""#, Some(Unstorable::Nul)),
            (r#""\\\u0000""#, Some(Unstorable::Nul)),
            (r#""\\u0000""#, None),
            (r#""u0000""#, None),
            (r#""\ud83d\ude00""#, None),
            (r#""\ud83d""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ud83dä""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ude00\ud83d""#, Some(Unstorable::LoneSurrogate)),
            (r#""\\ud83d""#, None),
            (r#""\u00e4 \n ä""#, None),
        ] {
            assert_eq!(unstorable(json), expected, "{json}");
        }
    }

    #[test]
    fn a_policy_without_end_is_refused() {
        for policy in [
            RetryPolicy {
                start_to_close_ms: Some(i64::MAX),
                ..RetryPolicy::default()
            },
            RetryPolicy {
                schedule_to_start_ms: Some(DURATION_MS_MAX + 1),
                ..RetryPolicy::default()
            },
        ] {
            assert!(policy.check().unwrap_err().contains("315360000000"));
        }
    }

    #[test]
    fn an_input_that_is_not_utf_8_is_refused() {
        let error = NewTask::new("k", b"\"\xff\"".to_vec())
            .check(0)
            .unwrap_err();
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
    }
}
