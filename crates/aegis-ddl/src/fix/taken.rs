//! Names that are taken in a schema, and the next free one, as the server chooses it.
//!
//! Invariants: a constraint without a name counts under the name that the server gives it; what is not known to go is taken.

use std::collections::BTreeSet;

use aegis_catalog::{Catalog, Name};

use super::NAME_BYTES_MAX;
use crate::form::{Action, Form};
use crate::name::QualifiedName;
use crate::read::pieces::{self, MadeName};
use crate::statement::Statement;

/// Names of relations and of constraints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// Tables, indexes and sequences.
    relations: BTreeSet<Name>,
    /// Constraints, with the schema of their table.
    constraints: BTreeSet<Name>,
}

impl Taken {
    /// What a database has.
    pub fn of(catalog: &Catalog) -> Self {
        let relations = catalog.relations.iter().map(|one| &one.name);
        let indexes = catalog.indexes.iter().map(|one| &one.name);
        let sequences = catalog.sequences.iter().map(|one| &one.name);
        Self {
            relations: relations.chain(indexes).chain(sequences).cloned().collect(),
            constraints: catalog
                .constraints
                .iter()
                .map(|one| Name::new(&one.table.schema, &one.name))
                .collect(),
        }
    }

    /// What a statement that has run leaves.
    pub fn ran(&mut self, statement: &Statement, schema: &str) {
        match &statement.form {
            Form::AlterTable { table, actions } => {
                for action in actions {
                    if let Action::DropConstraint { constraint, .. } = action {
                        let name = Name::new(table.resolve(schema).schema, constraint);
                        self.relations.remove(&name);
                        self.constraints.remove(&name);
                    }
                }
                self.makes(table, statement, schema, true);
            }
            Form::DropIndex { indexes, .. } => {
                for index in indexes {
                    self.relations.remove(&index.resolve(schema));
                }
            }
            Form::CreateTable(table) => {
                let is_new = self.relations.insert(table.table.resolve(schema));
                if is_new || !table.if_not_exists {
                    self.makes(&table.table, statement, schema, true);
                }
            }
            Form::CreateSequence { name } => {
                self.relations.insert(name.resolve(schema));
            }
            Form::CreateIndex(index) => {
                let of = index.table.resolve(schema).schema;
                let columns: Vec<&str> = index.columns.iter().map(String::as_str).collect();
                let name = match &index.index {
                    Some(name) => Some(name.name.clone()),
                    None if columns.len() == index.keys => {
                        self.free(&index.table, &columns, "idx", schema)
                    }
                    None => None,
                };
                self.relations.extend(name.map(|name| Name::new(of, name)));
            }
            _ => {}
        }
    }

    /// What a statement that has not run yet gives a name to: nobody may take it before. What it drops is there still.
    pub fn will_run(&mut self, statement: &Statement, schema: &str) {
        match &statement.form {
            Form::AlterTable { table, .. } => self.makes(table, statement, schema, false),
            Form::CreateTable(table) => {
                self.relations.insert(table.table.resolve(schema));
                self.makes(&table.table, statement, schema, false);
            }
            Form::CreateIndex(index) if index.index.is_none() => {}
            Form::CreateIndex(_) | Form::CreateSequence { .. } => self.ran(statement, schema),
            _ => {}
        }
    }

    fn makes(&mut self, table: &QualifiedName, statement: &Statement, schema: &str, all: bool) {
        let of = table.resolve(schema).schema;
        for MadeName {
            name,
            columns,
            word,
        } in pieces::made_names(&statement.text)
        {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let chosen = name.or_else(|| {
                all.then(|| self.free(table, &columns, word, schema))
                    .flatten()
            });
            if let Some(chosen) = chosen {
                self.take(&of, &chosen, word);
            }
        }
    }

    pub(super) fn take(&mut self, schema: &str, name: &str, word: &str) {
        let name = Name::new(schema, name);
        if !matches!(word, "seq") {
            self.constraints.insert(name.clone());
        }
        if matches!(word, "key" | "pkey" | "excl" | "seq") {
            self.relations.insert(name);
        }
    }

    /// The first free name, bare: `t_a_check`, `t_a_check1`, …; none when it would be cut.
    pub(super) fn free(
        &self,
        table: &QualifiedName,
        columns: &[&str],
        word: &str,
        schema: &str,
    ) -> Option<String> {
        let of = table.resolve(schema).schema;
        let mut base = table.name.clone();
        for column in columns {
            base.push('_');
            base.push_str(column);
        }
        let mut number = 0_u32;
        loop {
            let behind = if number == 0 {
                String::new()
            } else {
                number.to_string()
            };
            let chosen = format!("{base}_{word}{behind}");
            if chosen.len() > NAME_BYTES_MAX {
                return None;
            }
            let name = Name::new(&of, &chosen);
            let of_relation = matches!(word, "key" | "pkey" | "excl" | "seq" | "idx");
            let of_constraint = !matches!(word, "seq" | "idx");
            let is_taken = of_relation && self.relations.contains(&name)
                || of_constraint && self.constraints.contains(&name);
            if !is_taken {
                return Some(chosen);
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Taken;
    use crate::name::QualifiedName;

    #[test]
    fn the_next_name_is_that_of_the_server() {
        let mut taken = Taken::default();
        let sql = "create table t (a serial check (a > 0) check (a < 9), b int unique, c int references o, d int constraint t_c_fkey1 references o, check (a > b), unique (b) include (c));
            alter table t add foreign key (c) references p;
            create index on t (a);
            alter table t drop constraint t_a_check";
        for statement in &crate::read(sql).unwrap().statements {
            taken.ran(statement, "public");
        }
        let t = QualifiedName::read("t");
        let free = |columns: &[&str], word| taken.free(&t, columns, word, "public").unwrap();
        assert_eq!(free(&["a"], "seq"), "t_a_seq1");
        assert_eq!(free(&["a"], "check"), "t_a_check");
        assert_eq!(free(&["b"], "key"), "t_b_key1");
        assert_eq!(free(&["b", "c"], "key"), "t_b_c_key1");
        assert_eq!(free(&["c"], "fkey"), "t_c_fkey3");
        assert_eq!(free(&[], "check"), "t_check1");
        assert_eq!(free(&["a"], "idx"), "t_a_idx1");
        assert_eq!(free(&[], "pkey"), "t_pkey");
    }
}
