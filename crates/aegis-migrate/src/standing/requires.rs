//! What must be applied before: told before anything runs, with the exact command (MG-33).

use serde::Serialize;

use super::{Line, State};
use crate::change::{Phase, PhaseOf};
use crate::set::Set;

/// Something that a phase needs and that is not applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The phase that waits.
    pub for_line: PhaseOf,
    /// What it waits for.
    pub needs: PhaseOf,
    /// How that stands, in words.
    pub stands: String,
    /// What does it.
    pub command: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} needs {}, which is {}: {}",
            self.for_line, self.needs, self.stands, self.command
        )
    }
}

/// The command that applies a phase.
pub fn command(at: &PhaseOf) -> String {
    match at.phase {
        Phase::Expand => "aegis migrate run --phase expand".to_owned(),
        Phase::Migrate => "aegis migrate run --phase migrate".to_owned(),
        Phase::Contract => format!("aegis migrate contract run {}", at.id),
    }
}

/// Every unmet requirement of an open line: what its change requires, and the phases before it of its own change.
///
/// Something that the same run applies first is met: an older change's expand, where the run is of expand.
pub(super) fn missing(set: &Set, lines: &[Line]) -> Vec<Missing> {
    let state = |at: &PhaseOf| {
        lines
            .iter()
            .find(|line| line.line.at == *at)
            .map(|line| &line.state)
    };
    let done = |at: &PhaseOf| match state(at) {
        Some(state) => state.is_done(),
        // Squashed with the folder, or not sealed yet.
        None => set.squash_of(at).is_some_and(|squash| {
            lines
                .iter()
                .any(|line| line.line.at.id == squash.id && line.state.is_done())
        }),
    };
    let mut found = Vec::new();
    for line in lines.iter().filter(|line| !line.state.is_done()) {
        let at = &line.line.at;
        let Some(change) = set.changes.get(&at.id) else {
            continue;
        };
        let own = Phase::ALL
            .into_iter()
            .filter(|phase| *phase < at.phase && change.has(*phase))
            .map(|phase| PhaseOf {
                id: at.id.clone(),
                phase,
            });
        for needs in change.requires.iter().cloned().chain(own) {
            let same_run =
                needs.phase == at.phase && at.phase != Phase::Contract && state(&needs).is_some();
            if same_run || done(&needs) {
                continue;
            }
            found.push(Missing {
                for_line: at.clone(),
                stands: words(state(&needs)),
                command: match state(&needs) {
                    None => "aegis migrate seal".to_owned(),
                    Some(_) => command(&needs),
                },
                needs,
            });
        }
    }
    found
}

fn words(state: Option<&State>) -> String {
    match state {
        None => "not sealed".to_owned(),
        Some(State::Pending) => "not applied".to_owned(),
        Some(State::Partly {
            open: Some(open), ..
        }) => format!("not finished ({open})"),
        Some(State::Partly { open: None, .. }) => "not finished".to_owned(),
        Some(State::Edited { .. }) => "applied with another hash".to_owned(),
        Some(State::Applied | State::Squashed) => "applied".to_owned(),
    }
}
