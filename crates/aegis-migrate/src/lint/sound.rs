//! What no run would take in any phase, so that `seal` refuses it before it replays anything.
//!
//! Invariants: only what the judge, or the reader, says; what another phase would take is no business of this file.

use aegis_ddl::Level;

use super::{Judged, Known, Unit, lint, of_file, rules, source};
use crate::change::{Change, Part, Phase, PhaseOf, Problems};
use crate::set::Set;

/// Rules of what runs nowhere, whatever the server, the catalog and the phase are.
const NOWHERE: [&str; 4] = [
    "unreadable",
    "transaction-in-file",
    "cluster-wide",
    "unused-override",
];

/// Any server will do: these rules know none.
const ANY: Known<'static> = Known {
    server: 18,
    catalog: None,
};

/// Files of phases that would do nothing.
fn empty(change: &Change, unit: &Unit, is_meant: &impl Fn(Phase) -> bool) -> Vec<Judged> {
    let has_statement = |path: &str| {
        let read = unit.files.iter().find(|file| file.path == path);
        read.is_none_or(|file| !file.script.statements.is_empty())
    };
    let mut told = Vec::new();
    for phase in Phase::ALL.into_iter().filter(|phase| is_meant(*phase)) {
        let mut files = Vec::new();
        let mut does_something = false;
        for part in change.parts(phase) {
            match part {
                Part::Sql { file, .. } if !has_statement(&file.path) => files.push(&file.path),
                _ => does_something = true,
            }
        }
        if does_something {
            continue;
        }
        let safe = rules::find("empty-file").map_or("", |rule| rule.safe);
        told.extend(files.into_iter().map(|path| {
            let said = format!("it has no statement, so {phase} would do nothing");
            of_file(path, 1, "empty-file", &said, safe)
        }));
    }
    told
}

/// Of these phases what runs nowhere. A baseline is a dump of what other tools did, and may have their words.
pub fn unfit(set: &Set, phases: &[PhaseOf]) -> Result<Vec<Judged>, Problems> {
    let mut told = Vec::new();
    for change in set.changes.values().filter(|one| one.baseline.is_none()) {
        let is_meant = |phase| {
            phases
                .iter()
                .any(|at| at.id == change.id && at.phase == phase)
        };
        let Some(unit) = source::of_change(change, is_meant) else {
            continue;
        };
        told.extend(empty(change, &unit, &is_meant));
        told.extend(lint(&[unit], ANY).into_iter().filter_map(|mut one| {
            one.findings
                .retain(|finding| NOWHERE.contains(&finding.rule) && finding.level == Level::Error);
            (!one.findings.is_empty()).then_some(one)
        }));
    }
    Ok(told)
}
