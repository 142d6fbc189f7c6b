//! What another tool does around a file, said of the statements that it matters to: a transaction in its transaction, several statements
//! in one query, what stands for a placeholder.
//!
//! Invariants: of a tool whose way is not known nothing is said to be wrong.

use aegis_ddl::{Class, Finding, Form, Level, SourceFile, Statement, rules};

use super::Judged;
use crate::foreign::{Tool, Wrapping};

/// How a file is run.
#[derive(Debug, Clone)]
pub struct Wrapped {
    /// Whose it is.
    pub tool: Tool,
    /// How many of its statements run in one transaction.
    pub wrapping: Wrapping,
    /// What was put in place of what is only known when it runs: line and words.
    pub notes: Vec<(usize, String)>,
}

impl Wrapped {
    /// Whether its statements run in one transaction. None: nobody knows.
    pub(super) fn is_atomic(&self, statements: &[Statement]) -> Option<bool> {
        match self.wrapping {
            Wrapping::Transaction => Some(true),
            Wrapping::OneQuery => Some(statements.len() > 1),
            Wrapping::Each => Some(false),
            Wrapping::AsNeeded => Some(statements.iter().any(Statement::transactional)),
            Wrapping::Unknown => None,
        }
    }

    /// Adds to what the judge said of the statements of a file.
    pub(super) fn add(&self, file: &SourceFile, judged: &mut [Judged]) {
        for (statement, one) in file.script.statements.iter().zip(judged) {
            let last = statement.line + statement.text.matches('\n').count();
            for (_, said) in self
                .notes
                .iter()
                .filter(|(line, _)| (statement.line..=last).contains(line))
            {
                push(one, "placeholder", Class::A, Level::Notice, said.clone());
            }
            if let Form::TransactionControl { what } = &statement.form {
                if file.atomic == Some(true) && self.wrapping != Wrapping::OneQuery {
                    self.nested(what, one);
                }
            } else if !statement.transactional() {
                self.outside(file, one);
            }
        }
    }

    fn nested(&self, what: &str, one: &mut Judged) {
        let tool = self.tool;
        let begins = what.starts_with("BEGIN") || what.starts_with("START");
        let ends = ["COMMIT", "END", "ROLLBACK", "ABORT"]
            .iter()
            .any(|word| what.starts_with(word))
            && !what.ends_with(" TO");
        let said = if begins {
            format!("{what}: {tool} has begun a transaction, so this begins none")
        } else if ends {
            format!(
                "{what} ends the transaction of {tool}: what follows stays when a later statement fails, and {tool} does not know it"
            )
        } else {
            return;
        };
        push(one, "transaction-in-file", Class::E, Level::Error, said);
        if let Some(last) = one.findings.last_mut() {
            last.safe = "take it out";
        }
        one.class = Class::E;
        one.passes = false;
    }

    fn outside(&self, file: &SourceFile, one: &mut Judged) {
        match self.wrapping {
            Wrapping::Unknown if self.tool == Tool::Plain => {
                let said =
                    "it cannot be in a transaction, and how a plain file is run is not known";
                push(
                    one,
                    "outside-transaction",
                    Class::C,
                    Level::Notice,
                    said.to_owned(),
                );
            }
            Wrapping::OneQuery if file.script.statements.len() > 1 => {
                let said = format!(
                    "{} sends the file as one query, and the server makes one transaction of several statements",
                    self.tool
                );
                push(one, "one-query", Class::B, Level::Error, said);
            }
            _ => {}
        }
    }
}

fn push(one: &mut Judged, rule: &'static str, class: Class, level: Level, message: String) {
    one.findings.push(Finding {
        rule,
        class,
        level,
        message,
        safe: rules::find(rule).map_or("", |rule| rule.safe),
        overridden: None,
        unless: None,
        declare: None,
    });
    if !one.rules.contains(&rule) {
        one.rules.push(rule);
    }
}
