//! Crashes a handler at every point that it has.
//!
//! First an undisturbed run says what should happen and which points there are; then there is one run for each of them. Points
//! that only a takeover reaches (a probe, a repeated call) are found in those runs, and a second fault strikes there.

use std::collections::{BTreeSet, VecDeque};

use aegis_model::Class;
use aegis_store::NewTask;
use aegis_worker::points::{Cut, Point, Subject};
use uuid::Uuid;

use crate::error::HarnessError;
use crate::fault::{Blow, Fault};
use crate::harness::Harness;
use crate::report::{Case, Report};
use crate::run::{Outcome, Run};

/// What is explored.
#[derive(Debug, Clone)]
pub struct Explore {
    freezes: bool,
    in_takeovers: bool,
    results_may_differ: bool,
    cases_max: usize,
}

impl Default for Explore {
    /// A crash at every point, those of takeovers included; the same result each time; at most 1,000 cases.
    fn default() -> Self {
        Self {
            freezes: false,
            in_takeovers: true,
            results_may_differ: false,
            cases_max: 1000,
        }
    }
}

impl Explore {
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Freezes the worker at every point, too, and wakes it when another one has finished: finds handlers that do not pass on
    /// what the engine raises. Not between the dispatch of a `queryable` or `blind` operation and its call, where no engine can
    /// help and only the downstream could: see the guide "honest limits".
    #[must_use]
    pub fn with_freezes(mut self) -> Self {
        self.freezes = true;
        self
    }

    /// No second faults at points that only a takeover reaches.
    #[must_use]
    pub fn without_second_faults(mut self) -> Self {
        self.in_takeovers = false;
        self
    }

    /// The result may be another one after a crash.
    #[must_use]
    pub fn results_may_differ(mut self) -> Self {
        self.results_may_differ = true;
        self
    }

    /// At most so many cases; the report says how many were left out.
    #[must_use]
    pub fn at_most(mut self, cases: usize) -> Self {
        self.cases_max = cases;
        self
    }
}

impl Harness {
    /// Runs the task once undisturbed, and then once for each point with a fault there.
    ///
    /// # Errors
    /// [`HarnessError::Baseline`] when it does not even succeed undisturbed; the kit's own. What the faults do to it is in the
    /// [`Report`].
    pub async fn explore(
        &mut self,
        task: NewTask,
        explore: &Explore,
    ) -> Result<Report, HarnessError> {
        let (baseline, followed) = self.follow(task.clone(), &[]).await?;
        if baseline.outcome != Outcome::Succeeded {
            return Err(HarnessError::Baseline {
                outcome: baseline.outcome.to_string(),
            });
        }
        let mut known: BTreeSet<Point> = baseline.points.iter().cloned().collect();
        let mut plans: VecDeque<Vec<Fault>> = VecDeque::new();
        let blows = if explore.freezes {
            &[Blow::Crash, Blow::Freeze][..]
        } else {
            &[Blow::Crash]
        };
        for blow in blows {
            for seen in &followed.seen {
                let fault = Fault {
                    blow: *blow,
                    point: seen.point.clone(),
                    nth: seen.nth,
                };
                if *blow == Blow::Crash || !self.in_window(&fault.point, baseline.task).await? {
                    plans.push_back(vec![fault]);
                }
            }
        }
        let wanted = normal(baseline.result.as_ref(), baseline.task);
        let mut cases = Vec::new();
        while let Some(plan) = plans.pop_front() {
            if cases.len() >= explore.cases_max {
                plans.push_front(plan);
                break;
            }
            let (run, followed) = self.follow(task.clone(), &plan).await?;
            if explore.in_takeovers && plan.len() == 1 && plan[0].blow == Blow::Crash {
                for seen in followed.seen.iter().filter(|seen| seen.faults_before == 1) {
                    if known.insert(seen.point.clone()) {
                        let mut second = plan.clone();
                        second.push(Fault::crash(seen.point.clone()).nth(seen.nth));
                        plans.push_back(second);
                    }
                }
            }
            let other_result = !explore.results_may_differ
                && run.outcome == Outcome::Succeeded
                && normal(run.result.as_ref(), run.task) != wanted;
            cases.push(Case::judge(
                plan,
                &baseline,
                &run,
                other_result,
                followed.left_over,
            ));
        }
        Ok(Report::new(baseline, cases, plans.len()))
    }

    /// Is this the window that only the downstream could close?
    async fn in_window(&self, point: &Point, task: Uuid) -> Result<bool, HarnessError> {
        let (Subject::Operation { name, key }, Cut::Dispatched) = (&point.subject, point.cut)
        else {
            return Ok(false);
        };
        let states: Vec<i16> = (0..=5).collect();
        let rows = self.store().operations(&states, Some(task), 1000).await?;
        let class = rows
            .iter()
            .find(|row| row.name == *name && row.key == *key)
            .and_then(|row| Class::from_number(row.class));
        Ok(!matches!(class, Some(Class::Idempotent | Class::Fenced)))
    }
}

/// A result without the task's own id, which is another one in each run.
fn normal(result: Option<&serde_json::Value>, task: Uuid) -> String {
    result
        .map(ToString::to_string)
        .unwrap_or_default()
        .replace(&task.to_string(), "{task}")
}

impl Run {
    /// Effects that happened more often than in another run, and less often.
    pub(crate) fn compared_with(&self, other: &Self) -> (Vec<String>, Vec<String>) {
        let count = |run: &Self, name: &str| run.effects.get(name).copied().unwrap_or(0);
        let names: BTreeSet<&String> = self.effects.keys().chain(other.effects.keys()).collect();
        let mut more = Vec::new();
        let mut fewer = Vec::new();
        for name in names {
            match count(self, name).cmp(&count(other, name)) {
                std::cmp::Ordering::Greater => more.push(name.clone()),
                std::cmp::Ordering::Less => fewer.push(name.clone()),
                std::cmp::Ordering::Equal => {}
            }
        }
        (more, fewer)
    }
}
