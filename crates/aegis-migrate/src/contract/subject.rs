//! What of a change its contract is about.

use aegis_backfill::sync::Rule;

use super::door::Door;
use super::need::Need;
use crate::change::{Change, Contract};

/// A change that has a contract.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The change.
    pub change: &'a Change,
    /// Its id, as the tables have it.
    pub id: String,
    /// `[contract]`.
    pub contract: &'a Contract,
    /// Its two sides; none without `[sync]`.
    pub rule: Option<Rule>,
}

impl<'a> Subject<'a> {
    /// The subject of a change; none when it has no contract.
    pub fn of(change: &'a Change) -> Option<Self> {
        Some(Self {
            change,
            id: change.id.to_string(),
            contract: change.contract.as_ref()?,
            rule: change.sync_rule(),
        })
    }

    /// What must be shown, in the order of [`Need::ALL`]: what `evidence` names, and that the rows agree wherever rows are moved, whether
    /// it is named or not.
    pub fn asked(&self) -> Vec<Need> {
        let moves = self.change.sync.is_some() || self.change.backfill.is_some();
        let asked = |need: &Need| {
            self.contract.evidence.contains(need) || moves && *need == Need::Reconciled
        };
        Need::ALL.into_iter().filter(asked).collect()
    }

    /// The door that shuts: none without old columns, or without roles that would lose them.
    pub fn door(&'a self) -> Option<Door<'a>> {
        let sync = self.change.sync.as_ref()?;
        (!self.contract.revoke_from.is_empty()).then_some(Door {
            schema: &self.change.schema,
            table: &sync.table,
            old: &sync.old,
            roles: &self.contract.revoke_from,
        })
    }
}
