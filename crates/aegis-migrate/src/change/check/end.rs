//! Rules of `[switch]` and `[contract]`: how the old side ends.

use std::collections::BTreeSet;

use super::Rules;
use crate::contract::need::Need;

/// The shortest observation that can show anything: looks are ten seconds apart.
const OBSERVE_SECONDS_MIN: u64 = 30;

impl Rules<'_> {
    pub(super) fn switch(&mut self) {
        let Some(switch) = &self.change.switch else {
            return;
        };
        for (key, sides) in [
            ("switch.reads", &switch.reads),
            ("switch.writes", &switch.writes),
        ] {
            self.list(key, sides, "write [\"old\", \"new\"]");
            if let Some(other) = sides
                .iter()
                .find(|side| !["old", "new"].contains(&side.as_str()))
            {
                let what = format!("`{other}` is no side");
                self.refuse(key, what, "write old or new");
            }
        }
        if switch.cache_ttl_ms > 600_000 {
            let what = format!("{} ms is longer than ten minutes", switch.cache_ttl_ms);
            self.refuse("switch.cache_ttl_ms", what, "write 0 to 600000");
        }
    }

    pub(super) fn contract(&mut self) {
        let Some(contract) = &self.change.contract else {
            return;
        };
        if !contract.revoke_from.is_empty() {
            self.list(
                "contract.revoke_from",
                &contract.revoke_from,
                "name the runtime roles",
            );
        }
        if contract.observe.0.as_secs() < OBSERVE_SECONDS_MIN {
            let what = format!("{} is too short to see anything", contract.observe);
            self.refuse(
                "contract.observe",
                what,
                "looks are ten seconds apart; write 30s or more",
            );
        }
        if contract.evidence.is_empty() {
            self.refuse(
                "contract.evidence",
                "nothing would have to be shown",
                "name what must be shown before anything is dropped",
            );
        }
        let mut seen = BTreeSet::new();
        for need in &contract.evidence {
            if !seen.insert(*need) {
                let what = format!("`{need}` stands there twice");
                self.refuse("contract.evidence", what, "write it once");
            }
        }
        if seen.contains(&Need::Reconciled) && self.change.reconcile.is_none() {
            self.refuse(
                "contract.evidence",
                "`reconciled` cannot be shown without [reconcile]",
                "write [reconcile], or leave it out",
            );
        }
    }
}
