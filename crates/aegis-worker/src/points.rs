//! Named points of an execution, for test kits: the places where a process may die, and where one that was frozen wakes up.
//!
//! A [`Listener`] hears of each point before the execution goes on, and decides when it does; `aegis-harness` is the one that
//! is meant. In production nobody listens, and a point is one look at an `Option` that is `None`, beside a round trip to the
//! database. It is an injected listener and no cargo feature, so that the worker that a kit crashes is the very one that is
//! shipped: features are unified over a workspace, and would reach the release or be built twice.
//!
//! Invariants: a point changes nothing; it stands outside of every statement, so an execution that is ended there leaves what
//! a killed process leaves.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use crate::execution::Execution;

/// What a point belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Subject {
    /// The handler itself.
    Handler,
    /// A step.
    Step {
        /// Its name.
        name: String,
        /// Its key.
        key: String,
    },
    /// A checkpoint that is saved by itself.
    Checkpoint,
    /// [`TaskContext::commit`](crate::TaskContext::commit).
    Commit,
    /// [`TaskContext::complete_in`](crate::TaskContext::complete_in).
    CompleteIn,
    /// An operation.
    Operation {
        /// Its name.
        name: String,
        /// Its key.
        key: String,
    },
}

/// Where a point stands in what it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cut {
    /// A handler: claimed, and not one line of it has run. Anything else: nothing was sent yet.
    Before,
    /// An operation: its dispatch was committed and the call has not left.
    Dispatched,
    /// A step: its value is there and not stored. An operation: the call has answered (the effect is there), and the result is
    /// not stored. A commit: the handler's own SQL has run, and the transaction is open. A handler: it has returned, and its
    /// end is not reported.
    Ran,
    /// What was to be stored is stored. A handler: its end is.
    Stored,
    /// An operation: the probe has not been asked.
    BeforeProbe,
    /// An operation: the probe has answered, and nothing of it is stored.
    Probed,
}

impl Cut {
    /// The word of a point's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Dispatched => "dispatched",
            Self::Ran => "ran",
            Self::Stored => "stored",
            Self::BeforeProbe => "before-probe",
            Self::Probed => "probed",
        }
    }
}

/// A named point. Its name, as in `operation charge/7 dispatched`, is its [`Display`](fmt::Display) form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// What it belongs to.
    pub subject: Subject,
    /// Where it stands there.
    pub cut: Cut,
}

impl Point {
    /// A point of the handler itself, or of a checkpoint or commit.
    pub fn new(subject: Subject, cut: Cut) -> Self {
        Self { subject, cut }
    }

    /// A point of a step.
    pub fn step(name: impl Into<String>, key: impl fmt::Display, cut: Cut) -> Self {
        let (name, key) = (name.into(), key.to_string());
        Self::new(Subject::Step { name, key }, cut)
    }

    /// A point of an operation.
    pub fn operation(name: impl Into<String>, key: impl fmt::Display, cut: Cut) -> Self {
        let (name, key) = (name.into(), key.to_string());
        Self::new(Subject::Operation { name, key }, cut)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Handler => write!(f, "handler")?,
            Subject::Step { name, key } => write!(f, "step {name}/{key}")?,
            Subject::Checkpoint => write!(f, "checkpoint")?,
            Subject::Commit => write!(f, "commit")?,
            Subject::CompleteIn => write!(f, "complete_in")?,
            Subject::Operation { name, key } => write!(f, "operation {name}/{key}")?,
        }
        write!(f, " {}", self.cut.word())
    }
}

/// A point that an execution has reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reached {
    /// Whose execution.
    pub task: Uuid,
    /// Which one.
    pub epoch: i64,
    /// Where it stands.
    pub point: Point,
}

impl Reached {
    /// For tests of a listener.
    pub fn new(task: Uuid, epoch: i64, point: Point) -> Self {
        Self { task, epoch, point }
    }
}

/// Hears of every point that an execution reaches.
pub trait Listener: Send + Sync + 'static {
    /// The execution goes on when the future is ready; never, when it never is.
    fn reached(&self, reached: Reached) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Who listens; nobody, in production.
#[derive(Clone, Default)]
pub(crate) struct Points(Option<Arc<dyn Listener>>);

impl Points {
    pub(crate) fn to(listener: Arc<dyn Listener>) -> Self {
        Self(Some(listener))
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "heard" } else { "unheard" })
    }
}

impl Execution {
    /// This execution stands at a point.
    pub(crate) async fn at(&self, cut: Cut, subject: impl FnOnce() -> Subject) {
        let Some(listener) = &self.shared.options.points.0 else {
            return;
        };
        let (task, epoch) = self.key();
        let point = Point::new(subject(), cut);
        listener.reached(Reached::new(task, epoch, point)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_a_name() {
        let names = [
            Point::new(Subject::Handler, Cut::Before),
            Point::step("letter", 7, Cut::Ran),
            Point::new(Subject::CompleteIn, Cut::Stored),
            Point::operation("charge", "order 7", Cut::BeforeProbe),
        ]
        .map(|point| point.to_string());
        assert_eq!(
            names,
            [
                "handler before",
                "step letter/7 ran",
                "complete_in stored",
                "operation charge/order 7 before-probe",
            ]
        );
    }
}
