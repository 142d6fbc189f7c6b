//! What befalls a worker, and where.

use std::fmt;

use aegis_worker::points::{Cut, Point, Subject};

/// What befalls the worker at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Blow {
    /// Its process dies: no drain, nothing is handed back, its connections end. Its lease expires, and another worker takes over.
    Crash,
    /// Its process is frozen, its lease expires, another worker takes over and finishes, and then it wakes up and goes on in the
    /// belief that nothing has happened.
    Freeze,
}

impl Blow {
    /// The word of tables and messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Freeze => "freeze",
        }
    }
}

/// A blow at a point.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fault {
    pub(crate) blow: Blow,
    pub(crate) point: Point,
    pub(crate) nth: usize,
}

impl Fault {
    /// The worker crashes when the point is reached.
    pub fn crash(point: Point) -> Self {
        Self::new(Blow::Crash, point)
    }

    /// The worker freezes when the point is reached.
    pub fn freeze(point: Point) -> Self {
        Self::new(Blow::Freeze, point)
    }

    fn new(blow: Blow, point: Point) -> Self {
        Self {
            blow,
            point,
            nth: 1,
        }
    }

    /// The same at the handler itself: [`Cut::Before`] its first line, or [`Cut::Ran`] when it has returned.
    pub fn crash_of_handler(cut: Cut) -> Self {
        Self::crash(Point::new(Subject::Handler, cut))
    }

    /// Not the first but the nth time that the point is reached, counted from the start or from the fault before.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth.max(1);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.blow.word(), Nth(&self.point, self.nth))
    }
}

/// A point with its number, which is left out for the first time.
pub(crate) struct Nth<'a>(pub(crate) &'a Point, pub(crate) usize);

impl fmt::Display for Nth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            1 => write!(f, "{}", self.0),
            nth => write!(f, "{} #{nth}", self.0),
        }
    }
}
