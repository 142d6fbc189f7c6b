//! Names in the expressions of a trigger, resolved once: what it calls is what was there when it was made.
//!
//! The trigger runs with its owner's rights, so a name that is looked up at each write would be a door: whoever may CREATE in the schema
//! could put a function or an operator of the same name before the one that was meant. The server itself resolves and prints them: each
//! expression becomes a view that lives for one batch, and is printed with nothing but `pg_catalog` in `search_path`.
//!
//! Invariants: no view stays; the session's `search_path` is what it was; nobody else could make or change what is called when it was
//! looked at ([`Pinned::trusted`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use aegis_catalog::quote;
use tokio_postgres::{Client, GenericClient, SimpleQueryMessage};

use super::{Column, Rule, Sides, SyncError, TRIED_ROWS, generate};

/// Sides whose expressions, types and defaults name everything with its schema.
#[derive(Debug, Clone)]
pub struct Pinned {
    sides: Sides,
    /// What is called and belongs to somebody who is not trusted: (object, owner).
    foreign: Vec<(String, String)>,
}

/// What the server printed.
#[derive(Debug, Default)]
struct Printed {
    /// Type and default of a column.
    columns: BTreeMap<String, (String, Option<String>)>,
    /// Expressions by the name of their view.
    views: BTreeMap<String, String>,
    foreign: Vec<(String, String)>,
    /// The columns that a view reads, by its name.
    reads: BTreeMap<String, BTreeSet<String>>,
    /// Views of which nobody knows what they read.
    read_anything: BTreeSet<String>,
}

impl Sides {
    /// Resolves every name as the author meant it: in the schema of the table, then in `pg_catalog`, with the rights of the current role,
    /// which needs CREATE there as for the trigger itself. Whatever `search_path` the session has, it has again.
    ///
    /// # Errors
    /// An expression that the server does not understand; nothing was changed.
    pub async fn pin(&self, client: &impl GenericClient) -> Result<Pinned, SyncError> {
        let prefix = generate::pin_prefix(&self.rule);
        let path: String = client
            .query_one("SELECT current_setting('search_path')", &[])
            .await?
            .try_get(0)?;
        let (mut made, mut dropped) = (String::new(), String::new());
        for (name, from) in expressions(self, &prefix) {
            let view = format!("{}.{}", quote(&self.rule.table.schema), quote(&name));
            let table = self.rule.table.sql();
            writeln!(
                made,
                "CREATE VIEW {view} AS SELECT ({from}) AS aegis_value FROM {table} AS aegis_row;"
            )
            .ok();
            writeln!(dropped, "DROP VIEW {view};").ok();
        }
        let of = |sql: &str| {
            sql.replace("{schema}", &generate::literal(&self.rule.table.schema))
                .replace("{table}", &generate::literal(&self.rule.table.name))
                .replace("{views}", &generate::literal(&prefix))
        };
        // One batch is one transaction, also where the caller has none.
        let batch = format!(
            "SELECT pg_catalog.set_config('search_path', {}, true);\n{made}\
             SELECT pg_catalog.set_config('search_path', 'pg_catalog', true);\n{}\n{}\n{}\n{dropped}\
             SELECT set_config('search_path', {}, true);",
            generate::literal(&format!("{}, pg_catalog", quote(&self.rule.table.schema))),
            of(include_str!("../../sql/sync/foreign.sql")),
            of(include_str!("../../sql/sync/printed.sql")),
            of(include_str!("../../sql/sync/reads.sql")),
            generate::literal(&path)
        );
        let answers =
            client
                .simple_query(&batch)
                .await
                .map_err(|error| match error.as_db_error() {
                    Some(said) => SyncError::Unresolved {
                        table: self.rule.table.to_string(),
                        said: said.message().to_owned(),
                    },
                    None => error.into(),
                })?;
        let printed = Printed::of(&answers);
        let mut sides = self.clone();
        for (side, of) in [(&mut sides.new, "new"), (&mut sides.old, "old")] {
            for (at, column) in side.iter_mut().enumerate() {
                let view = format!("{prefix}{of}_{at}");
                if column.from.is_some() && !printed.views.contains_key(&view) {
                    return Err(SyncError::Unresolved {
                        table: self.rule.table.to_string(),
                        said: format!(
                            "it prints that of {} in a form that is not known",
                            column.name
                        ),
                    });
                }
                printed.put(column, &view);
            }
        }
        Ok(Pinned {
            sides,
            foreign: printed.foreign,
        })
    }
}

/// The expressions with the names of their views.
fn expressions<'a>(
    sides: &'a Sides,
    prefix: &'a str,
) -> impl Iterator<Item = (String, &'a String)> {
    let of = move |side: &'a [Column], word: &'static str| {
        let all = side.iter().enumerate();
        all.filter_map(move |(at, column)| {
            Some((format!("{prefix}{word}_{at}"), column.from.as_ref()?))
        })
    };
    of(&sides.new, "new").chain(of(&sides.old, "old"))
}

impl Printed {
    fn of(answers: &[SimpleQueryMessage]) -> Self {
        let mut printed = Self::default();
        for answer in answers {
            let SimpleQueryMessage::Row(row) = answer else {
                continue;
            };
            let text = |at| row.try_get(at).ok().flatten().map(str::to_owned);
            let (Some(kind), Some(name), third) = (text(0), text(1), text(2)) else {
                continue;
            };
            match (kind.as_str(), third) {
                ("column", Some(type_sql)) => {
                    printed.columns.insert(name, (type_sql, text(3)));
                }
                ("view", Some(definition)) => {
                    printed
                        .views
                        .extend(expression(&definition).map(|found| (name, found)));
                }
                ("foreign", Some(owner)) => printed.foreign.push((name, owner)),
                ("reads", Some(column)) => {
                    printed.reads.entry(name).or_default().insert(column);
                }
                ("reads anything", _) => {
                    printed.read_anything.insert(name);
                }
                _ => {}
            }
        }
        printed
    }

    fn put(&self, column: &mut Column, view: &str) {
        if let Some((type_sql, default)) = self.columns.get(&column.name) {
            column.type_sql.clone_from(type_sql);
            if column.default.is_some() {
                column.default.clone_from(default);
            }
        }
        if column.from.is_some() && !self.read_anything.contains(view) {
            column.reads = Some(self.reads.get(view).cloned().unwrap_or_default());
        }
        if let (Some(from), Some(found)) = (&mut column.from, self.views.get(view)) {
            // A bare literal is text in a view only, and of the column's type where it is assigned.
            if *found != format!("{}::text", from.trim()) {
                from.clone_from(found);
            }
        }
    }
}

/// The one expression of a view, as the server prints it.
fn expression(definition: &str) -> Option<String> {
    // A CASE stands on a line of its own.
    let rest = definition.trim_start().strip_prefix("SELECT")?.trim_start();
    let end = rest.rfind(" AS aegis_value\n")?;
    rest.get(..end).map(str::to_owned)
}

impl Pinned {
    /// Reads the sides, resolves them as `role` does (none: the current one) and looks whom they trust; in a transaction of its own,
    /// which is rolled back.
    ///
    /// # Errors
    /// See [`SyncError`]; nothing was changed.
    pub async fn of(
        client: &mut Client,
        rule: &Rule,
        role: Option<&str>,
    ) -> Result<Self, SyncError> {
        let transaction = client.transaction().await?;
        let mut settings = "SET LOCAL search_path = pg_catalog, pg_temp".to_owned();
        if let Some(role) = role {
            write!(settings, "; SET LOCAL ROLE {}", quote(role)).ok();
        }
        transaction.batch_execute(&settings).await?;
        let pinned = Sides::read(&transaction, rule)
            .await?
            .pin(&transaction)
            .await?;
        pinned.trusted(&transaction, None).await?;
        transaction.rollback().await?;
        Ok(pinned)
    }

    /// Refuses when somebody else may make things in the schema, or owns what an expression calls: with the rights of the trigger's owner
    /// it would be theirs. `role` is the owner; none: the current one. Asked with nothing of that schema in `search_path`.
    ///
    /// # Errors
    /// [`SyncError::Untrusted`] with the way out.
    pub async fn trusted(
        &self,
        client: &impl GenericClient,
        role: Option<&str>,
    ) -> Result<(), SyncError> {
        self.sides.rule.trusted(client, role).await?;
        match self.foreign.first() {
            None => Ok(()),
            Some((object, owner)) => Err(SyncError::Untrusted {
                table: self.sides.rule.table.to_string(),
                why: format!("an expression calls {object}, which belongs to {owner}"),
                way_out: "give it to the owner of the schema (ALTER … OWNER TO), or do not call it"
                    .to_owned(),
            }),
        }
    }

    /// Tries the expressions on some of the rows that are there, as the trigger will compute them, and says what the server says of the
    /// first that fails. A row that they cannot be computed for would be a write that is refused.
    ///
    /// # Errors
    /// See [`SyncError`]; nothing was changed.
    pub async fn tried(&self, client: &impl GenericClient) -> Result<(), SyncError> {
        let sides = &self.sides;
        for (direction, side) in [("forward", &sides.new), ("backward", &sides.old)] {
            let Some(sql) = generate::attempt(&sides.rule, side, TRIED_ROWS) else {
                continue;
            };
            if let Err(error) = client.batch_execute(&sql).await {
                let Some(said) = error.as_db_error() else {
                    return Err(error.into());
                };
                let is_name = ["42883", "42P01", "42704"].contains(&said.code().code());
                return Err(SyncError::Expression {
                    table: sides.rule.table.to_string(),
                    direction,
                    said: said.message().to_owned(),
                    way_out: if is_name {
                        "the trigger looks names up in pg_catalog only, so a function that it calls writes its own names with their schema, or has SET search_path"
                    } else {
                        "mend the expression, or every write of the other side would fail"
                    },
                });
            }
        }
        self.takes_nothing(client).await
    }

    /// Refuses a new column that is NOT NULL and of which forward makes NULL where the old side may be: the previous program would be refused
    /// for what it may write today. What an expression cannot be computed for, or reads nobody knows what, says nothing.
    async fn takes_nothing(&self, client: &impl GenericClient) -> Result<(), SyncError> {
        let sides = &self.sides;
        let may_be_null = |name: &String| {
            sides
                .old
                .iter()
                .any(|old| old.name == *name && !old.not_null)
        };
        for column in sides.new.iter().filter(|column| column.not_null) {
            let (Some(from), Some(reads)) = (&column.from, &column.reads) else {
                continue;
            };
            if reads.is_empty() || !reads.iter().all(may_be_null) {
                continue;
            }
            let sql = generate::of_nothing(&sides.rule, from);
            let answers = client.simple_query(&sql).await?;
            let is_null = answers.iter().any(|answer| {
                matches!(answer, SimpleQueryMessage::Row(row) if row.get("is_null") == Some("t"))
            });
            if is_null {
                return Err(SyncError::Column {
                    table: sides.rule.table.to_string(),
                    column: column.name.clone(),
                    why: "it is NOT NULL, and forward makes NULL of a NULL on the old side, so the previous program would be refused for what it may write today",
                    way_out: "let forward give a value (coalesce), or leave the column nullable until [contract] tighten",
                });
            }
        }
        Ok(())
    }

    /// The two sides, for whoever computes them with nothing but `pg_catalog` in `search_path`.
    pub fn sides(&self) -> &Sides {
        &self.sides
    }

    /// What makes the trigger, in this order; each may be executed again.
    pub fn create(&self) -> Vec<String> {
        generate::create(&self.sides)
    }
}

#[cfg(test)]
mod tests {
    use super::expression;

    #[test]
    fn an_expression_is_cut_out_of_what_the_server_prints() {
        for (printed, found) in [
            (
                " SELECT split_part(name, ' '::text, 1) AS aegis_value\n   FROM app.users aegis_row;",
                Some("split_part(name, ' '::text, 1)"),
            ),
            (
                " SELECT ( SELECT c.name AS aegis_value\n           FROM app.c) AS aegis_value\n   FROM app.users aegis_row;",
                Some("( SELECT c.name AS aegis_value\n           FROM app.c)"),
            ),
            (
                " SELECT\n        CASE\n            WHEN app.f(name) THEN 1\n            ELSE 2\n        END AS aegis_value\n   FROM app.users aegis_row;",
                Some("CASE\n            WHEN app.f(name) THEN 1\n            ELSE 2\n        END"),
            ),
            ("VALUES (1)", None),
        ] {
            assert_eq!(expression(printed).as_deref(), found);
        }
    }
}
