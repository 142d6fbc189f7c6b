//! What no run would take in any phase, so that `seal` refuses it before it replays anything.
//!
//! Invariants: only what the judge, or the reader, says; what another phase would take is no business of this file.

use aegis_ddl::Level;

use super::{Judged, Known, lint, source};
use crate::change::{PhaseOf, Problems};
use crate::set::Set;

/// Rules whose statements run nowhere, whatever the server, the catalog and the phase are.
const NOWHERE: [&str; 3] = ["unreadable", "transaction-in-file", "cluster-wide"];

/// Any server will do: these rules know none.
const ANY: Known<'static> = Known {
    server: 18,
    catalog: None,
};

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
        told.extend(lint(&[unit], ANY).into_iter().filter_map(|mut one| {
            one.findings
                .retain(|finding| NOWHERE.contains(&finding.rule) && finding.level == Level::Error);
            (!one.findings.is_empty()).then_some(one)
        }));
    }
    Ok(told)
}
