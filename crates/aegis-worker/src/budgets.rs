//! How long each phase of a drain may take. Together they must fit into the grace period that the platform gives.

use std::time::Duration;

use crate::error::WorkerError;

/// The phases of a drain, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Closing the gate: a claim call on its way comes back, the unstarted are handed back.
    pub stop_acquiring: Duration,
    /// In-flight executions go on until this has passed; then they are cancelled.
    pub drain: Duration,
    /// From the cancellation until what has not stopped is left to expiry: time to save a checkpoint.
    pub cancel_and_save: Duration,
    /// Flushing completions, telling the database, ending the process.
    pub exit_margin: Duration,
}

impl Default for Budgets {
    /// 10, 420, 30 and 140 s: together 600 s, the chart's `terminationGracePeriodSeconds`.
    fn default() -> Self {
        Self {
            stop_acquiring: Duration::from_secs(10),
            drain: Duration::from_mins(7),
            cancel_and_save: Duration::from_secs(30),
            exit_margin: Duration::from_secs(140),
        }
    }
}

impl Budgets {
    /// What a drain may take at most.
    pub fn total(&self) -> Duration {
        self.stop_acquiring + self.drain + self.cancel_and_save + self.exit_margin
    }

    /// Refuses budgets that the platform would cut short by SIGKILL.
    pub(crate) fn fit(&self, grace: Option<Duration>) -> Result<(), WorkerError> {
        match grace {
            Some(grace) if self.total() > grace => Err(WorkerError::Budgets {
                stop_acquiring_s: self.stop_acquiring.as_secs_f64(),
                drain_s: self.drain.as_secs_f64(),
                cancel_and_save_s: self.cancel_and_save.as_secs_f64(),
                exit_margin_s: self.exit_margin.as_secs_f64(),
                total_s: self.total().as_secs_f64(),
                grace_s: grace.as_secs_f64(),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_grace_period_of_the_chart() {
        let budgets = Budgets::default();
        assert_eq!(budgets.total(), Duration::from_mins(10));
        assert!(budgets.fit(Some(Duration::from_mins(10))).is_ok());
        assert!(budgets.fit(None).is_ok());
    }

    #[test]
    fn budgets_over_the_grace_period_are_refused_with_the_numbers() {
        let error = Budgets::default()
            .fit(Some(Duration::from_secs(599)))
            .unwrap_err()
            .to_string();
        for number in ["10", "420", "30", "140", "600", "599"] {
            assert!(error.contains(number), "{number} is missing in: {error}");
        }
    }
}
