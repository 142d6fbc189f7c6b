//! What a check found: how bad, what was seen, what to do.
//!
//! Invariant: unknown is worse than a warning, so that no program that looks at the worst verdict takes it for fine.

use serde::Serialize;
use serde_json::Value;

/// How many equally bad findings are told in words; all of them stand in the values.
const TOLD: usize = 3;

/// How bad it is, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing; nothing has to be done.
    Notice,
    /// Somebody should look in working hours.
    Warning,
    /// The check could not run, or could not tell. Never ok.
    Unknown,
    /// A promise is broken or about to be: somebody should look now.
    Critical,
}

impl Severity {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Unknown => "unknown",
            Self::Critical => "critical",
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// How bad.
    pub severity: Severity,
    /// What was seen, in a sentence with its values.
    pub seen: String,
    /// The same for programs.
    pub values: Value,
    /// What to do, in this order; commands as they are typed.
    pub todo: Vec<String>,
}

impl Verdict {
    pub(super) fn new(severity: Severity, seen: impl Into<String>) -> Self {
        Self {
            severity,
            seen: seen.into(),
            values: Value::Null,
            todo: Vec::new(),
        }
    }

    pub(super) fn ok(seen: impl Into<String>) -> Self {
        Self::new(Severity::Ok, seen)
    }

    pub(super) fn unknown(seen: impl Into<String>) -> Self {
        Self::new(Severity::Unknown, seen)
    }

    pub(super) fn with(mut self, values: Value) -> Self {
        self.values = values;
        self
    }

    /// Something to do, unless all is well.
    pub(super) fn todo(mut self, what: impl Into<String>) -> Self {
        if self.severity > Severity::Ok {
            self.todo.push(what.into());
        }
        self
    }

    /// The worst of several; equally bad ones are told together, the first three of them. `None` for none.
    pub(super) fn worst(all: Vec<Self>) -> Option<Self> {
        let severity = all.iter().map(|one| one.severity).max()?;
        let worst: Vec<Self> = all
            .into_iter()
            .filter(|one| one.severity == severity)
            .collect();
        let more = worst.len().saturating_sub(TOLD);
        let mut told = Self::new(severity, String::new());
        for one in worst.into_iter().take(TOLD) {
            if !told.seen.is_empty() {
                told.seen.push_str("; ");
            }
            told.seen.push_str(&one.seen);
            for step in one.todo {
                if !told.todo.contains(&step) {
                    told.todo.push(step);
                }
            }
        }
        if more > 0 {
            told.seen.push_str("; and more: ");
            told.seen.push_str(&more.to_string());
        }
        Some(told)
    }
}

/// `3 s`, `12 min`, `4 h`, `3 days`: for people.
pub(super) fn lasting(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    for (unit, length, upto) in [
        ("s", 1.0, 120.0),
        ("min", 60.0, 7200.0),
        ("h", 3600.0, 172_800.0),
    ] {
        if seconds < upto {
            return format!("{:.0} {unit}", seconds / length);
        }
    }
    format!("{:.0} days", seconds / 86_400.0)
}

/// By thresholds: from `warning` on, from `critical` on.
pub(super) fn graded(value: f64, warning: f64, critical: f64) -> Severity {
    if value >= critical {
        Severity::Critical
    } else if value >= warning {
        Severity::Warning
    } else {
        Severity::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_never_hidden_behind_ok_or_a_warning() {
        let found = Verdict::worst(vec![
            Verdict::ok("fine"),
            Verdict::unknown("dark"),
            Verdict::new(Severity::Warning, "odd"),
        ]);
        assert_eq!(found.unwrap().severity, Severity::Unknown);
        assert!(Severity::Critical > Severity::Unknown && Severity::Unknown > Severity::Warning);
    }

    #[test]
    fn equally_bad_ones_are_told_together_and_done_once() {
        let one = |seen: &str| Verdict::new(Severity::Warning, seen).todo("x");
        let found = Verdict::worst(vec![one("a"), one("b"), Verdict::ok("c")]).unwrap();
        assert_eq!((found.seen.as_str(), found.todo.len()), ("a; b", 1));
        let many = (0..5).map(|n| one(&n.to_string())).collect();
        assert_eq!(Verdict::worst(many).unwrap().seen, "0; 1; 2; and more: 2");
        assert!(Verdict::worst(Vec::new()).is_none());
        assert!(Verdict::ok("c").todo("x").todo.is_empty());
    }

    #[test]
    fn times_are_told_in_units_that_one_can_read() {
        let told: Vec<String> = [3.2, 600.0, 10_000.0, 400_000.0]
            .into_iter()
            .map(lasting)
            .collect();
        assert_eq!(told, ["3 s", "10 min", "3 h", "5 days"]);
    }
}
