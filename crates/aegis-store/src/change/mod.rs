//! What a person changes on tasks: one verb, on some ids or on all that a filter finds.
//!
//! Invariants: who and why are kept with each task; each row is judged again under its lock, so that no task is changed that no
//! longer is what was asked for; a page is one short statement, whole or not at all; every verb may be repeated. An edit
//! moves neither `rev` nor `epoch`.
//!
//! Never: hold a lock between pages; wait for a row that somebody holds while holding others.

mod answer;
mod sweep;

use std::collections::BTreeSet;

use aegis_model::State;
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::StoreError;
use crate::filter::{TaskFilter, Wanted};
use crate::generated::task;
use crate::store::Store;

pub use self::answer::{Answer, Skip};
pub use self::sweep::Sweep;

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

/// One task and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The task.
    pub task: Uuid,
    /// Where it stood before; `None`: there is no such task, or it could not be judged.
    pub state: Option<State>,
    /// Was it parked?
    pub parked: bool,
    /// What became of it.
    pub answer: Answer,
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

    pub(crate) async fn change_page(
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
