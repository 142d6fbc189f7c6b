//! The supervisor: a small process between a worker and one handler, so that the handler and everything it started end when
//! the worker ends, is frozen, or says so.
//!
//! Invariants: it adopts whatever its descendants leave behind (child subreaper), and it is done only when the kernel says
//! that it has no child left: nothing that the handler started by fork, setsid or a double fork outlives it. The deadline is a
//! moment of the boot-time clock that only a worker that still runs can move. The thread that judges it never waits for a
//! pipe. The handler itself dies with the supervisor (`PR_SET_PDEATHSIG`, set in the handler's process before its program
//! starts).
//!
//! Never: restart a handler, look into a line, decide about a task.

mod become_handler;
mod relay;
mod run;
mod spec;
mod tree;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

pub(crate) use spec::Spec;

/// The word that a worker starts its supervisors with.
const WORD: &str = "supervise";
const RUN: &str = "run";
const BECOME: &str = "become";
/// What a shell answers for a program that cannot be run.
const CANNOT_RUN: u8 = 127;

/// What a program that embeds [`ExecHandler`](crate::ExecHandler) calls before anything else, with its own arguments: `Some`
/// means that this process was a supervisor, and ends with that code.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     if let Some(code) = aegis_exec::supervise_if_asked(std::env::args_os()) {
///         return code;
///     }
///     // … the worker
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn supervise_if_asked(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let verb = arguments.next();
    let rest: Vec<OsString> = arguments.collect();
    let outcome = match verb.as_deref().and_then(|verb| verb.to_str()) {
        Some(RUN) => Spec::parse(&rest).and_then(|spec| run::run(&spec)),
        Some(BECOME) => become_handler::become_handler(&rest),
        _ => Err("`supervise` is started by workers, not by people".to_owned()),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            ExitCode::from(CANNOT_RUN)
        }
    })
}

/// To the worker's standard error: the handler's is captured, and the supervisor has no log of its own. Whoever read it may
/// have left, which `eprintln!` would not survive.
fn say(why: &str) {
    writeln!(std::io::stderr(), "error: {why}").ok();
}
