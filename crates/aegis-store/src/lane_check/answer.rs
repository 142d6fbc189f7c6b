//! What a lane check answers, with the reasons task by task.
//!
//! Invariant: every question is put so that yes is good; what cannot be told is [`Answer::Unknown`], never yes.

use std::collections::BTreeMap;

use aegis_model::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Yes, no with reasons, or unknown with why.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Nothing stored speaks against it.
    Yes,
    /// These tasks do.
    No(Reasons),
    /// It cannot be told, or the answer may change while one looks.
    Unknown(Vec<String>),
}

impl Answer {
    /// `yes`, `no` or `unknown`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No(_) => "no",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// An answer and the moment of its snapshot, by the database's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// When.
    pub at: Timestamp,
    /// What.
    pub answer: Answer,
    /// What speaks against trusting the answer beyond this moment, and what else a person should know.
    pub remarks: Vec<String>,
}

impl Checked {
    /// `doubts` turn a yes into unknown; beside a no they are remarks.
    pub(super) fn judge(
        at: Timestamp,
        reasons: Reasons,
        doubts: Vec<String>,
        mut remarks: Vec<String>,
    ) -> Self {
        let answer = if !reasons.lanes.is_empty() {
            remarks.splice(0..0, doubts);
            Answer::No(reasons)
        } else if doubts.is_empty() {
            Answer::Yes
        } else {
            Answer::Unknown(doubts)
        };
        Self {
            at,
            answer,
            remarks,
        }
    }
}

/// Lanes with tasks that nobody would read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reasons {
    /// At most 1,000 lanes.
    pub lanes: Vec<LaneReason>,
    /// How many lanes there are.
    pub lanes_total: i64,
    /// Some of their tasks: one of each lane before a second of any.
    pub tasks: Vec<TaskReason>,
    /// So many tasks were counted.
    pub tasks_counted: i64,
    /// There may be more than were counted.
    pub at_least: bool,
}

/// One lane that nobody would read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneReason {
    /// Its id.
    pub id: i32,
    /// The queue.
    pub queue: String,
    /// The kind.
    pub kind: String,
    /// Lowest protocol stored.
    pub lo: i32,
    /// Highest protocol stored.
    pub hi: i32,
    /// Was it looked into: are its tasks counted and its former readers told? Only the first lanes are.
    pub looked_into: bool,
    /// Tasks by state.
    pub counts: BTreeMap<&'static str, i64>,
    /// A state's count may be larger than it says.
    pub at_least: bool,
    /// What remaining readers of this queue and kind read.
    pub remaining: Vec<String>,
    /// Who has been able to read it, the latest first; at most three.
    pub former: Vec<FormerReader>,
    /// Since when nobody reads it, where that is known and past.
    pub unread_since: Option<Timestamp>,
}

impl LaneReason {
    /// The lane as people write it.
    pub fn name(&self) -> String {
        format!("{}/{} {}..{}", self.queue, self.kind, self.lo, self.hi)
    }

    /// Why its tasks would have no reader.
    pub fn why(&self) -> String {
        let stored = format!("protocols {}..{} are stored", self.lo, self.hi);
        if self.remaining.is_empty() {
            format!(
                "{stored}; nobody who remains serves {}/{}",
                self.queue, self.kind
            )
        } else {
            format!("{stored}; who remains reads {}", self.remaining.join(", "))
        }
    }

    /// Who could read it, for people.
    pub fn readers(&self) -> String {
        let told: Vec<String> = self.former.iter().map(FormerReader::to_string).collect();
        if !self.looked_into {
            "not looked up: there are many lanes".to_owned()
        } else if told.is_empty() {
            "no worker that is remembered could".to_owned()
        } else {
            told.join(", ")
        }
    }
}

/// An incarnation's release and build that can read a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormerReader {
    /// Its release.
    pub release: String,
    /// Its build.
    pub build: String,
    /// `accepting`, `draining`, `stopped` or `lost`.
    pub state: &'static str,
    /// The end of its lease or of itself.
    pub until: Timestamp,
}

impl std::fmt::Display for FormerReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "release {} (build {}, {})",
            self.release, self.build, self.state
        )
    }
}

/// One task that nobody would read, and what is stored for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskReason {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant: String,
    /// Its state's word.
    pub state: &'static str,
    /// Its lane.
    pub lane: String,
    /// Who holds it, when it runs.
    pub owner: Option<Uuid>,
    /// Open operations.
    pub open_operations: i32,
    /// The protocol of its input.
    pub input: Option<i32>,
    /// The protocol of its checkpoint.
    pub checkpoint: Option<i32>,
    /// The protocols of its steps' values.
    pub steps: Vec<i32>,
    /// The protocols of its operations.
    pub operations: Vec<i32>,
}

impl TaskReason {
    /// What is stored, for people: `input 1, checkpoint 2, 1 open operation`.
    pub fn stored(&self) -> String {
        let mut told = Vec::new();
        told.extend(self.input.map(|protocol| format!("input {protocol}")));
        told.extend(
            self.checkpoint
                .map(|protocol| format!("checkpoint {protocol}")),
        );
        for (what, protocols) in [("steps", &self.steps), ("operations", &self.operations)] {
            if !protocols.is_empty() {
                let all: Vec<String> = protocols.iter().map(i32::to_string).collect();
                told.push(format!("{what} {}", all.join("+")));
            }
        }
        if self.open_operations > 0 {
            told.push(format!("{} open", self.open_operations));
        }
        told.join(", ")
    }
}

/// As the statements answer a lane.
#[derive(Deserialize)]
pub(super) struct LaneRow {
    id: i32,
    queue: String,
    kind: String,
    lo: i32,
    hi: i32,
    bound: i64,
    counts: Option<BTreeMap<String, i64>>,
    remaining: Option<Vec<String>>,
    former: Option<Vec<FormerRow>>,
}

#[derive(Deserialize)]
struct FormerRow {
    release: String,
    build: String,
    state: i16,
    until: Timestamp,
}

/// As the statements answer a task.
#[derive(Deserialize)]
pub(super) struct TaskRow {
    id: Uuid,
    tenant: String,
    state: i16,
    queue: String,
    kind: String,
    lo: i32,
    hi: i32,
    owner: Option<Uuid>,
    open_operations: i32,
    input: Option<i32>,
    checkpoint: Option<i32>,
    steps: Option<Vec<i32>>,
    operations: Option<Vec<i32>>,
}

impl LaneRow {
    pub(super) fn told(self, at: Timestamp) -> LaneReason {
        let counts = self.counts.unwrap_or_default();
        let former: Vec<FormerReader> = self
            .former
            .unwrap_or_default()
            .into_iter()
            .map(|row| FormerReader {
                release: row.release,
                build: row.build,
                state: aegis_model::WorkerState::from_number(row.state).word(),
                until: row.until,
            })
            .collect();
        LaneReason {
            id: self.id,
            looked_into: self.bound > 0,
            at_least: self.bound == 0 || counts.values().any(|n| *n >= self.bound),
            counts: counts
                .into_iter()
                .map(|(state, n)| {
                    let state = state
                        .parse()
                        .map_or("other", |s| State::from_number(s).word());
                    (state, n)
                })
                .collect(),
            queue: self.queue,
            kind: self.kind,
            lo: self.lo,
            hi: self.hi,
            remaining: self.remaining.unwrap_or_default(),
            unread_since: former.first().map(|f| f.until).filter(|until| *until <= at),
            former,
        }
    }
}

impl TaskRow {
    pub(super) fn told(self) -> TaskReason {
        TaskReason {
            id: self.id,
            tenant: self.tenant,
            state: State::from_number(self.state).word(),
            lane: format!("{}/{} {}..{}", self.queue, self.kind, self.lo, self.hi),
            owner: self.owner,
            open_operations: self.open_operations,
            input: self.input,
            checkpoint: self.checkpoint,
            steps: self.steps.unwrap_or_default(),
            operations: self.operations.unwrap_or_default(),
        }
    }
}
