//! What an exploration found, as values and as a table.

use std::fmt;

use crate::fault::Fault;
use crate::run::{Outcome, Run};

/// Of an outcome in the table.
const OUTCOME_CHARS_MAX: usize = 60;

/// One case: faults, and what the handler made of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Case {
    /// What befell the worker.
    pub faults: Vec<Fault>,
    /// How many executions it took.
    pub executions: usize,
    /// How many effects there were.
    pub effects: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// Effects that happened more often than without a fault.
    pub doubled: Vec<String>,
    /// Effects that did not happen although the task succeeded.
    pub lost: Vec<String>,
    /// Effects that a frozen worker caused after it had lost its lease and another one had finished.
    pub late: Vec<String>,
    /// Operations that a person has to decide about.
    pub doubtful: Vec<String>,
    /// It succeeded with another result than without a fault.
    pub other_result: bool,
    /// A fault that did not strike: the handler went another way than in the run that it was planned by.
    pub not_struck: Option<Fault>,
}

impl Case {
    pub(crate) fn judge(
        faults: Vec<Fault>,
        baseline: &Run,
        run: &Run,
        other_result: bool,
        not_struck: Option<Fault>,
    ) -> Self {
        let (doubled, fewer) = run.compared_with(baseline);
        let doubtful = match &run.outcome {
            Outcome::WaitsForPerson { operations, .. } => operations.clone(),
            _ => Vec::new(),
        };
        Self {
            faults,
            executions: run.executions,
            effects: run.effects.values().sum(),
            outcome: run.outcome.clone(),
            doubled,
            lost: if run.outcome == Outcome::Succeeded {
                fewer
            } else {
                Vec::new()
            },
            late: run.late.clone(),
            doubtful,
            other_result,
            not_struck,
        }
    }

    /// Did the handler survive: the same effects, the same result, or a person who decides because no engine could?
    pub fn is_safe(&self) -> bool {
        self.doubled.is_empty()
            && self.lost.is_empty()
            && self.late.is_empty()
            && !self.other_result
            && self.not_struck.is_none()
            && matches!(
                self.outcome,
                Outcome::Succeeded | Outcome::WaitsForPerson { expected: true, .. }
            )
    }

    fn verdict(&self) -> String {
        let mut found = Vec::new();
        if !self.doubled.is_empty() {
            found.push(format!("DOUBLED {}", self.doubled.join(", ")));
        }
        if !self.lost.is_empty() {
            found.push(format!("LOST {}", self.lost.join(", ")));
        }
        if !self.late.is_empty() {
            found.push(format!("LATE {}", self.late.join(", ")));
        }
        if self.other_result {
            found.push("OTHER RESULT".to_owned());
        }
        if let Some(fault) = &self.not_struck {
            found.push(format!("NOT STRUCK: {fault}"));
        }
        if matches!(
            self.outcome,
            Outcome::WaitsForPerson {
                expected: false,
                ..
            }
        ) {
            found.push(format!("DOUBTFUL {}", self.doubtful.join(", ")));
        }
        if found.is_empty() && !self.is_safe() {
            found.push("DID NOT SUCCEED".to_owned());
        }
        if found.is_empty() {
            found.push("ok".to_owned());
        }
        found.join("; ")
    }

    fn place(&self) -> String {
        let faults: Vec<_> = self.faults.iter().map(ToString::to_string).collect();
        faults.join(", then ")
    }
}

/// All cases of an exploration. Prints as a table.
#[derive(Debug, Clone)]
#[must_use = "a report that nobody looks at shows nothing"]
#[non_exhaustive]
pub struct Report {
    /// The run without a fault.
    pub baseline: Run,
    /// One for each point, in the order of the points.
    pub cases: Vec<Case>,
    /// Cases that were left out because of [`Explore::at_most`](crate::Explore::at_most).
    pub left_out: usize,
}

impl Report {
    pub(crate) fn new(baseline: Run, cases: Vec<Case>, left_out: usize) -> Self {
        Self {
            baseline,
            cases,
            left_out,
        }
    }

    /// Every case was safe, and none was left out. What nobody tried is not safe.
    pub fn is_safe(&self) -> bool {
        self.left_out == 0 && !self.cases.is_empty() && self.cases.iter().all(Case::is_safe)
    }

    /// The cases that were not safe.
    pub fn unsafe_cases(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(|case| !case.is_safe())
    }

    /// How many effects doubled, over all cases.
    pub fn doubled(&self) -> usize {
        self.cases.iter().map(|case| case.doubled.len()).sum()
    }

    /// How many effects were lost, over all cases.
    pub fn lost(&self) -> usize {
        self.cases.iter().map(|case| case.lost.len()).sum()
    }

    /// How many operations a person has to decide about, over all cases.
    pub fn doubtful(&self) -> usize {
        self.cases.iter().map(|case| case.doubtful.len()).sum()
    }

    /// For tests: panics with the table unless every case was safe.
    ///
    /// # Panics
    /// When a case was not.
    #[track_caller]
    pub fn assert_safe(&self) {
        assert!(self.is_safe(), "the handler does not survive:\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows =
            vec![["FAULT", "EXECUTIONS", "EFFECTS", "OUTCOME", "VERDICT"].map(str::to_owned)];
        rows.extend(self.cases.iter().map(|case| {
            [
                case.place(),
                case.executions.to_string(),
                case.effects.to_string(),
                short(&case.outcome.to_string()),
                case.verdict(),
            ]
        }));
        write_columns(f, &rows)?;
        let effects: usize = self.baseline.effects.values().sum();
        writeln!(
            f,
            "{} cases, {effects} effects each: {} doubled, {} lost, {} doubtful, {} cases not safe",
            self.cases.len(),
            self.doubled(),
            self.lost(),
            self.doubtful(),
            self.unsafe_cases().count(),
        )?;
        if self.left_out > 0 {
            writeln!(f, "NOT TRIED: {} cases", self.left_out)?;
        }
        Ok(())
    }
}

/// A message is told whole by [`Case::outcome`].
fn short(text: &str) -> String {
    match text.char_indices().nth(OUTCOME_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Columns as wide as their longest cell; the last one as it is.
fn write_columns<const N: usize>(f: &mut fmt::Formatter<'_>, rows: &[[String; N]]) -> fmt::Result {
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 < N {
                write!(f, "{cell:<width$}  ", width = width(column))?;
            } else {
                writeln!(f, "{cell}")?;
            }
        }
    }
    Ok(())
}
