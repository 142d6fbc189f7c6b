//! A connection that is lost: what is known then, told in one way wherever it happens.
//!
//! The rule: a statement of a file, a COMMIT, or another command of the runner that changes something by itself was in the air: nobody
//! can tell whether the server has done it ([`RunError::Unknown`], [`RunError::NoAnswer`], exit code 15). In all other places nothing was in
//! the air that could be half done (exit code 17). What the server answers in a session that goes on is an error of its own (20).
//! The severity decides, not the code: a statement may raise 57P01 or 08006 itself, and its session lives.

use tokio_postgres::Transaction;
use tokio_postgres::error::{DbError, Severity};

use super::{RunError, Work};

/// What the server answered in a session that goes on. None: the session is gone, also when the server could say so.
pub(crate) fn answer(error: &tokio_postgres::Error) -> Option<&DbError> {
    let db = error.as_db_error()?;
    let is_end = matches!(
        db.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    );
    (!is_end).then_some(db)
}

/// Whether the session is gone.
pub(crate) fn is_lost(error: &tokio_postgres::Error) -> bool {
    if error.as_db_error().is_some() {
        return answer(error).is_none();
    }
    let below = std::error::Error::source(error);
    error.is_closed() || below.is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Whether a session is gone, by what is below an error.
pub(crate) fn is_lost_below(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(one) = next {
        if one
            .downcast_ref::<tokio_postgres::Error>()
            .is_some_and(is_lost)
        {
            return true;
        }
        next = one.source();
    }
    false
}

/// An error with everything below it, each said once. Of a lost connection first that nothing was in the air.
pub(crate) fn whole_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        below = cause.source();
    }
    if is_lost_below(error) {
        return format!(
            "the connection was lost; no statement and no COMMIT was in the air, and what was done is in the ledger. Run again: {text}"
        );
    }
    text
}

/// What the other side said last.
pub(super) fn said(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |db| db.message().to_owned())
}

/// Commits what the runner keeps in its ledger.
///
/// # Errors
/// [`RunError::NoAnswer`] when nobody can tell whether it is kept.
pub(super) async fn commit(transaction: Transaction<'_>, what: &str) -> Result<(), RunError> {
    transaction
        .commit()
        .await
        .map_err(|error| in_the_air(error, &format!("the COMMIT of {what}")))
}

/// An error of a command that changes something by itself.
pub(super) fn in_the_air(error: tokio_postgres::Error, what: &str) -> RunError {
    if is_lost(&error) {
        return RunError::NoAnswer {
            what: what.to_owned(),
            said: said(&error),
        };
    }
    error.into()
}

/// The connection was lost while a statement of a transaction was at work: COMMIT was never sent.
pub(super) fn at_work(work: &Work<'_>, error: &tokio_postgres::Error) -> RunError {
    RunError::Unknown {
        file: work.step.file.clone(),
        line: work.statement.line,
        why: format!(
            "the connection was lost while this statement was at work ({}). The server takes its transaction back, but may be at it for a while yet; run again: the next run waits for that, and runs the statement anew",
            said(error)
        ),
    }
}

/// The connection was lost while the COMMIT of a statement was in the air.
pub(super) fn at_commit(work: &Work<'_>, error: &tokio_postgres::Error) -> RunError {
    RunError::Unknown {
        file: work.step.file.clone(),
        line: work.statement.line,
        why: format!(
            "the answer to COMMIT did not arrive ({}). Run again: the ledger is in the same commit, so the next run knows whether this was done, and goes on from there",
            said(error)
        ),
    }
}

/// The connection was lost while a statement outside of a transaction was at work.
pub(super) fn outside(work: &Work<'_>, error: &tokio_postgres::Error) -> RunError {
    RunError::Unknown {
        file: work.step.file.clone(),
        line: work.statement.line,
        why: format!(
            "the connection was lost while this statement was at work, outside of a transaction ({}). Run again: what is there tells the next run how far it came; it takes it for done, ends it, or drops our leftover and builds again",
            said(error)
        ),
    }
}
