//! Every statement but ALTER TABLE, and which room judges which.

use super::world::{self, World};
use super::{Found, again, alter, body, data};
use crate::class::Class;
use crate::form::{
    CreateIndex, CreateTable, DomainChange, Form, ObjectKind, ReindexOf, TypeChange,
};
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
        Form::CreateTable(table) => create_table(world, table, found),
        Form::AlterTable { table, actions } => {
            alter::judge(world, table, actions, transaction, found);
        }
        Form::CreateIndex(index) => create_index(world, index, found),
        Form::DropIndex {
            concurrently,
            indexes,
        } => drop_index(world, indexes, *concurrently, found),
        Form::Reindex {
            concurrently,
            target,
            of,
        } => reindex(world, target.as_ref(), *of, *concurrently, found),
        Form::Drop {
            kind,
            names,
            on,
            cascade,
            if_exists,
        } => {
            drop(
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
            if world.is_live(name) && !harmless && !world.is_new_type(name) {
                breaks(
                    found,
                    "rename",
                    format!(
                        "the {} {name} has another name from the next moment on",
                        kind.word()
                    ),
                );
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
        Form::CreateView { view, replace } => {
            if *replace
                && world.is_live(view)
                && world.relation(view).is_some() | world.catalog.is_none()
            {
                found.push_unless(
                    "replace-view",
                    Class::D,
                    Level::Warning,
                    format!("readers of {view} meet what it says now"),
                    "it does not exist yet",
                );
            }
            world.made(view);
        }
        Form::CreateMaterializedView { view, with_data } => {
            found.long |= *with_data && !world.fresh;
            world.made(view);
        }
        Form::RefreshMaterializedView { view, concurrently } => {
            if world.is_live(view) {
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
        Form::AlterType { name, change } => alter_type(world, name, change, transaction, found),
        Form::AlterDomain { name, change } => alter_domain(world, name, *change, found),
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
                found.push(
                    "create-trigger",
                    Class::D,
                    Level::Warning,
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
                found.push(
                    "alter-policy",
                    Class::D,
                    Level::Warning,
                    format!("other rows of {table} are seen or may be written"),
                );
            }
        }
        Form::CreateSequence { name } => world.made(name),
        Form::AlterSequence { name } => {
            if world.is_live(name) {
                found.push(
                    "identity-change",
                    Class::D,
                    Level::Notice,
                    format!("the next numbers of {name} are others"),
                );
            }
        }
        Form::Revoke => breaks(
            found,
            "revoke",
            "programs of the version before lose a right".to_owned(),
        ),
        Form::Set {
            name,
            value: Some(schema),
            ..
        } if name == "search_path" => world.searches(schema),
        Form::CreateSchema { .. }
        | Form::CreateStatistics
        | Form::CreateExtension { .. }
        | Form::CommentOn
        | Form::Grant
        | Form::AlterDefaultPrivileges
        | Form::CreateOther { .. }
        | Form::Set { .. }
        | Form::TransactionControl { .. } => {}
        Form::AlterOther { kind, what } => alter_other(*kind, what, found),
        Form::Do { body } => body::run(world, body, transaction, found),
        Form::Call { procedure } => body::call(world, procedure, transaction, found),
        Form::Insert { into, source } => data::insert(world, into, source, found),
        Form::Update { table, scope } => data::change(world, table, scope, "UPDATE", found),
        Form::Delete { table, scope } => data::change(world, table, scope, "DELETE", found),
        Form::Merge => found.push(
            "dml-bulk",
            Class::B,
            Level::Error,
            "nobody knows how many rows it changes",
        ),
        Form::Copy => found.push(
            "dml-bulk",
            Class::B,
            Level::Error,
            "COPY loads rows in one transaction; load them by a backfill",
        ),
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
            world.made(table);
        }
        Form::Select { locks_rows, calls } => {
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

fn create_table(world: &mut World<'_>, table: &CreateTable, found: &mut Found) {
    if table.if_not_exists && !world.fresh {
        found.push(
            "create-table-if-not-exists",
            Class::B,
            Level::Notice,
            format!("a table {} of another shape is taken for done", table.table),
        );
    }
    for references in table.references.iter().filter(|one| world.is_live(one)) {
        if *references != table.table {
            found.lock(references, LockMode::ShareRowExclusive);
        }
    }
    if let Some(parent) = &table.partition_of
        && world.is_live(parent)
    {
        found.lock(parent, LockMode::AccessExclusive);
        let default = world
            .relation(parent)
            .map(|relation| relation.default_partition.is_some());
        let small = world
            .relation(parent)
            .and_then(|relation| relation.default_partition.as_ref())
            .is_some_and(|name| {
                world.is_small(&QualifiedName {
                    schema: Some(name.schema.clone()),
                    name: name.name.clone(),
                })
            });
        if default == Some(true) && !small {
            found.push(
                "attach-partition-scan",
                Class::B,
                Level::Error,
                format!("the default partition of {parent} is scanned under ACCESS EXCLUSIVE"),
            );
        } else if default.is_none() && !world.fresh {
            found.push_unless(
                "attach-partition-scan",
                Class::B,
                Level::Notice,
                format!("{parent} is locked for a moment, and its default partition is scanned"),
                "it has no default partition",
            );
        }
    }
    // With IF NOT EXISTS over a table that is there, or may be, nothing is made.
    if table.if_not_exists && world.may_exist(&table.table) {
        // Of a table that nobody looked at, this is what there is to know.
        if !world.is_told(&table.table) {
            world.said_table(table);
        }
        return;
    }
    world.made(&table.table);
    world.said_table(table);
}

fn create_index(world: &mut World<'_>, index: &CreateIndex, found: &mut Found) {
    if world.is_live(&index.table) {
        found.lock(
            &index.table,
            if index.concurrently {
                LockMode::ShareUpdateExclusive
            } else {
                LockMode::Share
            },
        );
        if index.concurrently {
            if index.if_not_exists {
                found.push(
                    "concurrently-if-not-exists",
                    Class::B,
                    Level::Warning,
                    "an invalid leftover of the same name is taken for done",
                );
            }
            if world.is_partitioned(&index.table) {
                found.push(
                    "create-index-not-concurrent",
                    Class::B,
                    Level::Error,
                    format!("{} is partitioned, where CONCURRENTLY is refused: ON ONLY, then each partition concurrently, then ATTACH", index.table),
                );
            }
        } else {
            built_at_once(world, index, found);
        }
        if index.unique {
            found.push(
                "new-write-restriction",
                Class::D,
                Level::Warning,
                format!(
                    "writes of {} with a duplicate are refused, while it is built already",
                    index.table
                ),
            );
        }
    }
    if index.unique && !index.partial && index.columns.len() == index.keys {
        world.said_key(&index.table, &index.columns);
    }
    if index.partial || index.columns.len() != index.keys {
        world.said_hung(&index.table);
    }
    if let Some(name) = &index.index {
        let name = QualifiedName {
            schema: index.table.schema.clone(),
            name: name.name.clone(),
        };
        if !world.is_live(&index.table) {
            world.made(&name);
        }
    }
}

/// Without CONCURRENTLY: ON ONLY builds nothing when the table is partitioned, and changes nothing when it is not.
fn built_at_once(world: &World<'_>, index: &CreateIndex, found: &mut Found) {
    let table = &index.table;
    if world.is_small_alone(table) || index.only && world.is_partitioned(table) {
        return;
    }
    let message = format!("writers of {table} wait while it is built");
    if index.only && world.relation(table).is_none() {
        found.push_unless(
            "create-index-not-concurrent",
            Class::B,
            Level::Error,
            message,
            format!("{table} is partitioned: then it is A, and builds nothing (--database or --catalog tells)"),
        );
    } else {
        found.push(
            "create-index-not-concurrent",
            Class::B,
            Level::Error,
            message,
        );
    }
}

fn drop_index(world: &World<'_>, indexes: &[QualifiedName], concurrently: bool, found: &mut Found) {
    let live: Vec<_> = indexes.iter().filter(|one| world.is_live(one)).collect();
    if live.is_empty() || concurrently {
        return;
    }
    for index in live {
        found.push(
            "drop-index-not-concurrent",
            Class::B,
            Level::Error,
            format!("readers and writers of the table of {index} wait"),
        );
    }
}

fn reindex(
    world: &World<'_>,
    target: Option<&QualifiedName>,
    of: ReindexOf,
    concurrently: bool,
    found: &mut Found,
) {
    found.long = true;
    if target.is_some_and(|target| !world.is_live(target)) {
        return;
    }
    // Of an index the table counts.
    let small = target.is_some_and(|target| {
        let index = world
            .catalog
            .and_then(|catalog| catalog.index(&world.name(target)));
        let table = index.map_or_else(
            || target.clone(),
            |index| QualifiedName {
                schema: Some(index.table.schema.clone()),
                name: index.table.name.clone(),
            },
        );
        world.is_small_alone(&table)
    });
    if !concurrently && !small {
        let what = match of {
            ReindexOf::Index => "its table",
            ReindexOf::Table => "the table",
            ReindexOf::Schema | ReindexOf::Database => "every table",
        };
        found.push(
            "reindex-not-concurrent",
            Class::B,
            Level::Error,
            format!("writers of {what} wait"),
        );
    }
}

fn drop(
    world: &World<'_>,
    kind: ObjectKind,
    names: &[QualifiedName],
    on: Option<&QualifiedName>,
    cascade: bool,
    if_exists: bool,
    found: &mut Found,
) {
    let also = if cascade {
        ", and what depends on it"
    } else {
        ""
    };
    for name in names {
        let live = match kind {
            ObjectKind::Type | ObjectKind::Domain => !world.is_new_type(name),
            ObjectKind::Function => !world.is_new_function(name),
            ObjectKind::Trigger | ObjectKind::Policy | ObjectKind::Rule => {
                on.is_none_or(|table| world.is_live(table))
            }
            _ => world.is_live(name),
        };
        if !live {
            continue;
        }
        let is_relation = matches!(
            kind,
            ObjectKind::Table
                | ObjectKind::View
                | ObjectKind::MaterializedView
                | ObjectKind::Sequence
        );
        if if_exists && is_relation && world.is_absent(name) {
            continue;
        }
        if !cascade && again::judge(world, kind, name, on, found) {
            if let Some(table) = on {
                found.lock(table, LockMode::AccessExclusive);
            }
            continue;
        }
        match kind {
            ObjectKind::Table => {
                found.lock(name, LockMode::AccessExclusive);
                for other in world.referenced_by(name) {
                    found.lock(&other, LockMode::AccessExclusive);
                }
                found.push(
                    "drop-table",
                    Class::D,
                    Level::Error,
                    format!("{name} is gone for programs that name it{also}"),
                );
            }
            ObjectKind::Trigger => {
                if let Some(table) = on {
                    found.lock(table, LockMode::AccessExclusive);
                }
                found.push(
                    "disable-trigger",
                    Class::D,
                    Level::Error,
                    format!("what {name} keeps up is no longer kept up"),
                );
            }
            ObjectKind::Statistics => {}
            _ => {
                found.push(
                    "drop-object",
                    Class::D,
                    Level::Error,
                    format!(
                        "the {} {name} is gone for programs that name it{also}",
                        kind.word()
                    ),
                );
            }
        }
    }
}

fn alter_type(
    world: &mut World<'_>,
    name: &QualifiedName,
    change: &TypeChange,
    transaction: usize,
    found: &mut Found,
) {
    if let TypeChange::AddValue { value, .. } = change {
        world.added_value(name, value, transaction);
    }
    if world.is_new_type(name) {
        return;
    }
    match change {
        TypeChange::AddValue { value, .. } => found.push(
            "add-enum-value",
            Class::D,
            Level::Warning,
            format!("programs of the version before may read '{value}'"),
        ),
        TypeChange::RenameValue => found.push(
            "rename",
            Class::D,
            Level::Error,
            format!("programs that name the old value of {name} fail"),
        ),
        TypeChange::Other => {}
        TypeChange::AddAttribute => found.push(
            "alter-type",
            Class::D,
            Level::Warning,
            format!("programs that read {name} meet another shape"),
        ),
        TypeChange::DropAttribute | TypeChange::AlterAttribute => found.push(
            "alter-type",
            Class::D,
            Level::Error,
            format!("programs that read {name} meet another shape, and tables with a column of it may be rewritten"),
        ),
    }
}

fn alter_domain(world: &World<'_>, name: &QualifiedName, change: DomainChange, found: &mut Found) {
    if world.is_new_type(name) {
        return;
    }
    let restricts = |found: &mut Found| {
        found.push(
            "new-write-restriction",
            Class::D,
            Level::Warning,
            format!("writes of columns of {name} that break it are refused from now on"),
        );
    };
    let tables = super::hold::tables_of(world, name);
    let small = world.catalog.is_some()
        && tables.iter().all(|table| {
            world.is_small(&QualifiedName {
                schema: Some(table.schema.clone()),
                name: table.name.clone(),
            })
        });
    match change {
        DomainChange::AddConstraint { not_valid: true } => restricts(found),
        DomainChange::AddConstraint { not_valid: false } | DomainChange::SetNotNull => {
            found.push(
                "add-constraint-scan",
                Class::B,
                if small { Level::Notice } else { Level::Error },
                format!("every table with a column of {name} is scanned while its writers wait"),
            );
            restricts(found);
        }
        // VALIDATE too holds SHARE on them (measured): a domain's constraint has no online form on a large table.
        DomainChange::ValidateConstraint => {
            found.long = true;
            if !small {
                found.push_unless(
                    "add-constraint-scan",
                    Class::B,
                    if world.catalog.is_some() {
                        Level::Error
                    } else {
                        Level::Warning
                    },
                    format!("every table with a column of {name} is scanned while its writers wait, by VALIDATE too"),
                    "those tables are small (--database or --catalog tells)",
                );
            }
        }
        DomainChange::SetDefault => found.push(
            "set-default",
            Class::D,
            Level::Notice,
            format!("INSERTs that leave a column of {name} out write another value"),
        ),
        DomainChange::Loosen | DomainChange::Other => {}
    }
}

fn alter_other(kind: ObjectKind, what: &str, found: &mut Found) {
    if matches!(kind, ObjectKind::View | ObjectKind::MaterializedView)
        && what.contains("TABLESPACE")
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
