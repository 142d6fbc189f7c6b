//! What runs inside: DO blocks, and functions of the set that a SELECT or CALL runs.

use super::world::{Entered, World};
use super::{Found, files, statement_of, volatility};
use crate::class::Class;
use crate::form::{Body, Form};
use crate::name::QualifiedName;
use crate::report::Level;

/// Volatile functions of the server that are short and that migrations call for what they do.
const SHORT: &[&str] = &[
    "currval",
    "lastval",
    "nextval",
    "pg_advisory_lock",
    "pg_advisory_unlock",
    "pg_advisory_xact_lock",
    "pg_notify",
    "set_config",
    "setval",
];

/// A block that runs.
pub(super) fn run(world: &mut World<'_>, body: &Body, transaction: usize, found: &mut Found) {
    let mut strong = None;
    for (number, statement) in body.statements.iter().enumerate() {
        if !statement.transactional() {
            found.push(
                "concurrently-in-transaction",
                Class::B,
                Level::Error,
                "a DO block is one transaction",
            );
        }
        let before = found.findings.len();
        statement_of(world, statement, transaction, true, found);
        if !body.commits {
            files::validated_too_soon(world, statement, transaction, found);
            files::long_behind(world, statement, strong.as_deref(), found);
        }
        strong = strong.or_else(|| files::locked_by(world, statement));
        let of_rows = matches!(
            statement.form,
            Form::Insert { .. } | Form::Update { .. } | Form::Delete { .. }
        );
        let said = found.findings[before..]
            .iter()
            .any(|finding| finding.rule == "dml-bulk");
        if of_rows && !said && !body.commits && body.repeated.contains(&number) {
            found.push(
                "dml-bulk",
                Class::B,
                Level::Error,
                "in its body: a loop of unknown length repeats it in one transaction",
            );
        }
    }
    if !body.calls.is_empty() {
        select(world, &body.calls, false, transaction, found);
    }
    for statement in &body.guessed {
        statement_of(world, statement, transaction, true, found);
    }
    found.long |= body.commits;
    if !body.unread.is_empty() {
        found.unread.extend(body.unread.iter().cloned());
        opaque(
            found,
            "a part of the block is not static SQL, so nobody knows what it does",
        );
    }
}

/// CALL.
pub(super) fn call(
    world: &mut World<'_>,
    procedure: &QualifiedName,
    transaction: usize,
    found: &mut Found,
) {
    if enter(world, procedure, transaction, found) {
        return;
    }
    found.unread.push("what the procedure does".to_owned());
    opaque(found, "nobody read what the procedure does");
}

/// SELECT: it runs for what its functions do.
pub(super) fn select(
    world: &mut World<'_>,
    calls: &[QualifiedName],
    locks_rows: bool,
    transaction: usize,
    found: &mut Found,
) {
    let mut unknown = locks_rows;
    for name in calls {
        if enter(world, name, transaction, found) {
            continue;
        }
        unknown |= !SHORT.contains(&name.name.as_str()) && !volatility::is_steady(world, name);
    }
    if unknown {
        found
            .unread
            .push("what the functions of this SELECT do".to_owned());
        opaque(
            found,
            "a SELECT in a migration runs for what its functions do",
        );
    }
}

/// Judges the body of a function that the set made. False: it made none of this name.
fn enter(
    world: &mut World<'_>,
    name: &QualifiedName,
    transaction: usize,
    found: &mut Found,
) -> bool {
    let body = match world.enter(name) {
        Entered::Unknown => return false,
        Entered::Before => return true,
        Entered::Now(body) => body,
    };
    run(world, &body, transaction, found);
    world.leave();
    true
}

/// What nobody could read may take long; that it breaks something is not said.
pub(super) fn opaque(found: &mut Found, message: &str) {
    found.long = true;
    found.push("opaque-sql", Class::C, Level::Warning, message);
}
