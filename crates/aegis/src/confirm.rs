//! Asks a person before something is done to many things.
//!
//! Invariants: without a terminal nothing is asked and nothing is done; only `y` or `yes` is a yes.
//!
//! Never: a default that does it.

use std::io::{BufRead, IsTerminal, stdin};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::note;

/// Goes on when `--yes` was given or the person says so; `what`: what is about to happen, with its count.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !(stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::new(
            Exit::Usage,
            format!(
                "{what}: nothing was changed, as nobody can be asked here; give --yes to do it, or --dry-run to see it"
            ),
        ));
    }
    note(&format!("{what}. Go on? [y/N]"));
    let mut answer = String::new();
    let read = stdin().lock().read_line(&mut answer);
    if read.is_ok() && is_yes(&answer) {
        return Ok(());
    }
    Err(Failure::new(Exit::Refused, "nothing was changed"))
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"]
        .iter()
        .any(|yes| answer.trim().eq_ignore_ascii_case(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        assert!(is_yes("y\n") && is_yes(" YES \n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("yep\n") && !is_yes("n\n"));
    }
}
