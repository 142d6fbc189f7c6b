//! Every statement but ALTER TABLE, and which room judges which.

use super::world::{self, World};
use super::{Found, alter, body, data, dropped, index, rights, session, table, user_type, view};
use crate::class::Class;
use crate::form::{Form, ObjectKind};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;
use crate::statement::Statement;

pub(super) fn judge(
    world: &mut World<'_>,
    statement: &Statement,
    transaction: usize,
    found: &mut Found,
) {
    new_enum_values(world, statement, transaction, found);
    let breaks = |found: &mut Found, rule, message: String| {
        found.push(rule, Class::D, Level::Error, message);
    };
    match &statement.form {
        Form::CreateTable(table) => table::create(world, table, found),
        Form::AlterTable { table, actions } => {
            view::options(world, &statement.plain, found);
            alter::judge(world, table, actions, transaction, found);
        }
        Form::CreateIndex(index) => index::create(world, index, found),
        Form::DropIndex {
            concurrently,
            indexes,
        } => {
            let words: Vec<String> = statement
                .plain
                .split_whitespace()
                .take(5)
                .map(str::to_ascii_uppercase)
                .collect();
            let if_exists = words.iter().any(|word| word == "EXISTS");
            if *concurrently {
                index::dropped_concurrently(indexes, &statement.plain, found);
            }
            index::drop(world, indexes, (*concurrently, if_exists), found);
        }
        Form::Reindex {
            concurrently,
            target,
            of,
        } => index::reindex(world, target.as_ref(), *of, *concurrently, found),
        Form::Drop {
            kind,
            names,
            on,
            cascade,
            if_exists,
        } => {
            dropped::judge(
                world,
                *kind,
                names,
                on.as_ref(),
                *cascade,
                *if_exists,
                found,
            );
            for name in names.iter().filter(|_| on.is_none()) {
                world.gone(name);
            }
        }
        Form::Rename { kind, name, .. } => {
            let harmless = matches!(
                kind,
                ObjectKind::Index
                    | ObjectKind::Trigger
                    | ObjectKind::Policy
                    | ObjectKind::Statistics
            );
            let of_column = matches!(kind, ObjectKind::View | ObjectKind::MaterializedView)
                && !statement.plain.to_ascii_lowercase().contains(" rename to ");
            if world.is_live(name) && !harmless && !world.is_new_type(name) {
                let of = if of_column { "a column of the" } else { "the" };
                breaks(
                    found,
                    "rename",
                    format!(
                        "{of} {} {name} has another name from the next moment on",
                        kind.word()
                    ),
                );
            }
            if of_column {
                world.said_view(name, None);
            }
        }
        Form::SetSchema { kind, name } => {
            if world.is_live(name) {
                breaks(
                    found,
                    "set-schema",
                    format!(
                        "the {} {name} is in another schema from the next moment on",
                        kind.word()
                    ),
                );
            }
        }
        Form::CreateView {
            view,
            replace,
            columns,
        } => view::create(world, view, *replace, columns.as_deref(), found),
        Form::CreateMaterializedView { view, with_data } => {
            found.long |= *with_data && !world.fresh;
            world.made(view);
        }
        Form::RefreshMaterializedView { view, concurrently } => {
            if *concurrently && ends_with_words(&statement.plain, "WITH NO DATA") {
                found.push(
                    "refresh-not-concurrent",
                    Class::E,
                    Level::Error,
                    "the server refuses CONCURRENTLY and WITH NO DATA together (42601)",
                );
            }
            if world.is_live(view) {
                if *concurrently && world.has_no_row_key(view) {
                    found.push(
                        "refresh-not-concurrent",
                        Class::E,
                        Level::Error,
                        format!("{view} has no unique index over all its rows, without which CONCURRENTLY is refused (55000)"),
                    );
                }
                if *concurrently {
                    found.lock(view, LockMode::Exclusive);
                } else {
                    found.lock(view, LockMode::AccessExclusive);
                    if !world.is_small(view) {
                        found.push(
                            "refresh-not-concurrent",
                            Class::B,
                            Level::Error,
                            format!("readers of {view} wait while its query runs"),
                        );
                    }
                }
                found.long = true;
            }
        }
        Form::CreateType { name, .. } => world.made_type(name),
        Form::CreateDomain {
            name,
            constrained,
            base,
            default,
        } => {
            let domain = world::Domain {
                constrained: *constrained,
                base: base.clone(),
                default: default.clone(),
            };
            world.said_domain(name, domain);
            world.made_type(name);
        }
        Form::AlterType { name, change } => {
            user_type::alter(world, name, change, transaction, found);
        }
        Form::AlterDomain { name, change } => user_type::alter_domain(world, name, *change, found),
        Form::CreateFunction {
            name,
            replace,
            steady,
            body,
        } => {
            let there = world.has_function(name);
            if *replace && !world.is_new_function(name) && there != Some(false) {
                found.push_unless(
                    "replace-function",
                    Class::D,
                    if there == Some(true) {
                        Level::Warning
                    } else {
                        Level::Notice
                    },
                    format!("programs that call {name} meet what it says now"),
                    "it does not exist yet",
                );
            }
            // Only made, not run: what it holds counts when it is called.
            found.unread.extend(body.unread.iter().cloned());
            world.made_function(name);
            world.said_body(name, *steady, body);
        }
        Form::CreateTrigger { table, name, .. } => {
            if world.is_live(table) {
                found.lock(table, LockMode::ShareRowExclusive);
                found.warn_of(
                    world,
                    table,
                    "create-trigger",
                    format!("writes of {table} run {name} from the next moment on"),
                );
            }
        }
        Form::CreateRule { table, name } => {
            if world.is_live(table) {
                found.lock(table, LockMode::AccessExclusive);
                breaks(
                    found,
                    "create-trigger",
                    format!("queries on {table} are rewritten by {name} from the next moment on"),
                );
            }
        }
        Form::CreatePolicy { table, .. } | Form::AlterPolicy { table } => {
            if world.is_live(table) {
                found.lock(table, LockMode::AccessExclusive);
                found.warn_of(
                    world,
                    table,
                    "alter-policy",
                    format!("other rows of {table} are seen or may be written"),
                );
            }
        }
        Form::CreateSequence { name } => world.made(name),
        Form::AlterSequence { name } => {
            if world.is_live(name) {
                sequence(name, statement, found);
            }
        }
        Form::Revoke => rights::revoke(world, &statement.plain, found),
        Form::CreateSchema { name } => world.made_schema(name),
        Form::Set {
            name,
            value: Some(schema),
            local,
        } if name == "search_path" => world.searches(schema, *local),
        Form::Set { name, .. } if name == "session_replication_role" => {
            session::replication_role(world, &statement.plain, found);
        }
        Form::CreateStatistics
        | Form::CreateExtension { .. }
        | Form::CommentOn
        | Form::Grant
        | Form::AlterDefaultPrivileges
        | Form::CreateOther { .. }
        | Form::Set { .. }
        | Form::TransactionControl { .. } => {}
        Form::AlterOther { kind, what } => {
            view::options(world, &statement.plain, found);
            alter_other(*kind, what, &statement.plain, found);
        }
        Form::Do { body } => body::run(world, body, transaction, found),
        Form::Call { procedure } => body::call(world, procedure, transaction, found),
        Form::Insert {
            into,
            source,
            gives,
            overrides,
        } => {
            data::insert(world, into, source, found);
            data::gives(world, into, gives, *overrides, found);
        }
        Form::Update {
            table,
            scope,
            gives,
        } => {
            data::change(world, table, scope, "UPDATE", found);
            data::gives(world, table, gives, false, found);
        }
        Form::Delete { table, scope } => data::change(world, table, scope, "DELETE", found),
        Form::Merge => found.push(
            "dml-bulk",
            Class::B,
            Level::Error,
            "nobody knows how many rows it changes",
        ),
        Form::Copy { into } if world.is_live(into) => found.push(
            "dml-bulk",
            Class::B,
            Level::Error,
            "COPY loads rows in one transaction; load them by a backfill",
        ),
        Form::Copy { .. } => found.long |= !world.fresh,
        Form::Truncate { tables, .. } => {
            for table in tables.iter().filter(|table| world.is_live(table)) {
                found.lock(table, LockMode::AccessExclusive);
                breaks(found, "truncate", format!("every row of {table} goes"));
            }
        }
        Form::CreateTableAs { table } => {
            if !world.fresh {
                found.push(
                    "create-table-as",
                    Class::C,
                    Level::Notice,
                    format!("nobody knows how many rows {table} takes over"),
                );
                found.long = true;
            }
            if says_if_not_exists(&statement.plain) && world.may_exist(table) {
                world.perhaps_made(table);
            } else {
                world.made(table);
            }
        }
        Form::Select { locks_rows, calls } => {
            session::select(world, calls, &statement.plain, found);
            body::select(world, calls, *locks_rows, transaction, found);
        }
        Form::LockTable { tables, mode } => {
            for table in tables.iter().filter(|table| world.is_live(table)) {
                found.lock(table, *mode);
                if mode.blocks_writes() {
                    found.push(
                        "lock-table",
                        Class::B,
                        Level::Error,
                        format!("{table} is locked for the rest of the transaction"),
                    );
                }
            }
        }
        Form::Vacuum { full } => {
            found.long = true;
            if *full {
                found.push(
                    "vacuum-full",
                    Class::E,
                    Level::Error,
                    "the table is rewritten under ACCESS EXCLUSIVE",
                );
            }
        }
        Form::Analyze => found.long = true,
        Form::Cluster { .. } => found.push(
            "cluster",
            Class::E,
            Level::Error,
            "the table is rewritten under ACCESS EXCLUSIVE",
        ),
        Form::ClusterWide { what, .. } => found.push(
            "cluster-wide",
            Class::E,
            Level::Error,
            format!("{what} acts on the whole server"),
        ),
        Form::Other { what } => found.push(
            "unknown-statement",
            Class::E,
            Level::Error,
            format!("{what} is not known to this release"),
        ),
    }
}

/// Whether what it makes may be there: the words stand before its query or its options.
pub(super) fn says_if_not_exists(plain: &str) -> bool {
    let words: Vec<String> = plain
        .split_whitespace()
        .take(7)
        .map(str::to_ascii_uppercase)
        .collect();
    words
        .windows(3)
        .any(|three| three == ["IF", "NOT", "EXISTS"])
}

/// Whether a statement ends so, in any case.
fn ends_with_words(plain: &str, words: &str) -> bool {
    plain.to_ascii_uppercase().ends_with(&format!(" {words}"))
}

/// ALTER SEQUENCE: where it goes on, and how far.
fn sequence(name: &QualifiedName, statement: &Statement, found: &mut Found) {
    let words: Vec<String> = statement
        .plain
        .split_whitespace()
        .map(str::to_ascii_uppercase)
        .collect();
    let after = |word: &str| {
        let at = words.iter().rposition(|one| one == word)?;
        Some(words.get(at + 1).map_or("", String::as_str))
    };
    if statement.sequence.restarts {
        found.push(
            "identity-change",
            Class::D,
            Level::Error,
            format!("{name} gives numbers again that it gave before"),
        );
        return;
    }
    let narrow = match after("AS") {
        Some("SMALLINT" | "INT2") => Some(Level::Error),
        Some("INTEGER" | "INT" | "INT4") => Some(Level::Warning),
        _ => None,
    };
    if let Some(level) = narrow {
        found.push_unless(
            "identity-change",
            Class::D,
            level,
            format!("{name} ends earlier, and the server refuses it (22023) when it is past that already"),
            "it was no larger before",
        );
        return;
    }
    found.push(
        "identity-change",
        Class::D,
        Level::Notice,
        format!("the next numbers of {name} are others"),
    );
}

fn alter_other(kind: ObjectKind, what: &str, plain: &str, found: &mut Found) {
    let says = |word: &str| {
        plain
            .split_whitespace()
            .nth(3)
            .is_some_and(|one| one.eq_ignore_ascii_case(word))
    };
    if kind == ObjectKind::Publication && (says("DROP") || what.starts_with("SET TABLE")) {
        found.push(
            "drop-object",
            Class::D,
            Level::Error,
            "who subscribes to it gets no more rows of the tables that go",
        );
    }
    if kind == ObjectKind::Extension && says("UPDATE") {
        found.unread.push("the scripts of the extension".to_owned());
        body::opaque(
            found,
            "nobody read what the extension's scripts do to its objects",
        );
    }
    if matches!(kind, ObjectKind::View | ObjectKind::MaterializedView)
        && (what.contains("TABLESPACE") || what.starts_with("SET ACCESS"))
    {
        found.push(
            "set-storage-place",
            Class::E,
            Level::Error,
            "it is copied under ACCESS EXCLUSIVE",
        );
    }
    if kind == ObjectKind::Index && what.contains("TABLESPACE") {
        found.push(
            "set-storage-place",
            Class::E,
            Level::Error,
            "the index is copied under ACCESS EXCLUSIVE",
        );
    }
    if kind == ObjectKind::Trigger && ends_with_words(plain, "DISABLE") {
        found.push(
            "disable-trigger",
            Class::D,
            Level::Error,
            "what the event trigger keeps up is no longer kept up",
        );
    }
    if kind == ObjectKind::Function {
        found.push(
            "replace-function",
            Class::D,
            Level::Notice,
            "programs that call it meet what it says now",
        );
    }
}

/// Before 18, and on 18 for types that the transaction did not make, a new value cannot be used before its transaction commits.
fn new_enum_values(
    world: &World<'_>,
    statement: &Statement,
    transaction: usize,
    found: &mut Found,
) {
    if matches!(statement.form, Form::AlterType { .. }) {
        return;
    }
    for value in world.values_in(transaction) {
        if statement.plain.contains(&format!("'{value}'")) {
            found.push(
                "use-of-new-enum-value",
                Class::B,
                Level::Error,
                format!("'{value}' was added by the same transaction"),
            );
        }
    }
}
