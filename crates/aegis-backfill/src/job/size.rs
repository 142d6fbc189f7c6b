//! How many rows the next batch has.
//!
//! Invariants: from 1 to `max`; it follows the time that batches take; in a range with a row that is refused it is halved until that
//! row is alone, so a bad row costs a number of batches that is the logarithm of the range.

/// The bounds of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSize {
    /// Rows of the first.
    pub start: u32,
    /// Rows of the largest.
    pub max: u32,
    /// How long one should take.
    pub target_ms: u32,
}

/// The size now.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    bounds: BatchSize,
    now: u32,
    /// Rows from the cursor on, one of which is refused at least. 0: none is known.
    suspect: u32,
}

impl Size {
    pub(crate) fn new(bounds: BatchSize, now: u32) -> Self {
        Self {
            bounds,
            now: now.clamp(1, bounds.max.max(1)),
            suspect: 0,
        }
    }

    /// Rows of the next batch.
    pub(crate) fn rows(&self) -> u32 {
        if self.suspect > 0 {
            (self.suspect / 2).max(1)
        } else {
            self.now
        }
    }

    /// What is kept for the next runner.
    pub(crate) fn kept(&self) -> u32 {
        self.now
    }

    /// A batch of `rows` was committed after `took_ms`.
    pub(crate) fn went(&mut self, rows: u32, took_ms: u64) {
        if self.suspect > 0 {
            self.suspect = self.suspect.saturating_sub(rows);
            return;
        }
        // A short last one says nothing.
        if rows < self.now {
            return;
        }
        let ideal = u64::from(self.now) * u64::from(self.bounds.target_ms) / took_ms.max(1);
        let now = u64::from(self.now);
        let next = ideal.clamp((now / 10).max(1), (now + now / 2).max(now + 1));
        self.now = u32::try_from(next)
            .unwrap_or(u32::MAX)
            .clamp(1, self.bounds.max.max(1));
    }

    /// A batch of `rows` waited too long for locks or took too long: it may be a smaller one's.
    pub(crate) fn shrink(&mut self, rows: u32) {
        self.now = (rows / 2).max(1);
        self.suspect = 0;
    }

    /// The server refused something in a batch of `rows`. Whether the row is found: it was alone.
    pub(crate) fn refused(&mut self, rows: u32) -> bool {
        self.suspect = if rows <= 1 { 0 } else { rows };
        rows <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchSize, Size};

    fn size(start: u32, max: u32) -> Size {
        let bounds = BatchSize {
            start,
            max,
            target_ms: 500,
        };
        Size::new(bounds, bounds.start)
    }

    #[test]
    fn it_follows_the_time_that_batches_take_within_its_bounds() {
        let mut size = size(1000, 4000);
        size.went(1000, 100);
        assert_eq!(size.rows(), 1500, "half more at most");
        size.went(1500, 100);
        size.went(2250, 100);
        size.went(3375, 100);
        assert_eq!(size.rows(), 4000, "never above max");
        size.went(4000, 2000);
        assert_eq!(
            size.rows(),
            1000,
            "a quarter of the rows in a quarter of the time"
        );
        size.went(1000, 500_000);
        assert_eq!(size.rows(), 100, "a tenth at least");
        size.went(7, 1);
        assert_eq!(size.rows(), 100, "a short one says nothing");
        for _ in 0..20 {
            let rows = size.rows();
            size.went(rows, 3_600_000);
        }
        assert_eq!(size.rows(), 1);
        size.went(1, 1);
        assert_eq!(size.rows(), 2, "it grows from 1 too");
    }

    #[test]
    fn a_refused_row_is_found_in_a_logarithm_of_batches() {
        for bad in [0_u32, 1, 499, 777, 998, 999] {
            let (mut size, mut cursor, mut batches) = (size(1000, 1000), 0_u32, 0);
            let found = loop {
                batches += 1;
                let rows = size.rows().min(1000 - cursor);
                if (cursor..cursor + rows).contains(&bad) {
                    if size.refused(rows) {
                        break cursor;
                    }
                } else {
                    size.went(rows, 500);
                    cursor += rows;
                }
            };
            assert_eq!(found, bad);
            assert!(batches <= 22, "{batches} batches for row {bad}");
        }
    }

    #[test]
    fn what_was_refused_only_in_company_does_not_stay_suspect() {
        let mut size = size(8, 8);
        assert!(!size.refused(8));
        for rows in [4, 2, 1, 1] {
            assert_eq!(size.rows(), rows);
            size.went(rows, 500);
        }
        assert_eq!(size.rows(), 8);
    }
}
