//! From claims and ends of executions to the spans in which a task was ready and nobody had claimed it.
//!
//! Pure. A span whose beginning or lane the database does not tell is left out: it can then not count as a wait.

use super::facts::TaskWait;

/// One execution that ended before its task did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Execution {
    /// When it was claimed.
    pub(super) claimed_ms: i64,
    /// When it ended.
    pub(super) at_ms: i64,
    /// Until when the task was postponed then.
    pub(super) run_ms: Option<i64>,
    /// The lowest and the highest protocol of what was stored then.
    pub(super) lane: Option<(u32, u32)>,
}

/// The moments of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TaskTimes {
    /// When it was submitted.
    pub(super) submitted_ms: i64,
    /// In which protocol.
    pub(super) submitted_protocol: u32,
    /// When it was claimed last, as far as its row tells.
    pub(super) claimed_ms: Option<i64>,
    /// When it ended.
    pub(super) ended_ms: Option<i64>,
    /// Its executions, by their ends.
    pub(super) executions: Vec<Execution>,
    /// When a person resolved one of its operations.
    pub(super) resolved_ms: Vec<i64>,
}

/// The spans of one task.
pub(super) fn waits(task: &str, times: &TaskTimes) -> Vec<TaskWait> {
    let claims: Vec<i64> = times
        .executions
        .iter()
        .map(|execution| execution.claimed_ms)
        .chain(times.claimed_ms)
        .collect();
    let first = (
        times.submitted_ms,
        None,
        (times.submitted_protocol, times.submitted_protocol),
    );
    let later = times
        .executions
        .iter()
        .filter_map(|end| Some((end.at_ms, end.run_ms, end.lane?)));
    std::iter::once(first)
        .chain(later)
        .filter_map(|(at_ms, run_ms, (lo, hi))| {
            let claimed = claims.iter().copied().filter(|claim| *claim >= at_ms).min();
            let until_ms = claimed.or(times.ended_ms);
            // A task that waited for a person is ready from that person's decision on.
            let resolved = times.resolved_ms.iter().copied();
            let resolved = resolved.filter(|at| *at >= at_ms && until_ms.is_none_or(|u| *at <= u));
            let from_ms = resolved.chain(run_ms).fold(at_ms, i64::max);
            until_ms
                .is_none_or(|until| from_ms < until)
                .then(|| TaskWait {
                    task: task.to_owned(),
                    lo,
                    hi,
                    from_ms,
                    until_ms,
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(claimed_ms: i64, at_ms: i64, hi: u32) -> Execution {
        Execution {
            claimed_ms,
            at_ms,
            run_ms: None,
            lane: Some((1, hi)),
        }
    }

    fn spans(times: &TaskTimes) -> Vec<(i64, Option<i64>, u32)> {
        waits("t", times)
            .iter()
            .map(|wait| (wait.from_ms, wait.until_ms, wait.hi))
            .collect()
    }

    fn two_executions() -> TaskTimes {
        TaskTimes {
            submitted_ms: 10,
            submitted_protocol: 1,
            claimed_ms: Some(50),
            ended_ms: Some(60),
            executions: vec![end(20, 30, 2)],
            resolved_ms: Vec::new(),
        }
    }

    #[test]
    fn before_the_first_claim_and_between_two() {
        assert_eq!(
            spans(&two_executions()),
            [(10, Some(20), 1), (30, Some(50), 2)]
        );
    }

    #[test]
    fn a_postponed_task_is_not_ready_before_its_time() {
        let mut times = two_executions();
        times.executions[0].run_ms = Some(45);
        assert_eq!(spans(&times)[1], (45, Some(50), 2));
        times.executions[0].run_ms = Some(55);
        assert_eq!(spans(&times).len(), 1, "claimed for another reason");
    }

    #[test]
    fn a_task_that_waits_for_a_person_is_ready_after_the_decision() {
        let mut times = two_executions();
        times.resolved_ms = vec![5, 40, 55];
        assert_eq!(spans(&times)[1], (40, Some(50), 2));
    }

    #[test]
    fn a_task_that_nobody_claims_waits_on_and_one_that_ended_does_not() {
        let mut times = two_executions();
        times.claimed_ms = None;
        times.ended_ms = None;
        assert_eq!(spans(&times)[1], (30, None, 2));
        times.ended_ms = Some(60);
        assert_eq!(spans(&times)[1], (30, Some(60), 2));
    }

    #[test]
    fn without_a_lane_nothing_is_said() {
        let mut times = two_executions();
        times.executions[0].lane = None;
        assert_eq!(spans(&times).len(), 1);
    }
}
