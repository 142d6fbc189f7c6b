//! What may be done to the eye: how wide the terminal is, and whether colours are wanted.
//!
//! Invariants: no terminal, no colour and no width, unless colours were asked for by `--color always`; `NO_COLOR` (not empty)
//! and `TERM=dumb` mean no colour.
//!
//! Never: anything of what is said.

use std::io::{IsTerminal, stderr, stdout as out};
use std::sync::OnceLock;

use clap::ColorChoice;

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// How a stream is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    /// The columns of the terminal; `None` where there is none: nothing is cut.
    pub(crate) width: Option<u16>,
}

/// What `--color` says; once, at the start.
pub(crate) fn set_colour(choice: ColorChoice) {
    CHOICE.get_or_init(|| choice);
}

/// How stdout is written to.
pub(super) fn stdout() -> Look {
    let terminal = out().is_terminal();
    Look {
        colour: colour(terminal),
        width: terminal
            .then(|| terminal_size::terminal_size_of(out()))
            .flatten()
            .map(|(width, _)| width.0)
            // A terminal that does not say how wide it is.
            .filter(|width| *width > 0),
    }
}

/// How stderr is written to.
pub(crate) fn error_look() -> Look {
    Look {
        colour: colour(stderr().is_terminal()),
        width: None,
    }
}

fn colour(terminal: bool) -> bool {
    let said = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    decide(
        CHOICE.get().copied().unwrap_or_default(),
        terminal,
        said("NO_COLOR") || dumb,
    )
}

/// What is said on the command line wins over the environment, as <https://no-color.org> has it.
fn decide(choice: ColorChoice, terminal: bool, unwanted: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal && !unwanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        assert!(decide(ColorChoice::Auto, true, false));
        assert!(!decide(ColorChoice::Auto, true, true));
        assert!(!decide(ColorChoice::Auto, false, false));
        assert!(!decide(ColorChoice::Never, true, false));
        assert!(decide(ColorChoice::Always, false, true));
    }
}
