//! The locks of a transaction: of one statement, or of all statements of an `atomic` file.
//!
//! Invariants: all of them are asked for before the first statement, each relation once, in its final mode, in name order; the
//! first is waited for, the others are not. Who waits for a second lock while holding a first one makes two queues.

use std::collections::BTreeMap;

use aegis_catalog::Name;
use aegis_ddl::form::Action;
use aegis_ddl::{Form, Lock, LockMode, QualifiedName, Statement};
use tokio_postgres::Transaction;

/// How one relation is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct How {
    mode: LockMode,
    /// Without what inherits from it.
    only: bool,
}

/// The locks of these statements, merged. `more`: what the catalog adds to what the statements name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Wanted(BTreeMap<Name, How>);

impl Wanted {
    /// With the locks of a statement whose names begin in `schema`.
    pub(crate) fn and(&mut self, statement: &Statement, more: &[Lock], schema: &str) {
        let alone = alone(statement);
        for lock in statement.locks().iter().chain(more) {
            let only = alone == Some(&lock.relation);
            self.lock(lock.relation.resolve(schema), lock.mode, only);
        }
    }

    fn lock(&mut self, name: Name, mode: LockMode, only: bool) {
        let held = self.0.entry(name).or_insert(How { mode, only });
        *held = How {
            mode: stronger(held.mode, mode),
            only: held.only && only,
        };
    }

    /// Schemas and names of what is locked in a mode that no build lets in.
    pub(super) fn names(&self) -> (Vec<&str>, Vec<&str>) {
        let shut = self
            .0
            .iter()
            .filter(|(_, how)| how.mode >= LockMode::ShareUpdateExclusive);
        shut.map(|(name, _)| (name.schema.as_str(), name.name.as_str()))
            .unzip()
    }

    /// Takes them, as the role that the session has now.
    ///
    /// # Errors
    /// The server's: 55P03 when one is not had.
    pub(crate) async fn take(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<(), tokio_postgres::Error> {
        let names: Vec<(&Name, &How)> = self.0.iter().collect();
        let schemas: Vec<&str> = names.iter().map(|(name, _)| name.schema.as_str()).collect();
        let relations: Vec<&str> = names.iter().map(|(name, _)| name.name.as_str()).collect();
        let rows = transaction
            .query(
                include_str!("../../sql/run/lockable.sql"),
                &[&schemas, &relations],
            )
            .await?;
        // An index stands for its table, so names may meet again.
        let mut tables = Self::default();
        for row in rows {
            let number: i64 = row.try_get("nr")?;
            let at = usize::try_from(number - 1).ok();
            if let Some((_, how)) = at.and_then(|at| names.get(at)) {
                let (schema, name): (String, String) =
                    (row.try_get("schema")?, row.try_get("name")?);
                tables.lock(Name::new(schema, name), how.mode, how.only);
            }
        }
        let mut nowait = "";
        for (name, how) in &tables.0 {
            let only = if how.only { "ONLY " } else { "" };
            let sql = format!(
                "LOCK TABLE {only}{} IN {} MODE{nowait}",
                name.sql(),
                how.mode.sql()
            );
            transaction.batch_execute(&sql).await?;
            nowait = " NOWAIT";
        }
        Ok(())
    }
}

/// What holds both. SHARE and SHARE UPDATE EXCLUSIVE conflict with different things.
fn stronger(one: LockMode, other: LockMode) -> LockMode {
    match (one, other) {
        (LockMode::Share, LockMode::ShareUpdateExclusive)
        | (LockMode::ShareUpdateExclusive, LockMode::Share) => LockMode::ShareRowExclusive,
        _ => one.max(other),
    }
}

/// The parent whose children its lock leaves alone: LOCK TABLE would take them all.
fn alone(statement: &Statement) -> Option<&QualifiedName> {
    match &statement.form {
        Form::CreateIndex(index) if index.only => Some(&index.table),
        Form::CreateTable(table) => table.partition_of.as_ref(),
        Form::AlterTable { table, actions } => {
            let moves_partitions = actions.iter().all(|action| {
                matches!(
                    action,
                    Action::AttachPartition { .. } | Action::DetachPartition { .. }
                )
            });
            moves_partitions.then_some(table)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(sql: &str) -> Vec<String> {
        let mut wanted = Wanted::default();
        for statement in &aegis_ddl::read(sql).unwrap().statements {
            wanted.and(statement, &[], "app");
        }
        wanted
            .0
            .iter()
            .map(|(name, how)| {
                format!("{name} {}{}", how.mode, if how.only { " only" } else { "" })
            })
            .collect()
    }

    #[test]
    fn a_file_asks_for_each_relation_once_in_its_final_mode_and_in_name_order() {
        let file = "ALTER TABLE z VALIDATE CONSTRAINT c; ALTER TABLE app.z ADD COLUMN a int; \
                    CREATE INDEX i ON b (x); ALTER TABLE b ALTER x SET STATISTICS 5;";
        assert_eq!(
            wanted(file),
            ["app.b SHARE ROW EXCLUSIVE", "app.z ACCESS EXCLUSIVE"]
        );
    }

    #[test]
    fn what_stays_on_the_parent_locks_no_partition() {
        assert_eq!(wanted("CREATE INDEX i ON ONLY p (x)"), ["app.p SHARE only"]);
        assert_eq!(
            wanted("ALTER TABLE p ATTACH PARTITION q FOR VALUES IN (1)"),
            [
                "app.p SHARE UPDATE EXCLUSIVE only",
                "app.q ACCESS EXCLUSIVE"
            ]
        );
        assert_eq!(
            wanted("CREATE INDEX i ON ONLY p (x); ALTER TABLE p ADD COLUMN a int"),
            ["app.p ACCESS EXCLUSIVE"]
        );
    }
}
