//! What stands together in one transaction: what must not, and what waits behind whose lock.

use std::collections::{BTreeMap, BTreeSet};

use super::world::World;
use super::{Found, SourceFile};
use crate::class::Class;
use crate::form::{Action, Form};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;
use crate::statement::Statement;

/// The transactions of a file.
pub(super) struct Boundaries {
    atomic: Option<bool>,
    plain: bool,
    several: bool,
    explicit: bool,
    transaction: usize,
    /// The strongest lock so far in this transaction on a live table.
    strong: Option<String>,
    /// What is wrong with a BEGIN, by its place in the file.
    odd: BTreeMap<usize, &'static str>,
    /// Each BEGIN whose transaction the file takes back, by its place.
    taken_back: BTreeSet<usize>,
}

/// What a statement does to the transaction around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Begins,
    Ends,
    TakesBack,
}

fn turn(statement: &Statement) -> Option<Turn> {
    let Form::TransactionControl { what } = &statement.form else {
        return None;
    };
    let starts = |words: &[&str]| words.iter().any(|word| what.starts_with(word));
    if starts(&["BEGIN", "START"]) {
        Some(Turn::Begins)
    } else if what.ends_with(" TO") {
        None
    } else if starts(&["ROLLBACK", "ABORT"]) {
        Some(Turn::TakesBack)
    } else {
        starts(&["COMMIT", "END", "PREPARE"]).then_some(Turn::Ends)
    }
}

impl Boundaries {
    pub(super) fn new(file: &SourceFile, transaction: usize) -> Self {
        Self {
            atomic: file.atomic,
            plain: file.phase.is_none(),
            several: file.script.statements.len() > 1,
            explicit: false,
            transaction,
            strong: None,
            odd: BTreeMap::new(),
            taken_back: BTreeSet::new(),
        }
        .with_turns(&file.script.statements)
    }

    /// Reads where the transactions of the file begin and end.
    fn with_turns(mut self, statements: &[Statement]) -> Self {
        let mut open: Option<usize> = None;
        // COMMIT first: it ends what the tool began, and the BEGIN at the end is for the tool to end.
        let mut of_tool = false;
        for statement in statements {
            let at = statement.span.start;
            match (turn(statement), open) {
                (Some(Turn::Begins), None) => open = Some(at),
                (Some(Turn::Begins), Some(_)) => {
                    let said = "a transaction is open already, and the first COMMIT ends it";
                    self.odd.insert(at, said);
                }
                (Some(Turn::TakesBack), Some(begun)) => {
                    self.taken_back.insert(begun);
                    open = None;
                }
                (Some(_), None) => of_tool = true,
                (Some(_), Some(_)) => open = None,
                (None, _) => {}
            }
        }
        if let Some(begun) = open.filter(|_| !of_tool) {
            let said = "no COMMIT follows: what it did is taken back when the session ends";
            self.odd.insert(begun, said);
        }
        self
    }

    /// Whether this BEGIN is of a transaction that the file takes back.
    pub(super) fn is_taken_back(&self, statement: &Statement) -> bool {
        self.taken_back.contains(&statement.span.start)
    }

    /// Whether this is the end of one that is taken back.
    pub(super) fn takes_back(statement: &Statement) -> bool {
        turn(statement) == Some(Turn::TakesBack)
    }

    /// Whether a transaction ends here.
    pub(super) fn ends(statement: &Statement) -> bool {
        matches!(turn(statement), Some(Turn::Ends | Turn::TakesBack))
    }

    /// BEGIN and COMMIT in a file.
    fn control(&self, statement: &Statement, what: &str, found: &mut Found) {
        let rule = "transaction-in-file";
        let odd = self.odd.get(&statement.span.start);
        if !self.plain {
            let said = format!("{what}: the runner makes the transactions");
            found.push(rule, Class::E, Level::Error, said);
        } else if let (Some(odd), false) = (odd, self.atomic == Some(true)) {
            // What a tool wraps is told by who knows the tool.
            found.push(rule, Class::E, Level::Error, format!("{what}: {odd}"));
        }
    }

    /// The transaction of this statement.
    pub(super) fn of(&mut self, statement: &Statement) -> usize {
        if matches!(statement.form, Form::TransactionControl { .. }) {
            if let Some(turn) = turn(statement) {
                self.explicit = turn == Turn::Begins;
                self.transaction += 1;
                self.strong = None;
            }
        } else if self.atomic == Some(false) && !self.explicit {
            self.transaction += 1;
            self.strong = None;
        }
        self.transaction
    }

    pub(super) const fn last(&self) -> usize {
        self.transaction
    }

    /// Whether this statement is surely inside a transaction with others.
    fn is_inside(&self) -> bool {
        self.explicit || self.atomic == Some(true) && self.several
    }

    /// Whether it may be one transaction with what stands around it.
    pub(super) fn are_together(&self) -> bool {
        self.explicit || self.atomic != Some(false)
    }

    pub(super) fn judge(&mut self, world: &World<'_>, statement: &Statement, found: &mut Found) {
        if let Form::TransactionControl { what } = &statement.form {
            self.control(statement, what, found);
            return;
        }
        if !statement.transactional() && (self.is_inside() || self.atomic == Some(true)) {
            found.push(
                "concurrently-in-transaction",
                Class::B,
                Level::Error,
                "the server refuses it inside a transaction",
            );
        }
        if self.is_inside()
            && let Some(locked) = &self.strong
            && !matches!(statement.form, Form::Set { .. } | Form::CommentOn)
        {
            found.push(
                "statement-after-strong-lock",
                Class::B,
                if is_long(world, statement) {
                    Level::Error
                } else {
                    Level::Notice
                },
                format!("{locked} stays locked while it runs"),
            );
        }
        let strongest = found
            .locks
            .iter()
            .filter(|lock| lock.mode == LockMode::AccessExclusive && world.is_live(&lock.relation))
            .map(|lock| lock.relation.to_string())
            .next();
        if self.strong.is_none() {
            self.strong = strongest;
        }
        if self.atomic != Some(false) {
            validated_too_soon(world, statement, self.transaction, found);
        }
    }
}

/// VALIDATE of what the same transaction added NOT VALID.
pub(super) fn validated_too_soon(
    world: &World<'_>,
    statement: &Statement,
    transaction: usize,
    found: &mut Found,
) {
    let Form::AlterTable { table, actions } = &statement.form else {
        return;
    };
    for action in actions {
        if let Action::ValidateConstraint { constraint } = action
            && world.not_valid_since(table, constraint) == Some(transaction)
            && world.is_live(table)
            // Of one statement it is told already.
            && !found
                .findings
                .iter()
                .any(|one| one.rule == "validate-in-same-transaction" && one.level == Level::Error)
        {
            found.push(
                "validate-in-same-transaction",
                Class::B,
                Level::Error,
                format!("{constraint} was added NOT VALID in the same transaction, whose lock stays while it scans"),
            );
        }
    }
}

/// In a block: what takes long behind a lock that an earlier statement of it took.
pub(super) fn long_behind(
    world: &World<'_>,
    statement: &Statement,
    strong: Option<&str>,
    found: &mut Found,
) {
    if let Some(locked) = strong
        && is_long(world, statement)
    {
        found.push(
            "statement-after-strong-lock",
            Class::B,
            Level::Error,
            format!("in its body: {locked} stays locked while it runs"),
        );
    }
}

/// A live table that a statement shuts for everybody.
pub(super) fn locked_by(world: &World<'_>, statement: &Statement) -> Option<String> {
    statement
        .locks()
        .into_iter()
        .find(|lock| lock.mode == LockMode::AccessExclusive && world.is_live(&lock.relation))
        .map(|lock| lock.relation.to_string())
}

/// Whether it surely takes long: a scan or a copy of a live table, or a sleep.
fn is_long(world: &World<'_>, statement: &Statement) -> bool {
    let sleeps = |calls: &[QualifiedName]| {
        calls.iter().any(|call| {
            matches!(
                call.name.as_str(),
                "pg_sleep" | "pg_sleep_for" | "pg_sleep_until"
            )
        })
    };
    let is_large = |table: &QualifiedName| world.is_live(table) && !world.is_small(table);
    match &statement.form {
        Form::AlterTable { table, actions } => {
            is_large(table)
                && actions
                    .iter()
                    .any(|action| matches!(action, Action::ValidateConstraint { .. }))
        }
        Form::CreateMaterializedView { .. } | Form::CreateTableAs { .. } => {
            statement.scans.iter().any(is_large)
        }
        // Its query runs anew, whoever may read meanwhile.
        Form::RefreshMaterializedView { view, .. } => is_large(view),
        Form::Select { calls, .. } => sleeps(calls) || statement.scans.iter().any(is_large),
        Form::Do { body } => {
            sleeps(&body.calls) || body.statements.iter().any(|one| is_long(world, one))
        }
        _ => false,
    }
}
