//! What a person changes on tasks: one verb, on some ids or on all that a filter finds.
//!
//! Invariants: who and why are kept with each task; each row is judged again under its lock, so that no task is changed that no
//! longer is what was asked for; a page is one short statement, whole or not at all; every verb may be repeated. An edit
//! moves neither `rev` nor `epoch`.
//!
//! Never: hold a lock between pages; wait for a row that somebody holds while holding others.

use std::collections::BTreeSet;

use aegis_model::State;
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::StoreError;
use crate::filter::{TaskFilter, Walk, Wanted};
use crate::generated::task;
use crate::store::Store;

/// How many tasks a statement changes.
pub const PAGE_TASKS: usize = 500;

/// Longest actor and reason, in characters.
const WORDS_MAX: usize = 2000;

/// A verb on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Ends it: now when nobody executes it, otherwise its worker is told.
    Cancel,
    /// Ends the back-off after a failed attempt. The failure stays counted; nothing else is charged.
    Retry,
    /// Starts what waits for its time, for whatever reason it waits.
    RunNow,
    /// Starts it at this moment instead.
    Reschedule {
        /// The database's clock decides when it has come; one that has come means now.
        run_at: Timestamp,
    },
    /// Another place in line.
    Reprioritise {
        /// 0 first, 9 last.
        priority: i16,
    },
    /// Sends a parked task again.
    Redrive,
    /// Gives a parked task up for good.
    Discard,
    /// Replaces the payload of an ended task for ever; the facts stay.
    Erase,
}

impl Change {
    /// The word of the statement.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
            Self::RunNow => "run_now",
            Self::Reschedule { .. } => "reschedule",
            Self::Reprioritise { .. } => "reprioritise",
            Self::Redrive => "redrive",
            Self::Discard => "discard",
            Self::Erase => "erase",
        }
    }

    /// Where tasks stand that it can change: what a filter looks at when it names no state.
    fn place(self) -> Wanted {
        let all = TaskFilter::default().wanted();
        let live = match self {
            Self::Cancel | Self::Reprioritise { .. } => all.live,
            Self::Retry | Self::RunNow => vec![State::Scheduled.number()],
            Self::Reschedule { .. } => {
                vec![State::Scheduled.number(), State::Ready.number()]
            }
            Self::Redrive | Self::Discard | Self::Erase => Vec::new(),
        };
        let parked = match self {
            Self::Redrive | Self::Discard | Self::Reprioritise { .. } => all.parked,
            _ => Vec::new(),
        };
        let ended = match self {
            Self::Erase => all.ended,
            _ => Vec::new(),
        };
        Wanted {
            live,
            parked,
            ended,
        }
    }
}

/// Who changes something, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What became of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Cancelled: it had not started.
    Cancelled,
    /// It runs: its worker is told, and after `kill_after` it is ended for it.
    Requested,
    /// An operation is open: it is cancelled when that is settled.
    Pending,
    /// Ready now.
    Ready,
    /// Waits for its new time.
    Scheduled,
    /// Has its new priority.
    Reprioritised,
    /// Sent again.
    Redriven,
    /// Given up for good.
    Discarded,
    /// Its payload is gone.
    Erased,
    /// Left alone.
    Skipped(Skip),
}

/// Why a task was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// There is no such task.
    Missing,
    /// It is not in a state of the filter any more.
    MovedOn,
    /// Somebody held its row for too long.
    Busy,
    /// It has ended.
    Ended,
    /// It is parked: redrive or discard it.
    Parked,
    /// It has not ended.
    Live,
    /// It does not wait for its time.
    NotWaiting,
    /// It is ready already.
    ReadyAlready,
    /// It waits, but not after a failed attempt.
    NotFailed,
    /// It would start after its deadline.
    PastDeadline,
    /// It has that time, or that priority.
    Same,
    /// Its payload is gone already.
    ErasedAlready,
    /// The database refused it.
    Refused(String),
}

impl Answer {
    fn of(word: &str, problem: Option<String>) -> Self {
        let skip = match word {
            "cancelled" => return Self::Cancelled,
            "requested" => return Self::Requested,
            "pending" => return Self::Pending,
            "ready" => return Self::Ready,
            "scheduled" => return Self::Scheduled,
            "reprioritised" => return Self::Reprioritised,
            "redriven" => return Self::Redriven,
            "discarded" => return Self::Discarded,
            "erased" => return Self::Erased,
            "missing" => Skip::Missing,
            "moved_on" => Skip::MovedOn,
            "busy" => Skip::Busy,
            "ended" => Skip::Ended,
            "parked" => Skip::Parked,
            "live" => Skip::Live,
            "not_waiting" => Skip::NotWaiting,
            "ready_already" => Skip::ReadyAlready,
            "not_failed" => Skip::NotFailed,
            "past_deadline" => Skip::PastDeadline,
            "same" => Skip::Same,
            "erased_already" => Skip::ErasedAlready,
            other => Skip::Refused(problem.unwrap_or_else(|| {
                format!("the database answered `{other}`, which this version does not know")
            })),
        };
        Self::Skipped(skip)
    }

    /// Why it was left alone, when it was.
    pub fn skip(&self) -> Option<&Skip> {
        match self {
            Self::Skipped(skip) => Some(skip),
            _ => None,
        }
    }

    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Requested => "requested",
            Self::Pending => "pending",
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Reprioritised => "reprioritised",
            Self::Redriven => "redriven",
            Self::Discarded => "discarded",
            Self::Erased => "erased",
            Self::Skipped(skip) => skip.word(),
        }
    }
}

impl Skip {
    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::MovedOn => "moved_on",
            Self::Busy => "busy",
            Self::Ended => "ended",
            Self::Parked => "parked",
            Self::Live => "live",
            Self::NotWaiting => "not_waiting",
            Self::ReadyAlready => "ready_already",
            Self::NotFailed => "not_failed",
            Self::PastDeadline => "past_deadline",
            Self::Same => "same",
            Self::ErasedAlready => "erased_already",
            Self::Refused(_) => "refused",
        }
    }
}

/// One task and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The task.
    pub task: Uuid,
    /// Where it stood before; `None`: there is no such task.
    pub state: Option<State>,
    /// Was it parked?
    pub parked: bool,
    /// What became of it.
    pub answer: Answer,
}

/// A change of all that a filter finds: its pages, one after another.
#[derive(Debug, Clone)]
pub struct Sweep {
    walk: Walk,
    change: Change,
    by: By,
    dry: bool,
    /// How many more may be met.
    left: i64,
}

impl Sweep {
    /// The next page; `None`: all were met. Everything before it is committed, and what was changed does not match again:
    /// a sweep that was broken off is begun anew.
    ///
    /// # Errors
    /// As [`Store::change`]; the page may be tried again.
    pub async fn page(&mut self, store: &Store) -> Result<Option<Vec<Changed>>, StoreError> {
        while !self.walk.is_done() && self.left > 0 {
            let mut ahead = self.walk.clone();
            let page = i64::try_from(PAGE_TASKS).unwrap_or(i64::MAX);
            let found = ahead.page(store, page.min(self.left)).await?;
            let ids: Vec<Uuid> = found.iter().map(|task| task.id).collect();
            let changed = if ids.is_empty() {
                Vec::new()
            } else {
                let wanted = Some(self.walk.wanted().clone());
                store
                    .change_page(ids, self.change, &self.by, self.dry, wanted)
                    .await?
            };
            self.walk = ahead;
            self.left -= i64::try_from(found.len()).unwrap_or(self.left);
            if !changed.is_empty() {
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }
}

impl Store {
    /// Changes these tasks, in pages; answers in the order of the ids, each once. `dry`: says what it would do.
    ///
    /// # Errors
    /// [`StoreError::BadFilter`] for an actor, reason or argument that cannot be kept, with nothing done. A database error:
    /// pages before the one that failed are committed.
    pub async fn change(
        &self,
        ids: &[Uuid],
        change: Change,
        by: &By,
        dry: bool,
    ) -> Result<Vec<Changed>, StoreError> {
        check(change, by)?;
        let ids: Vec<Uuid> = ids
            .iter()
            .copied()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let mut all = Vec::with_capacity(ids.len());
        for page in ids.chunks(PAGE_TASKS) {
            all.extend(
                self.change_page(page.to_vec(), change, by, dry, None)
                    .await?,
            );
        }
        Ok(all)
    }

    /// Begins to change all that a filter finds. Without states in the filter, what the verb can change is looked for.
    ///
    /// # Errors
    /// As [`Store::change`] and [`Store::walk`].
    pub async fn sweep(
        &self,
        filter: &TaskFilter,
        change: Change,
        by: &By,
        dry: bool,
    ) -> Result<Sweep, StoreError> {
        check(change, by)?;
        let mut walk = self.walk(filter).await?;
        if filter.states.is_empty() && !filter.parked && !filter.discarded {
            walk.want(change.place());
        }
        Ok(Sweep {
            walk,
            change,
            by: by.clone(),
            dry,
            left: if filter.limit == 0 {
                i64::MAX
            } else {
                filter.limit
            },
        })
    }

    /// The moment so many milliseconds from now by the database's clock.
    ///
    /// # Errors
    /// A database error.
    pub async fn moment(&self, in_ms: i64) -> Result<Timestamp, StoreError> {
        self.bounded(async move |store| {
            let conn = store.conn().await?;
            Ok(task::moment(&conn.conn(), in_ms).await?.at)
        })
        .await
    }

    async fn change_page(
        &self,
        ids: Vec<Uuid>,
        change: Change,
        by: &By,
        dry: bool,
        wanted: Option<Wanted>,
    ) -> Result<Vec<Changed>, StoreError> {
        let by = by.clone();
        let (changed, lanes) = self
            .detached(async move |store| {
                // One alone may wait for its row; a page would make others wait for all that it has locked so far.
                let alone = ids.len() == 1;
                let mut rows = send(&store, &ids, change, &by, dry, wanted.as_ref(), alone).await?;
                for row in &mut rows {
                    if row.answer == "busy" && !alone {
                        let again =
                            send(&store, &[row.task], change, &by, dry, wanted.as_ref(), true)
                                .await?;
                        if let Some(again) = again.into_iter().next() {
                            *row = again;
                        }
                    }
                }
                let mut lanes = BTreeSet::new();
                let changed = rows
                    .into_iter()
                    .map(|row| {
                        let answer = Answer::of(&row.answer, row.problem);
                        if matches!(answer, Answer::Ready | Answer::Redriven | Answer::Pending) {
                            lanes.extend(row.lane);
                        }
                        Changed {
                            task: row.task,
                            state: row.state.map(State::from_number),
                            parked: row.parked,
                            answer,
                        }
                    })
                    .collect();
                Ok((changed, lanes))
            })
            .await?;
        if !dry {
            self.wake_lanes(lanes).await;
        }
        Ok(changed)
    }

    /// A hint to idle workers; without it they see the work at their next poll.
    async fn wake_lanes(&self, lanes: BTreeSet<i32>) {
        let mut queues = BTreeSet::new();
        for lane in lanes {
            if let Ok(lane) = self.lane(lane).await {
                queues.insert(lane.queue);
            }
        }
        let queues: Vec<String> = queues.into_iter().collect();
        if !queues.is_empty() {
            self.wake(&queues).await;
        }
    }
}

async fn send(
    store: &Store,
    ids: &[Uuid],
    change: Change,
    by: &By,
    dry: bool,
    wanted: Option<&Wanted>,
    wait: bool,
) -> Result<Vec<task::ChangeRow>, StoreError> {
    let conn = store.conn().await?;
    let conn = conn.conn();
    Ok(task::change(
        &conn,
        &task::ChangeParams {
            verb: change.word(),
            ids,
            live: wanted.map(|wanted| wanted.live.as_slice()),
            parked: wanted.map(|wanted| wanted.parked.as_slice()),
            ended: wanted.map(|wanted| wanted.ended.as_slice()),
            actor: &by.actor,
            reason: &by.reason,
            run_at: match change {
                Change::Reschedule { run_at } => Some(run_at),
                _ => None,
            },
            priority: match change {
                Change::Reprioritise { priority } => Some(priority),
                _ => None,
            },
            dry,
            wait,
        },
    )
    .await?)
}

fn check(change: Change, by: &By) -> Result<(), StoreError> {
    for (name, text) in [("actor", &by.actor), ("reason", &by.reason)] {
        let chars = text.chars().count();
        if text.trim().is_empty() || chars > WORDS_MAX || text.contains('\0') {
            return Err(StoreError::BadFilter {
                problem: format!(
                    "the {name} has {chars} characters; use 1 to {WORDS_MAX} that are not all blank, without NUL"
                ),
            });
        }
    }
    if let Change::Reprioritise { priority } = change
        && !(0..=9).contains(&priority)
    {
        return Err(StoreError::BadFilter {
            problem: format!("the priority is {priority}; use 0 (first) to 9 (last)"),
        });
    }
    Ok(())
}
