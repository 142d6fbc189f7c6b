//! How far a job is, in words that are true: what was counted is a number, what was estimated says so.

use serde::Serialize;

/// Below this share of the estimated rows no end is foretold.
const FORETOLD_FROM: f64 = 0.01;

/// What a job has done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Progress {
    /// Rows in the ranges that are committed.
    pub rows_seen: i64,
    /// Those that were changed.
    pub rows_changed: i64,
    /// Of the server's statistics at the start; none when it had none.
    pub rows_estimated: Option<i64>,
    /// Time in batches.
    pub worked_ms: i64,
    /// Time that it was held back or paused.
    pub waited_ms: i64,
    /// `rows_seen` of `rows_estimated`, below 100 until the end is there.
    pub percent_estimated: Option<f64>,
    /// Seconds of work that are left, at the pace of the whole job and without waiting; none before a hundredth is done.
    pub left_s_estimated: Option<i64>,
}

impl Progress {
    /// With what can be told from the counts.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "estimates for people"
    )]
    pub fn of(
        rows_seen: i64,
        rows_changed: i64,
        rows_estimated: Option<i64>,
        worked_ms: i64,
        waited_ms: i64,
        is_done: bool,
    ) -> Self {
        let mut progress = Self {
            rows_seen,
            rows_changed,
            rows_estimated,
            worked_ms,
            waited_ms,
            percent_estimated: None,
            left_s_estimated: None,
        };
        if is_done {
            progress.percent_estimated = Some(100.0);
            progress.left_s_estimated = Some(0);
            return progress;
        }
        let Some(estimated) = rows_estimated.filter(|rows| *rows > 0) else {
            return progress;
        };
        let share = rows_seen as f64 / estimated as f64;
        progress.percent_estimated = Some(((share * 1000.0).floor() / 10.0).min(99.9));
        // Past the estimate nothing is known of the end.
        if (FORETOLD_FROM..1.0).contains(&share) {
            let left = worked_ms as f64 * (1.0 - share) / share / 1000.0;
            progress.left_s_estimated = Some(left.ceil() as i64);
        }
        progress
    }

    /// A line for people.
    pub fn words(&self) -> String {
        let mut words = vec![format!(
            "{} rows seen, {} changed",
            self.rows_seen, self.rows_changed
        )];
        match (self.percent_estimated, self.rows_estimated) {
            (Some(percent), Some(rows)) if percent < 100.0 => {
                words.push(format!("about {percent:.1} % of an estimated {rows}"));
            }
            (None, _) => {
                words.push("of an unknown number (the table was never analysed)".to_owned());
            }
            _ => {}
        }
        if let Some(left) = self.left_s_estimated.filter(|left| *left > 0) {
            words.push(format!("about {left} s of work left"));
        }
        if self.waited_ms >= 1000 {
            words.push(format!("waited {} s", self.waited_ms / 1000));
        }
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn an_end_is_foretold_only_from_something() {
        let early = Progress::of(5, 5, Some(1000), 100, 0, false);
        assert_eq!(
            (early.percent_estimated, early.left_s_estimated),
            (Some(0.5), None)
        );
        let half = Progress::of(500, 400, Some(1000), 30_000, 60_000, false);
        assert_eq!(
            (half.percent_estimated, half.left_s_estimated),
            (Some(50.0), Some(30))
        );
        assert!(half.words().contains("estimated 1000"), "{}", half.words());
        let over = Progress::of(1500, 0, Some(1000), 30_000, 0, false);
        assert_eq!(
            (over.percent_estimated, over.left_s_estimated),
            (Some(99.9), None)
        );
        let blind = Progress::of(1500, 0, None, 30_000, 0, false);
        assert_eq!(
            (blind.percent_estimated, blind.left_s_estimated),
            (None, None)
        );
        assert!(blind.words().contains("unknown"), "{}", blind.words());
        let done = Progress::of(900, 0, Some(1000), 30_000, 0, true);
        assert_eq!(
            (done.percent_estimated, done.left_s_estimated),
            (Some(100.0), Some(0))
        );
    }
}
