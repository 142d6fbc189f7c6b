//! The safe form of a statement that may not run where it stands: one step of it, as text. [`crate::judge`] says what is wrong; what
//! this makes is judged again, so a form that is not yet clean is mended by the next step.
//!
//! Invariants: what is made gives the same structure in the end; what is not sure is not touched and is told; what the author wrote
//! stays as it stands, but for the words that are wrong. Pure.

mod attach;
mod design;
mod taken;

use crate::form::{Action, Column, ConstraintKind, Form, ObjectKind, ReindexOf};
use crate::judge::{Context, is_steady_default};
use crate::name::QualifiedName;
use crate::read::pieces::{self, ActionText, AlterText, Clause, ConstraintText};
use crate::report::Verdict;
use crate::statement::Statement;

pub use taken::Taken;

/// The longest name that the server keeps.
const NAME_BYTES_MAX: usize = 63;

/// Where a piece belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where the statement stood.
    Here,
    /// Long, or outside of a transaction: phase migrate, before a backfill.
    Migrate,
    /// Phase migrate, after a backfill.
    Late,
    /// What the version before must not meet: NOT NULL, and what proves it.
    Tighten,
    /// What the version before names and loses.
    Contract,
}

/// A statement that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Without a semicolon; a comment may lead.
    pub text: String,
    /// Where it belongs.
    pub place: Place,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// These instead of it.
    Pieces(Vec<Piece>),
    /// Nothing is sure to be the same; why, or what a person has to do.
    Told(String),
    /// No form of it is known that would be better.
    Unknown,
}

/// Where names are chosen: the schema of what has none, and what is taken.
#[derive(Debug, Clone, Copy)]
struct Names<'a> {
    schema: &'a str,
    taken: &'a Taken,
}

/// One step towards the safe form. `taken`: the names that the statement may not choose.
pub fn fix(statement: &Statement, verdict: &Verdict, context: &Context<'_>, taken: &Taken) -> Fix {
    let names = Names {
        schema: context.schema,
        taken,
    };
    let says = |rule: &str| {
        verdict
            .findings
            .iter()
            .any(|finding| finding.rule == rule && finding.overridden.is_none())
    };
    let in_expand = verdict.phase == Some(crate::Phase::Expand);
    let in_contract = matches!(
        verdict.phase,
        Some(crate::Phase::Tighten | crate::Phase::Contract)
    );
    match &statement.form {
        Form::CreateIndex(index) if !index.concurrently => {
            if index.only || says("concurrently-if-not-exists") {
                return Fix::Unknown;
            }
            if is_partitioned(context, &index.table) {
                return Fix::Told(BY_PARTITION.to_owned());
            }
            create_index(statement, index.unique)
        }
        Form::CreateIndex(index) if index.if_not_exists && says("concurrently-if-not-exists") => {
            without_if_not_exists(statement)
        }
        Form::DropIndex {
            indexes,
            concurrently: false,
        } => {
            let of_partitioned = indexes.iter().any(|name| {
                context
                    .catalog
                    .and_then(|catalog| catalog.index(&name.resolve(context.schema)))
                    .is_some_and(|index| is_partitioned(context, &table_of(index)))
            });
            if of_partitioned {
                return Fix::Told(
                    "an index of a partitioned table cannot be dropped CONCURRENTLY: drop it in a window".to_owned(),
                );
            }
            drop_index(statement, indexes)
        }
        Form::Reindex {
            concurrently: false,
            of,
            ..
        } => reindex(statement, *of),
        Form::AlterTable { table, actions }
            if says("attach-partition-scan")
                && let [Action::AttachPartition { partition, .. }] = actions.as_slice() =>
        {
            attach::proven(statement, table, partition, context, names)
        }
        Form::AlterTable { table, actions } => {
            let step = alter_table(statement, table, actions, (context, names), &says);
            match step {
                Fix::Unknown if !in_contract && goes_to_contract(&says) => contract(statement),
                Fix::Unknown if in_expand => to_migrate(statement, verdict, &says),
                step => step,
            }
        }
        _ if !in_contract && goes_to_contract(&says) => contract(statement),
        _ if in_expand => to_migrate(statement, verdict, &says),
        _ => Fix::Unknown,
    }
}

fn one(place: Place, text: impl Into<String>) -> Fix {
    Fix::Pieces(vec![Piece {
        text: text.into(),
        place,
    }])
}

/// What stands in the way on partitioned tables.
const BY_PARTITION: &str = "the table is partitioned, where CONCURRENTLY is refused: the index ON ONLY the parent, then on each partition concurrently, then ATTACH";

/// Whether the catalog says that a table is partitioned.
fn is_partitioned(context: &Context<'_>, table: &QualifiedName) -> bool {
    context
        .catalog
        .and_then(|catalog| catalog.relation(&table.resolve(context.schema)))
        .is_some_and(|relation| relation.partition_key.is_some())
}

fn table_of(index: &aegis_catalog::Index) -> QualifiedName {
    QualifiedName {
        schema: Some(index.table.schema.clone()),
        name: index.table.name.clone(),
    }
}

/// What drops something that the version before names: it is right, but later.
fn goes_to_contract(says: &impl Fn(&str) -> bool) -> bool {
    [
        "drop-column",
        "drop-table",
        "drop-object",
        "drop-constraint",
        "drop-default",
        "detach-partition",
        "disable-trigger",
        "revoke",
    ]
    .iter()
    .any(|rule| says(rule))
}

fn contract(statement: &Statement) -> Fix {
    one(Place::Contract, statement.text.clone())
}

/// What is long, and as it should be, but stands in expand.
fn to_migrate(statement: &Statement, verdict: &Verdict, says: &impl Fn(&str) -> bool) -> Fix {
    let late = matches!(&statement.form, Form::AlterTable { actions, .. }
        if actions.iter().all(|action| matches!(action, Action::ValidateConstraint { .. })))
        || matches!(&statement.form, Form::CreateIndex(index) if index.unique);
    let place = if late { Place::Late } else { Place::Migrate };
    let only_the_transaction =
        says("validate-in-same-transaction") || says("concurrently-in-transaction");
    if verdict.class == crate::Class::C && !says("opaque-sql") || only_the_transaction {
        return one(place, statement.text.clone());
    }
    Fix::Unknown
}

fn create_index(statement: &Statement, unique: bool) -> Fix {
    let Some((end, if_not_exists)) = pieces::index_word(&statement.text) else {
        return Fix::Unknown;
    };
    let mut text = statement.text.clone();
    if let Some(at) = if_not_exists {
        cut(&mut text, at);
    }
    text.insert_str(end, " CONCURRENTLY");
    one(if unique { Place::Late } else { Place::Migrate }, text)
}

fn without_if_not_exists(statement: &Statement) -> Fix {
    let Some((_, Some(at))) = pieces::index_word(&statement.text) else {
        return Fix::Unknown;
    };
    let mut text = statement.text.clone();
    cut(&mut text, at);
    one(Place::Here, text)
}

/// Takes words out, and one of the spaces around them.
fn cut(text: &mut String, at: std::ops::Range<usize>) {
    let mut end = at.end;
    if text[end..].starts_with(' ') {
        end += 1;
    }
    text.replace_range(at.start..end, "");
}

fn drop_index(statement: &Statement, indexes: &[QualifiedName]) -> Fix {
    let plain = statement.normalised().to_ascii_lowercase();
    if plain.ends_with(" cascade") {
        return Fix::Told(
            "DROP INDEX CONCURRENTLY takes no CASCADE: say by hand what else goes".to_owned(),
        );
    }
    let if_exists = if plain.starts_with("drop index if exists") {
        "IF EXISTS "
    } else {
        ""
    };
    Fix::Pieces(
        indexes
            .iter()
            .map(|index| Piece {
                text: format!("DROP INDEX CONCURRENTLY {if_exists}{index}"),
                place: Place::Migrate,
            })
            .collect(),
    )
}

fn reindex(statement: &Statement, of: ReindexOf) -> Fix {
    if matches!(of, ReindexOf::Schema | ReindexOf::Database) {
        return Fix::Told("reindex each table by itself, CONCURRENTLY".to_owned());
    }
    let Some(end) = pieces::reindex_word(&statement.text) else {
        return Fix::Unknown;
    };
    let mut text = statement.text.clone();
    text.insert_str(end, " CONCURRENTLY");
    one(Place::Migrate, text)
}

fn alter_table(
    statement: &Statement,
    table: &QualifiedName,
    actions: &[Action],
    (context, names): (&Context<'_>, Names<'_>),
    says: &impl Fn(&str) -> bool,
) -> Fix {
    let Some(text) = pieces::alter(&statement.text) else {
        return Fix::Unknown;
    };
    if text.actions.len() != actions.len() {
        return Fix::Unknown;
    }
    if let ([action], [of]) = (actions, text.actions.as_slice()) {
        return one_action(table, action, (&text, of), (context, names), says);
    }
    let separable = actions.iter().all(|action| {
        matches!(
            action,
            Action::AddColumn { .. }
                | Action::DropColumn { .. }
                | Action::AddConstraint { .. }
                | Action::DropConstraint { .. }
                | Action::ValidateConstraint { .. }
                | Action::SetNotNull { .. }
                | Action::DropNotNull { .. }
                | Action::SetDefault { .. }
                | Action::DropDefault { .. }
        )
    });
    if !separable {
        return Fix::Told(
            "its actions depend on one another: write each as a statement of its own".to_owned(),
        );
    }
    Fix::Pieces(
        text.actions
            .iter()
            .map(|action| Piece {
                text: format!("{} {}", text.head, action.text),
                place: Place::Here,
            })
            .collect(),
    )
}

fn one_action(
    table: &QualifiedName,
    action: &Action,
    (whole, text): (&AlterText, &ActionText),
    (context, names): (&Context<'_>, Names<'_>),
    says: &impl Fn(&str) -> bool,
) -> Fix {
    match (action, &text.constraint) {
        (Action::AddColumn { column, .. }, _) => {
            add_column(table, column, (whole, text), (context, names), says)
        }
        (Action::AddConstraint { constraint }, Some(parts)) => match &constraint.kind {
            ConstraintKind::Check { .. } if says("add-constraint-scan") => {
                let column = match parts.columns.as_slice() {
                    [column] => Some(column.as_str()),
                    _ => None,
                };
                not_valid(table, whole, parts, (column.as_slice(), "check"), names)
            }
            ConstraintKind::ForeignKey { .. }
                if says("add-constraint-scan")
                    && context.server < 18
                    && is_partitioned(context, table) =>
            {
                Fix::Told(
                    "a foreign key of a partitioned table can be NOT VALID from 18 on: add it to each partition first"
                        .to_owned(),
                )
            }
            ConstraintKind::Unique { using_index: None }
            | ConstraintKind::PrimaryKey { using_index: None }
                if is_partitioned(context, table) =>
            {
                Fix::Told(BY_PARTITION.to_owned())
            }
            ConstraintKind::ForeignKey { .. } if says("add-constraint-scan") => {
                let columns: Vec<&str> = constraint.columns.iter().map(String::as_str).collect();
                not_valid(table, whole, parts, (&columns, "fkey"), names)
            }
            ConstraintKind::Unique { using_index: None } if says("add-unique") => {
                key(table, whole, parts, (&constraint.columns, false), names)
            }
            ConstraintKind::PrimaryKey { using_index: None } if says("add-primary-key") => {
                key(table, whole, parts, (&constraint.columns, true), names)
            }
            _ => Fix::Unknown,
        },
        (Action::SetNotNull { column }, _) if says("set-not-null-scan") || says("set-not-null") => {
            set_not_null(table, column, (whole, text), names, says)
        }
        (Action::SetType { column, to, .. }, _)
            if ["change-type-rewrite", "change-type-index", "change-type-narrower"]
                .iter()
                .any(|rule| says(rule)) =>
        {
            Fix::Told(design::new_type(table, column, &to.text, context))
        }
        (
            Action::DetachPartition {
                concurrently: false,
                finalize: false,
                ..
            },
            _,
        ) => one(
            Place::Contract,
            format!("{} {} CONCURRENTLY", whole.head, text.text),
        ),
        _ => Fix::Unknown,
    }
}

/// A name as the server would choose it; none when it would be cut.
fn default_name(
    names: Names<'_>,
    table: &QualifiedName,
    columns: &[&str],
    word: &str,
) -> Option<String> {
    let name = names.taken.free(table, columns, word, names.schema)?;
    Some(aegis_catalog::shown(&name))
}

fn no_name() -> Fix {
    Fix::Told("give the constraint a name: the one that the server would choose is cut".to_owned())
}

/// ADD CONSTRAINT … NOT VALID, then VALIDATE.
fn not_valid(
    table: &QualifiedName,
    whole: &AlterText,
    parts: &ConstraintText,
    (columns, word): (&[&str], &str),
    names: Names<'_>,
) -> Fix {
    let Some(name) = parts
        .name
        .clone()
        .or_else(|| default_name(names, table, columns, word))
    else {
        return no_name();
    };
    Fix::Pieces(vec![
        Piece {
            text: format!(
                "{} ADD CONSTRAINT {name} {} NOT VALID",
                whole.head, parts.body
            ),
            place: Place::Here,
        },
        Piece {
            text: format!("{} VALIDATE CONSTRAINT {name}", whole.head),
            place: Place::Late,
        },
    ])
}

/// A unique index concurrently, then the constraint that uses it.
fn key(
    table: &QualifiedName,
    whole: &AlterText,
    parts: &ConstraintText,
    (columns, primary): (&[String], bool),
    names: Names<'_>,
) -> Fix {
    if parts.storage {
        return Fix::Told("its index has parameters of its own: write it by hand".to_owned());
    }
    let keys: Vec<&str> = columns.iter().map(String::as_str).collect();
    // The server makes the name of all its columns, those that are only included too.
    let all = columns.iter().chain(&parts.included);
    let all: Vec<&str> = all.map(String::as_str).collect();
    let default = || {
        if primary {
            default_name(names, table, &[], "pkey")
        } else {
            default_name(names, table, &all, "key")
        }
    };
    let Some(name) = parts.name.clone().or_else(default) else {
        return no_name();
    };
    let keys = parts
        .keys
        .clone()
        .unwrap_or_else(|| format!("({})", keys.join(", ")));
    let mut index = format!("CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} {keys}");
    if let Some(include) = &parts.include {
        index.push(' ');
        index.push_str(include);
    }
    if parts.nulls_not_distinct {
        index.push_str(" NULLS NOT DISTINCT");
    }
    let word = if primary { "PRIMARY KEY" } else { "UNIQUE" };
    let mut constraint = format!(
        "{} ADD CONSTRAINT {name} {word} USING INDEX {name}",
        whole.head
    );
    if !parts.deferrable.is_empty() {
        constraint.push(' ');
        constraint.push_str(&parts.deferrable);
    }
    Fix::Pieces(
        [index, constraint]
            .into_iter()
            .map(|text| Piece {
                text,
                place: Place::Late,
            })
            .collect(),
    )
}

/// A CHECK that is proven, then NOT NULL, then the CHECK goes. Without a reason it is what the version before may not meet.
fn set_not_null(
    table: &QualifiedName,
    column: &str,
    (whole, text): (&AlterText, &ActionText),
    names: Names<'_>,
    says: &impl Fn(&str) -> bool,
) -> Fix {
    // With a reason in change.toml the finding is overridden, and both versions write it.
    let place = if says("set-not-null") {
        Place::Tighten
    } else {
        Place::Late
    };
    if !says("set-not-null-scan") {
        return one(place, format!("{} {}", whole.head, text.text));
    }
    let Some(name) = default_name(names, table, &[column], "is_set") else {
        return Fix::Told("its CHECK would have a name that is cut: write it by hand".to_owned());
    };
    let head = &whole.head;
    let shown = aegis_catalog::shown(column);
    let texts = [
        format!("{head} ADD CONSTRAINT {name} CHECK ({shown} IS NOT NULL) NOT VALID"),
        format!("{head} VALIDATE CONSTRAINT {name}"),
        format!("{head} {}", text.text),
        format!("{head} DROP CONSTRAINT {name}"),
    ];
    Fix::Pieces(
        texts
            .into_iter()
            .map(|text| Piece { text, place })
            .collect(),
    )
}

/// The column alone, then what it had besides.
fn add_column(
    table: &QualifiedName,
    column: &Column,
    (whole, text): (&AlterText, &ActionText),
    (context, names): (&Context<'_>, Names<'_>),
    says: &impl Fn(&str) -> bool,
) -> Fix {
    if says("add-column-rewrite")
        && let Some(step) = serial(table, column, (whole, text), names)
    {
        return step;
    }
    let constraint = says("add-column-constraint");
    let volatile = says("add-column-rewrite")
        && column.generated.is_none()
        && !column.identity
        && column
            .default
            .as_ref()
            .is_some_and(|default| !is_steady_default(context, default));
    if says("add-column-rewrite") && !volatile {
        return Fix::Told(if column.identity {
            design::identity(table, column)
        } else if column.generated.is_some() {
            design::stored(table, column, context.server)
        } else {
            format!(
                "add {} as a plain column, set its default, and fill the rows of before by a [backfill]",
                column.name
            )
        });
    }
    let has_default = text.clauses.iter().any(|one| one.kind == Clause::Default);
    let goes = |kind: Clause| match kind {
        Clause::Default => volatile,
        Clause::NotNull => volatile && column.not_null,
        Clause::Check | Clause::Unique | Clause::Primary => constraint,
        Clause::References => constraint && has_default,
        Clause::Other => false,
    };
    if !text.clauses.iter().any(|one| goes(one.kind)) {
        return Fix::Unknown;
    }
    let mut plain = text.text.clone();
    for clause in text.clauses.iter().rev().filter(|one| goes(one.kind)) {
        cut(&mut plain, clause.at.clone());
    }
    let head = &whole.head;
    let name = aegis_catalog::shown(&column.name);
    let mut texts = vec![format!("{head} {}", plain.trim_end())];
    // Two of a kind have different names.
    let mut taken = names.taken.clone();
    let schema = table.resolve(names.schema).schema;
    for clause in text.clauses.iter().filter(|one| goes(one.kind)) {
        let parts = &clause.constraint;
        let (word, body) = match clause.kind {
            Clause::Default => {
                let Some(expression) = &parts.expression else {
                    return Fix::Unknown;
                };
                texts.push(with_hint(table, &name, expression, head));
                continue;
            }
            Clause::NotNull => {
                texts.push(format!("{head} ALTER COLUMN {name} SET NOT NULL"));
                continue;
            }
            Clause::Check => ("check", parts.body.clone()),
            Clause::References => ("fkey", format!("FOREIGN KEY ({name}) {}", parts.body)),
            Clause::Unique => ("key", with_keys(&parts.body, "UNIQUE", &name)),
            Clause::Primary => ("pkey", with_keys(&parts.body, "PRIMARY KEY", &name)),
            Clause::Other => continue,
        };
        let columns: Vec<&str> = match word {
            "pkey" => Vec::new(),
            // A CHECK has the name of the one column that it names.
            "check" => match parts.columns.as_slice() {
                [one] => vec![one.as_str()],
                _ => Vec::new(),
            },
            _ => vec![column.name.as_str()],
        };
        let names = Names {
            taken: &taken,
            ..names
        };
        let Some(of) = parts
            .name
            .clone()
            .or_else(|| default_name(names, table, &columns, word))
        else {
            return no_name();
        };
        taken.take(&schema, &crate::name::identifier(&of), word);
        texts.push(format!("{head} ADD CONSTRAINT {of} {body}"));
    }
    Fix::Pieces(
        texts
            .into_iter()
            .map(|text| Piece {
                text,
                place: Place::Here,
            })
            .collect(),
    )
}

/// `serial` as what it stands for: a sequence that the column owns, a default, NOT NULL. None: it is no serial, or more than that.
fn serial(
    table: &QualifiedName,
    column: &Column,
    (whole, text): (&AlterText, &ActionText),
    names: Names<'_>,
) -> Option<Fix> {
    let word = column.data_type.base.name.as_str();
    let data_type = match word {
        "serial" | "serial4" => "integer",
        "bigserial" | "serial8" => "bigint",
        "smallserial" | "serial2" => "smallint",
        _ => return None,
    };
    if column.primary || column.default.is_some() {
        return None;
    }
    let sequence = names
        .taken
        .free(table, &[&column.name], "seq", names.schema)?;
    let mut plain = text.text.clone();
    for clause in text
        .clauses
        .iter()
        .rev()
        .filter(|one| one.kind == Clause::NotNull)
    {
        cut(&mut plain, clause.at.clone());
    }
    // The type follows the name, so the last such word before the clauses is it.
    let end = text
        .clauses
        .first()
        .map_or(plain.len(), |clause| clause.at.start.min(plain.len()));
    let at = plain.get(..end)?.to_ascii_lowercase().rfind(word)?;
    plain.replace_range(at..at + word.len(), data_type);
    let sequence = QualifiedName {
        schema: table.schema.clone(),
        name: sequence,
    };
    let (head, name) = (&whole.head, aegis_catalog::shown(&column.name));
    let value = format!(
        "nextval('{}'::regclass)",
        sequence.to_string().replace('\'', "''")
    );
    let texts = [
        format!("CREATE SEQUENCE {sequence} AS {data_type}"),
        format!("{head} {}", plain.trim_end()),
        format!("ALTER SEQUENCE {sequence} OWNED BY {table}.{name}"),
        with_hint(table, &name, &value, head),
        format!("{head} ALTER COLUMN {name} SET NOT NULL"),
    ];
    Some(Fix::Pieces(
        texts
            .into_iter()
            .map(|text| Piece {
                text,
                place: Place::Here,
            })
            .collect(),
    ))
}

/// SET DEFAULT, with what is left to a backfill.
fn with_hint(table: &QualifiedName, column: &str, value: &str, head: &str) -> String {
    format!(
        "-- Rows of before have NULL here until a backfill fills them:\n--   UPDATE {table} SET {column} = {value} WHERE {column} IS NULL AND the key is in (:from, :to]\n{head} ALTER COLUMN {column} SET DEFAULT {value}"
    )
}

/// `UNIQUE DEFERRABLE` of a column as `UNIQUE (column) DEFERRABLE`.
fn with_keys(body: &str, word: &str, column: &str) -> String {
    let rest = body
        .get(word.len()..)
        .filter(|_| {
            body.get(..word.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(word))
        })
        .unwrap_or_default();
    let (nulls, rest) = match rest.trim_start().get(.."nulls not distinct".len()) {
        Some(head) if head.eq_ignore_ascii_case("nulls not distinct") => (
            " NULLS NOT DISTINCT",
            &rest.trim_start()["nulls not distinct".len()..],
        ),
        _ => ("", rest),
    };
    format!("{word}{nulls} ({column}) {}", rest.trim())
        .trim_end()
        .to_owned()
}

/// What a statement makes that later statements may name: indexes and constraints.
pub fn makes(statement: &Statement) -> Vec<String> {
    statement
        .touches()
        .into_iter()
        .filter(|one| matches!(one.kind, ObjectKind::Index | ObjectKind::Constraint))
        .map(|one| one.name.name)
        .collect()
}
