//! How an attempt of a program ended: one pure function from what was said, what was seen and what the engine wants.
//!
//! Invariants: what the engine raised and a cancellation come first, since neither is the handler's fault; a result counts
//! only with exit code 0, or when the handler was ended because it did not end itself; an end without a last message is
//! always a failure of the handler's.

use std::time::Duration;

use aegis_protocol::{Failed, FromHandler};
use aegis_worker::{CancelReason, EngineStop, TaskError};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::frame::{By, Ended, Status};

/// What decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// The last message.
    pub(crate) last: Option<FromHandler>,
    /// The first thing that went wrong.
    pub(crate) fault: Option<Fault>,
    /// What the engine raised in one of its requests.
    pub(crate) raised: Option<EngineStop>,
    /// Was it asked to stop?
    pub(crate) cancelled: Option<CancelReason>,
    /// How the process ended; `None`: the supervisor did not say.
    pub(crate) ended: Option<Ended>,
    /// The last lines of its standard error.
    pub(crate) stderr: Vec<String>,
}

/// What the attempt comes to.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    Result(Value),
    Error(TaskError),
    /// It stopped because it was asked to.
    Stopped(CancelReason),
}

/// Decides. Pure.
pub(crate) fn decide(facts: Facts) -> Verdict {
    if let Some(stop) = facts.raised {
        return Verdict::Error(stop.into());
    }
    let details = details(&facts);
    let fail = |code: &str, message: String| {
        Verdict::Error(TaskError::retryable(code, message).with_details(details.clone()))
    };
    let status = facts.ended.and_then(|ended| ended.status);
    let by = facts.ended.map_or(By::Itself, |ended| ended.by);
    let lingered = by == By::Order && facts.fault.is_none();
    let last = match (facts.cancelled, facts.fault, facts.last) {
        (None, Some(fault), _) => {
            return fail(fault.code(), format!("{fault}{}", tail(&facts.stderr)));
        }
        (_, None, Some(FromHandler::Result(result)))
            if status == Some(Status::Code(0)) || lingered =>
        {
            return Verdict::Result(result.value);
        }
        // Nobody is charged for it, so it may be said while it stops, too.
        (_, None, Some(FromHandler::Snooze(snooze))) => {
            return Verdict::Error(TaskError::snooze(Duration::from_millis(snooze.for_ms)));
        }
        (Some(reason), _, _) => return Verdict::Stopped(reason),
        (None, None, last) => last,
    };
    if by == By::Lease {
        // The lease lives, or the engine would have said otherwise: this worker was too busy to say so in time.
        return Verdict::Error(TaskError::snooze(Duration::ZERO));
    }
    match (last, status) {
        (Some(FromHandler::Error(error)), _) => Verdict::Error(failed(error)),
        (Some(FromHandler::Result(_)), status) => fail(
            "exec_exit",
            format!(
                "the handler gave a result and then {}{}",
                words(status),
                tail(&facts.stderr)
            ),
        ),
        (_, Some(Status::Code(0))) => fail(
            "exec_no_result",
            format!(
                "the handler exited with 0 and without a last message (result, error or snooze){}",
                tail(&facts.stderr)
            ),
        ),
        (_, Some(Status::Signal(_))) => fail(
            "exec_signal",
            format!("the handler {}{}", words(status), tail(&facts.stderr)),
        ),
        (_, status) => fail(
            "exec_exit",
            format!("the handler {}{}", words(status), tail(&facts.stderr)),
        ),
    }
}

fn failed(error: Failed) -> TaskError {
    let mut task = if error.retryable {
        TaskError::retryable(error.code, error.message)
    } else {
        TaskError::terminal(error.code, error.message)
    };
    if let Some(details) = error.details {
        task = task.with_details(details);
    }
    match error.retry_after_ms {
        Some(ms) => task.with_retry_after(Duration::from_millis(ms)),
        None => task,
    }
}

fn words(status: Option<Status>) -> String {
    match status {
        Some(Status::Code(code)) => format!("exited with {code}"),
        Some(Status::Signal(signal)) => format!("was ended by signal {signal}"),
        None => "ended, nobody knows how".to_owned(),
    }
}

/// What a person wants to see first when a program failed.
fn tail(stderr: &[String]) -> String {
    match stderr.last() {
        Some(last) => format!("; its last words: {last}"),
        None => String::new(),
    }
}

fn details(facts: &Facts) -> Value {
    let (code, signal) = match facts.ended.and_then(|ended| ended.status) {
        Some(Status::Code(code)) => (Some(code), None),
        Some(Status::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    json!({ "exit_code": code, "signal": signal, "stderr": facts.stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: Status, by: By) -> Ended {
        Ended {
            status: Some(status),
            by,
            left: 0,
        }
    }

    fn last(line: &str) -> FromHandler {
        FromHandler::parse(line.as_bytes()).unwrap()
    }

    fn shown(facts: Facts) -> String {
        match decide(facts) {
            Verdict::Result(value) => format!("result {value}"),
            Verdict::Error(error) => error.to_string(),
            Verdict::Stopped(reason) => format!("stopped {reason:?}"),
        }
    }

    const RESULT: &str = r#"{"type":"result","value":7}"#;
    const ERROR: &str = r#"{"type":"error","code":"bad","message":"no","retryable":false}"#;
    const SNOOZE: &str = r#"{"type":"snooze","for_ms":5}"#;

    #[test]
    fn each_end_is_charged_to_whom_it_belongs() {
        let zero = Status::Code(0);
        for (said, status, by, wanted) in [
            (Some(RESULT), zero, By::Itself, "result 7"),
            (Some(RESULT), Status::Signal(9), By::Order, "result 7"),
            (
                Some(RESULT),
                Status::Code(3),
                By::Itself,
                "exec_exit: the handler gave a result and then exited with 3 (retryable)",
            ),
            (
                Some(RESULT),
                Status::Signal(11),
                By::Itself,
                "exec_exit: the handler gave a result and then was ended by signal 11 (retryable)",
            ),
            (
                Some(ERROR),
                Status::Code(1),
                By::Itself,
                "bad: no (terminal)",
            ),
            (Some(ERROR), zero, By::Itself, "bad: no (terminal)"),
            (Some(SNOOZE), zero, By::Itself, "postponed by 5 ms"),
            (
                None,
                zero,
                By::Itself,
                "exec_no_result: the handler exited with 0 and without a last message (result, error or snooze) (retryable)",
            ),
            (
                None,
                Status::Code(1),
                By::Itself,
                "exec_exit: the handler exited with 1 (retryable)",
            ),
            (
                None,
                Status::Signal(9),
                By::Itself,
                "exec_signal: the handler was ended by signal 9 (retryable)",
            ),
            (None, Status::Signal(9), By::Lease, "postponed by 0 ms"),
        ] {
            let facts = Facts {
                last: said.map(last),
                ended: Some(ended(status, by)),
                ..Facts::default()
            };
            assert_eq!(shown(facts), wanted, "{said:?} {status:?} {by:?}");
        }
    }

    #[test]
    fn the_engine_and_a_cancellation_come_before_the_handlers_faults() {
        let facts = Facts {
            fault: Some(Fault::OutputClosed),
            cancelled: Some(CancelReason::Drain),
            ended: Some(ended(Status::Signal(15), By::Itself)),
            ..Facts::default()
        };
        assert_eq!(shown(facts.clone()), "stopped Drain");
        let raised = Facts {
            raised: Some(EngineStop::SettlingOnly),
            last: Some(last(RESULT)),
            ..facts.clone()
        };
        assert!(shown(raised).contains("only settles"), "the engine stands");
        let finished = Facts {
            fault: None,
            last: Some(last(RESULT)),
            ended: Some(ended(Status::Code(0), By::Itself)),
            ..facts
        };
        assert_eq!(
            shown(finished),
            "result 7",
            "a result that is ready is sent"
        );
    }

    #[test]
    fn a_fault_is_told_with_the_last_words() {
        let facts = Facts {
            fault: Some(Fault::LongLine(9)),
            ended: Some(ended(Status::Signal(9), By::Order)),
            stderr: vec!["Traceback".to_owned(), "KeyError: 'x'".to_owned()],
            ..Facts::default()
        };
        assert_eq!(
            shown(facts),
            "exec_line_too_long: the handler wrote a line of more than 9 bytes; its last words: KeyError: 'x' (retryable)"
        );
    }
}
