//! Protocols: versions of the encoding of what is stored for a task, and who may read it.
//!
//! Invariant: a worker that reads `a..b` may have a task of a lane `lo..hi` iff `a <= lo` and `hi <= b`. The same
//! comparison stands in `aegis.lanes_of`.

use std::fmt;
use std::str::FromStr;

/// The lowest and highest protocol of everything stored for the tasks of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneRange {
    /// Lowest.
    pub lo: i32,
    /// Highest.
    pub hi: i32,
}

impl LaneRange {
    /// The range after something was written in `protocol`.
    #[must_use]
    pub fn widened(self, protocol: i32) -> Self {
        Self {
            lo: self.lo.min(protocol),
            hi: self.hi.max(protocol),
        }
    }
}

/// What a worker reads and writes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProtocolRange {
    min: i32,
    max: i32,
    writes: i32,
}

/// A protocol range that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Below 1, or the lowest is above the highest.
    #[error(
        "protocol range {min}..{max} is empty or starts below 1: write LOW..HIGH with 1 <= LOW <= HIGH, such as 1..2"
    )]
    Range {
        /// As given.
        min: i32,
        /// As given.
        max: i32,
    },
    /// A worker could not read what it writes.
    #[error(
        "protocol {writes} is written but the worker reads {min}..{max}: it could not read its own checkpoints"
    )]
    Writes {
        /// As given.
        min: i32,
        /// As given.
        max: i32,
        /// As given.
        writes: i32,
    },
    /// Not a range at all.
    #[error("`{text}` is no protocol range: write one number, or LOW..HIGH, such as 1..2")]
    Syntax {
        /// As given.
        text: String,
    },
}

impl ProtocolRange {
    /// Reads and writes protocol 1: where every kind starts.
    pub const FIRST: Self = Self {
        min: 1,
        max: 1,
        writes: 1,
    };

    /// A range that is written down in a program: what makes no sense does not compile.
    ///
    /// ```
    /// use aegis_model::ProtocolRange;
    ///
    /// let range = ProtocolRange::of::<1, 2, 1>();
    /// assert_eq!(Ok(range), ProtocolRange::new(1, 2, 1));
    /// ```
    ///
    /// ```compile_fail
    /// aegis_model::ProtocolRange::of::<2, 3, 1>(); // it could not read its own checkpoints
    /// ```
    pub const fn of<const MIN: i32, const MAX: i32, const WRITES: i32>() -> Self {
        const {
            assert!(
                1 <= MIN && MIN <= WRITES && WRITES <= MAX,
                "a protocol range needs 1 <= MIN <= WRITES <= MAX"
            );
        }
        Self {
            min: MIN,
            max: MAX,
            writes: WRITES,
        }
    }

    /// A range that reads `min..max` and writes `writes`.
    ///
    /// # Errors
    /// [`ProtocolError`] when it is empty, starts below 1, or could not read what it writes.
    pub fn new(min: i32, max: i32, writes: i32) -> Result<Self, ProtocolError> {
        if min < 1 || min > max {
            return Err(ProtocolError::Range { min, max });
        }
        if !(min..=max).contains(&writes) {
            return Err(ProtocolError::Writes { min, max, writes });
        }
        Ok(Self { min, max, writes })
    }

    /// The lowest protocol it reads.
    pub const fn min(self) -> i32 {
        self.min
    }

    /// The highest protocol it reads.
    pub const fn max(self) -> i32 {
        self.max
    }

    /// The protocol it writes.
    pub const fn writes(self) -> i32 {
        self.writes
    }

    /// May a worker with this range have a task of that lane?
    pub const fn reads(self, lane: LaneRange) -> bool {
        self.min <= lane.lo && lane.hi <= self.max
    }
}

impl FromStr for ProtocolRange {
    type Err = ProtocolError;

    /// `2` or `1..3`; the highest is the one that is written.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let syntax = || ProtocolError::Syntax {
            text: text.to_owned(),
        };
        let number = |part: &str| part.trim().parse::<i32>().map_err(|_| syntax());
        let (min, max) = match text.split_once("..") {
            Some((min, max)) => (number(min)?, number(max)?),
            None => (number(text)?, number(text)?),
        };
        Self::new(min, max, max)
    }
}

impl fmt::Display for ProtocolRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{} writes {}", self.min, self.max, self.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_reads_a_lane_only_whole() {
        let worker = ProtocolRange::new(1, 2, 2).unwrap();
        for (lo, hi, may) in [
            (1, 1, true),
            (1, 2, true),
            (2, 2, true),
            (2, 3, false),
            (3, 3, false),
        ] {
            assert_eq!(worker.reads(LaneRange { lo, hi }), may, "{lo}..{hi}");
        }
    }

    #[test]
    fn bad_ranges_say_what_to_write() {
        assert!(ProtocolRange::new(0, 1, 1).is_err());
        assert!(ProtocolRange::new(2, 1, 1).is_err());
        assert!(ProtocolRange::new(1, 2, 3).is_err());
        let error = "two".parse::<ProtocolRange>().unwrap_err().to_string();
        assert!(error.contains("LOW..HIGH"), "{error}");
        assert_eq!("1..3".parse::<ProtocolRange>().unwrap().writes(), 3);
    }

    #[test]
    fn a_write_widens_a_lane() {
        let lane = LaneRange { lo: 2, hi: 2 };
        assert_eq!(lane.widened(3), LaneRange { lo: 2, hi: 3 });
        assert_eq!(lane.widened(1), LaneRange { lo: 1, hi: 2 });
        assert_eq!(lane.widened(2), lane);
    }
}
