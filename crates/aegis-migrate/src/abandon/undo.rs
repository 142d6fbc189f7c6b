//! What takes a statement back. Pure.
//!
//! Only what surely made something new has a way back: with IF NOT EXISTS or OR REPLACE nobody can tell whether it did.

use aegis_catalog::{Name, quote};
use aegis_ddl::form::{Action, Form};
use aegis_ddl::{QualifiedName, Statement};

/// A statement that takes something back, and whose rows are asked for before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Undo {
    /// The statement.
    pub(super) sql: String,
    /// The table whose rows would be lost; with a column, only where it says more than its default.
    pub(super) loses: Option<(Name, Option<String>)>,
}

/// The way back of one statement, in order. None: there is none.
pub(super) fn undo(statement: &Statement, schema: &str) -> Option<Vec<Undo>> {
    let drop = |kind: &str, name: &QualifiedName| {
        Some(vec![Undo {
            sql: format!("DROP {kind} {}", name.resolve(schema).sql()),
            loses: None,
        }])
    };
    match &statement.form {
        Form::CreateTable(create) if !create.if_not_exists && !create.temporary => {
            let table = create.table.resolve(schema);
            Some(vec![Undo {
                sql: format!("DROP TABLE {}", table.sql()),
                loses: Some((table, None)),
            }])
        }
        Form::AlterTable { table, actions } => {
            let table = table.resolve(schema);
            actions
                .iter()
                .rev()
                .map(|action| of_action(action, &table))
                .collect()
        }
        Form::CreateIndex(create) if !create.if_not_exists => {
            let table = create.table.resolve(schema);
            let index = Name::new(&*table.schema, &*create.index.as_ref()?.name);
            Some(vec![Undo {
                sql: format!("DROP INDEX {}", index.sql()),
                loses: None,
            }])
        }
        Form::CreateView {
            view,
            replace: false,
            ..
        } => drop("VIEW", view),
        Form::CreateMaterializedView { view, .. } => drop("MATERIALIZED VIEW", view),
        Form::CreateType { name, .. } => drop("TYPE", name),
        Form::CreateDomain { name, .. } => drop("DOMAIN", name),
        Form::CreateSequence { name, .. } => drop("SEQUENCE", name),
        Form::CreateFunction {
            name,
            replace: false,
            ..
        } => drop("FUNCTION", name),
        Form::CreateSchema { name, .. } => Some(vec![Undo {
            sql: format!("DROP SCHEMA {}", quote(name)),
            loses: None,
        }]),
        Form::CreateTrigger {
            name,
            table,
            replace: false,
        } => Some(vec![Undo {
            sql: format!(
                "DROP TRIGGER {} ON {}",
                quote(name),
                table.resolve(schema).sql()
            ),
            loses: None,
        }]),
        // It goes with what it is about.
        Form::CommentOn => Some(Vec::new()),
        _ => None,
    }
}

fn of_action(action: &Action, table: &Name) -> Option<Undo> {
    let alter =
        |what: &str, name: &str| format!("ALTER TABLE {} DROP {what} {}", table.sql(), quote(name));
    match action {
        Action::AddColumn {
            column,
            if_not_exists: false,
        } => Some(Undo {
            sql: alter("COLUMN", &column.name),
            loses: Some((table.clone(), Some(column.name.clone()))),
        }),
        Action::AddConstraint { constraint } => Some(Undo {
            sql: alter("CONSTRAINT", constraint.name.as_deref()?),
            loses: None,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(sql: &str) -> Option<Vec<String>> {
        let script = aegis_ddl::read(sql).unwrap();
        let found = undo(&script.statements[0], "app")?;
        Some(found.into_iter().map(|one| one.sql).collect())
    }

    #[test]
    fn what_was_surely_made_goes_in_the_other_order() {
        assert_eq!(
            back("ALTER TABLE t ADD COLUMN \"A\" int, ADD CONSTRAINT c CHECK (b > 0) NOT VALID")
                .unwrap(),
            [
                "ALTER TABLE \"app\".\"t\" DROP CONSTRAINT \"c\"",
                "ALTER TABLE \"app\".\"t\" DROP COLUMN \"A\""
            ]
            .map(|sql| sql
                .replace("\"app\".\"t\"", &Name::new("app", "t").sql())
                .replace("\"c\"", &quote("c")))
        );
        assert_eq!(
            back("CREATE INDEX i ON other.t (a)").unwrap(),
            [format!("DROP INDEX {}", Name::new("other", "i").sql())]
        );
        assert_eq!(
            back("CREATE TABLE t (a int)").unwrap(),
            [format!("DROP TABLE {}", Name::new("app", "t").sql())]
        );
    }

    #[test]
    fn what_may_have_been_there_or_changed_something_has_no_way_back() {
        for sql in [
            "CREATE TABLE IF NOT EXISTS t (a int)",
            "CREATE OR REPLACE VIEW v AS SELECT 1 AS a",
            "ALTER TABLE t ADD COLUMN IF NOT EXISTS a int",
            "ALTER TABLE t ADD COLUMN a int, ALTER b SET DEFAULT 1",
            "CREATE INDEX ON t (a)",
            "INSERT INTO t (a) VALUES (1)",
            "GRANT SELECT ON t TO public",
        ] {
            assert_eq!(back(sql), None, "{sql}");
        }
    }
}
