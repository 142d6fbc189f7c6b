//! The handler's process before its program: what can only be set from inside of it is set here, then the program replaces
//! this one.
//!
//! Invariant: the program never runs unless its death with the supervisor is arranged.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid};

use crate::cgroup::Cgroup;

/// The arguments that lead here.
pub(super) fn arguments(
    supervisor: u32,
    cgroup: Option<&Cgroup>,
    command: &[OsString],
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        super::WORD.into(),
        super::BECOME.into(),
        supervisor.to_string().into(),
        cgroup.map_or_else(|| "-".into(), |cgroup| cgroup.path().into()),
    ];
    arguments.extend(command.iter().cloned());
    arguments
}

/// Becomes the program; returns only when that was not possible.
pub(super) fn become_handler(arguments: &[OsString]) -> Result<(), String> {
    let [supervisor, cgroup, program, rest @ ..] = arguments else {
        return Err("too few arguments to become a handler".to_owned());
    };
    let supervisor = supervisor.to_str().and_then(|text| text.parse().ok());
    set_pdeathsig(Signal::SIGKILL).map_err(|error| {
        format!("the handler's death with its supervisor cannot be arranged: {error}")
    })?;
    // Dead before that: nobody would ever send the signal.
    if supervisor.map(Pid::from_raw) != Some(getppid()) {
        return Err("the supervisor is gone".to_owned());
    }
    if cgroup != OsStr::new("-") {
        // The tree is walked besides, so it does not depend on this.
        Cgroup::at(cgroup).enter();
    }
    // The supervisor blocks what a terminal or a platform sends to everybody; its handler gets it.
    SigSet::all()
        .thread_unblock()
        .map_err(|error| format!("the signal mask cannot be cleared: {error}"))?;
    let error = Command::new(program).args(rest).exec();
    Err(format!("{} cannot be run: {error}", program.display()))
}
