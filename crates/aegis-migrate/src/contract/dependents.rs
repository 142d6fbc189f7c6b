//! What in the catalog depends on what a contract drops, and is not dropped by it.
//!
//! Invariants: dependencies are the server's own (`pg_depend`); the text of functions is only searched for names, which is told as
//! weak and decides nothing.

use std::collections::BTreeSet;

use aegis_catalog::Name;
use aegis_ddl::form::{Action, Form, ObjectKind};
use tokio_postgres::GenericClient;

use super::look::Seen;
use super::subject::Subject;

/// What a contract takes away.
#[derive(Debug, Default)]
struct Going {
    /// Tables and views, and columns of tables.
    held: BTreeSet<(Name, Option<String>)>,
    /// Everything that is dropped by name, with its schema where it has one.
    named: BTreeSet<(Option<String>, String)>,
}

/// Whether nothing that stays depends on what goes. None: a file that is no SQL, which the set would have refused.
pub async fn look(
    client: &impl GenericClient,
    subject: &Subject<'_>,
) -> Result<Seen, tokio_postgres::Error> {
    let Some(going) = going(subject) else {
        return Ok(Seen::unknown("the contract's SQL cannot be read"));
    };
    let (mut staying, mut weak) = (BTreeSet::new(), BTreeSet::new());
    for (name, column) in &going.held {
        let rows = client
            .query(
                include_str!("../../sql/contract/dependents.sql"),
                &[&name.schema, &name.name, column],
            )
            .await?;
        for row in &rows {
            let (kind, schema): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let (named, identity): (String, String) = (row.try_get(2)?, row.try_get(3)?);
            if !going.takes(&schema, &named, &identity) {
                staying.insert(format!("{kind} {identity}"));
            }
        }
        if let Some(column) = column {
            let rows = client
                .query(
                    include_str!("../../sql/contract/mentions.sql"),
                    &[&name.name, column],
                )
                .await?;
            for row in &rows {
                weak.insert(row.try_get::<_, String>(0)?);
            }
        }
    }
    let mut detail = if staying.is_empty() {
        "nothing in the catalog depends on what goes".to_owned()
    } else {
        format!("what depends on it: {}", listed(&staying))
    };
    if !weak.is_empty() {
        detail.push_str("; functions whose text names both table and column (look at them): ");
        detail.push_str(&listed(&weak));
    }
    Ok(if staying.is_empty() {
        Seen::holds(detail)
    } else {
        Seen::fails(detail)
    })
}

impl Going {
    /// Whether the contract drops this too. The server tells no name of what needs more than one (functions by their arguments,
    /// triggers and policies by their table), so that is taken from its identity.
    fn takes(&self, schema: &str, name: &str, identity: &str) -> bool {
        let bare = |text: &str| text.replace('"', "");
        self.named.iter().any(|(of_schema, gone)| {
            if !name.is_empty() {
                return gone == name && of_schema.as_deref().is_none_or(|of| of == schema);
            }
            let own = bare(identity.split([' ', '(']).next().unwrap_or(identity));
            match of_schema {
                Some(of) => own == bare(&format!("{of}.{gone}")),
                None => own == bare(gone),
            }
        })
    }
}

fn listed(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

fn going(subject: &Subject<'_>) -> Option<Going> {
    let change = subject.change;
    let mut going = Going::default();
    if let Some(sync) = &change.sync {
        let table = Name::new(&change.schema, &sync.table);
        for column in &sync.old {
            going.held.insert((table.clone(), Some(column.clone())));
        }
    }
    let mut texts = vec![change.file(&subject.contract.sql)?.text.clone()];
    texts.extend(
        subject
            .rule
            .iter()
            .map(|rule| rule.drop_statements().join(";\n")),
    );
    for text in texts {
        for statement in aegis_ddl::read(&text).ok()?.statements {
            going.of(&statement.form, &change.schema);
        }
    }
    Some(going)
}

impl Going {
    fn of(&mut self, form: &Form, schema: &str) {
        match form {
            Form::AlterTable { table, actions } => {
                let name = table.resolve(schema);
                for action in actions {
                    match action {
                        Action::DropColumn { column, .. } => {
                            self.held.insert((name.clone(), Some(column.clone())));
                        }
                        Action::DropConstraint { constraint, .. } => {
                            self.named.insert((None, constraint.clone()));
                        }
                        _ => {}
                    }
                }
            }
            Form::Drop { kind, names, .. } => {
                for one in names {
                    let whole = one.resolve(schema);
                    if matches!(
                        kind,
                        ObjectKind::Trigger | ObjectKind::Policy | ObjectKind::Rule
                    ) {
                        self.named.insert((None, one.name.clone()));
                        continue;
                    }
                    self.named
                        .insert((Some(whole.schema.clone()), whole.name.clone()));
                    if matches!(
                        kind,
                        ObjectKind::Table | ObjectKind::View | ObjectKind::MaterializedView
                    ) {
                        self.held.insert((whole, None));
                    }
                }
            }
            Form::DropIndex { indexes, .. } => {
                for index in indexes {
                    let whole = index.resolve(schema);
                    self.named.insert((Some(whole.schema), whole.name));
                }
            }
            _ => {}
        }
    }
}
