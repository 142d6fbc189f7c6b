//! The steps of a phase as its files have them now, numbered as the runner numbers them.

use aegis_ddl::{Form, Statement};

use crate::change::{Change, Part};
use crate::ledger::Step;
use crate::lock::LockLine;
use crate::plan::source;

use super::RepairError;

/// What the files of a phase have.
pub(super) struct Steps {
    /// Its statements, each with its step.
    pub(super) sql: Vec<(Step, Statement)>,
    /// Parts that are no SQL of the author, by their name.
    pub(super) others: Vec<&'static str>,
}

/// Reads them. What a part of its own makes (the trigger of `[sync]`) is not among them; it comes after the files of its phase.
pub(super) fn of(line: &LockLine, change: &Change) -> Result<Steps, RepairError> {
    let mut steps = Steps {
        sql: Vec::new(),
        others: Vec::new(),
    };
    let mut ordinal = 0;
    for part in change.parts(line.at.phase) {
        match part {
            Part::Sql { key, file } => {
                let source = source(change, key, file)?;
                for statement in &source.script.statements {
                    ordinal += 1;
                    let step = crate::run::of_statement(line, &source, statement, ordinal);
                    steps.sql.push((step, statement.clone()));
                }
            }
            Part::Sync(_) | Part::EndSync(_) => steps.others.push("[sync]"),
            Part::Backfill(_) => steps.others.push("[backfill]"),
            Part::Reconcile(_) => steps.others.push("[reconcile]"),
        }
    }
    Ok(steps)
}

/// Whether all of a statement's work is in the structure. What changes rows, settings or comments, or calls something, is not.
pub(super) fn is_structure(form: &Form) -> bool {
    matches!(
        form,
        Form::CreateTable(_)
            | Form::AlterTable { .. }
            | Form::CreateIndex(_)
            | Form::DropIndex { .. }
            | Form::Drop { .. }
            | Form::Rename { .. }
            | Form::SetSchema { .. }
            | Form::CreateView { .. }
            | Form::CreateType { .. }
            | Form::AlterType { .. }
            | Form::CreateDomain { .. }
            | Form::AlterDomain { .. }
            | Form::CreateFunction { .. }
            | Form::CreateTrigger { .. }
            | Form::CreateRule { .. }
            | Form::CreatePolicy { .. }
            | Form::AlterPolicy { .. }
            | Form::CreateSchema { .. }
            | Form::CreateSequence { .. }
            | Form::AlterSequence { .. }
            | Form::Grant
            | Form::Revoke
    )
}
