//! ALTER TABLE, action by action.

use super::Found;
use super::types::{self, Effect};
use super::world::World;
use super::{again, column, partition};
use crate::class::Class;
use crate::form::{Action, Constraint, ConstraintKind};
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

/// One ALTER TABLE.
pub(super) fn judge(
    world: &mut World<'_>,
    table: &QualifiedName,
    actions: &[Action],
    transaction: usize,
    found: &mut Found,
) {
    let live = world.is_live(table);
    // The server drops first, wherever in the list it stands.
    for action in actions {
        if let Action::DropConstraint { constraint, .. } = action {
            world.dropped_constraint(table, constraint);
        }
    }
    for action in actions {
        if live {
            one(world, table, action, found);
        }
        remember(world, table, action, transaction);
    }
    if live {
        scan_under_lock(world, table, actions, found);
    }
}

/// VALIDATE beside an action with a stronger lock: all of them hold that lock while it scans.
fn scan_under_lock(
    world: &World<'_>,
    table: &QualifiedName,
    actions: &[Action],
    found: &mut Found,
) {
    let strongest = actions.iter().map(crate::touch::of_action).max();
    let Some(mode) = strongest.filter(|mode| mode.blocks_writes()) else {
        return;
    };
    let level = if world.is_small(table) {
        Level::Notice
    } else {
        Level::Error
    };
    for action in actions {
        if let Action::ValidateConstraint { constraint } = action {
            found.push(
                "validate-in-same-transaction",
                Class::B,
                level,
                format!("{table} is scanned for {constraint} under the {} of another action: split them", mode.sql()),
            );
        }
    }
}

fn remember(world: &mut World<'_>, table: &QualifiedName, action: &Action, transaction: usize) {
    match action {
        Action::AddConstraint { constraint } if constraint.not_valid => {
            world.added_not_valid(table, constraint, transaction);
        }
        Action::ValidateConstraint { constraint } => world.validated(table, constraint),
        Action::AddConstraint { constraint } => match &constraint.kind {
            ConstraintKind::Unique { using_index: None }
            | ConstraintKind::PrimaryKey { using_index: None } => {
                world.said_key(table, &constraint.columns);
            }
            ConstraintKind::Check { .. } => {
                world.said_hung(table);
                if !constraint.not_enforced {
                    world.said_check(table, constraint.name.as_deref(), &constraint.terms);
                }
            }
            _ => {}
        },
        Action::AddColumn { column, .. } => {
            world.said_column(table, &column.name, &column.data_type);
            world.said_not_null(table, &column.name, column.not_null);
            world.added_column(table, &column.name);
        }
        Action::DropColumn { column, .. } | Action::RenameColumn { column, .. } => {
            world.dropped_column(table, column);
        }
        Action::SetType { column, to, .. } => world.said_column(table, column, to),
        Action::SetNotNull { column } => world.said_not_null(table, column, true),
        Action::DropNotNull { column } => world.said_not_null(table, column, false),
        Action::RenameTable { to } => world.renamed(table, to),
        _ => {}
    }
}

fn one(world: &World<'_>, table: &QualifiedName, action: &Action, found: &mut Found) {
    let breaks = |found: &mut Found, rule, message: String| {
        found.push(rule, Class::D, Level::Error, message);
    };
    match action {
        Action::AddColumn {
            column,
            if_not_exists,
        } => column::add(world, table, column, *if_not_exists, found),
        Action::DropColumn { column, .. } => breaks(
            found,
            "drop-column",
            format!("{table}.{column} is gone for programs that name it"),
        ),
        Action::RenameColumn { column, to } => breaks(
            found,
            "rename",
            format!("{table}.{column} is {to} from the next moment on"),
        ),
        Action::RenameTable { .. }
            if world.together && world.comes_again(&again::Made::view(world, table)) =>
        {
            found.push(
                "rename",
                Class::D,
                Level::Warning,
                format!("a view takes the place of {table} below: programs that write through it need one that can be written"),
            );
        }
        Action::RenameTable { to } => breaks(
            found,
            "rename",
            format!("{table} is {to} from the next moment on"),
        ),
        Action::RenameConstraint { .. } => found.push(
            "rename",
            Class::D,
            Level::Notice,
            "programs that name the constraint (ON CONFLICT ON CONSTRAINT, error handling) meet another name",
        ),
        Action::SetSchema => found.push(
            "set-schema",
            Class::D,
            Level::Error,
            format!("{table} is in another schema from the next moment on"),
        ),
        Action::SetType {
            column,
            to,
            using,
            collated,
        } => set_type(world, table, column, to, (*using, *collated), found),
        Action::SetDefault { .. } => found.push(
            "set-default",
            Class::D,
            Level::Notice,
            format!("INSERTs into {table} that leave the column out write another value"),
        ),
        Action::DropDefault { column }
            if world.is_new_column(table, column)
                && world.is_not_null(table, column) == Some(true) =>
        {
            found.push(
                "add-required-column",
                Class::D,
                Level::Error,
                format!("{column} is new, NOT NULL and without a default: INSERTs into {table} that do not know it fail"),
            );
        }
        Action::DropDefault { column }
            if world.comes_again(&again::Made::default(world, table, column)) =>
        {
            found.push(
                "set-default",
                Class::D,
                Level::Notice,
                format!("INSERTs into {table} that leave the column out write another value"),
            );
        }
        Action::DropDefault { column } => found.push(
            "drop-default",
            Class::D,
            Level::Error,
            format!("INSERTs into {table} that leave {column} out write NULL or fail"),
        ),
        Action::SetNotNull { column } => set_not_null(world, table, column, found),
        Action::DropNotNull { .. }
        | Action::SetStatistics
        | Action::SetStorage
        | Action::SetCompression
        | Action::ClusterOn
        | Action::Owner
        | Action::ReplicaIdentity
        | Action::EnableTrigger { .. }
        | Action::Options { .. } => {}
        Action::DropExpression { column } => found.push(
            "drop-default",
            Class::D,
            Level::Error,
            format!("{table}.{column} is no longer computed: programs that do not write it leave NULL"),
        ),
        Action::NoInherit { parent } => breaks(
            found,
            "detach-partition",
            format!("queries on {parent} lose the rows of {table}"),
        ),
        Action::ChangeIdentity {
            column,
            dropped: true,
        } => breaks(
            found,
            "identity-change",
            format!("INSERTs that leave {table}.{column} out fail"),
        ),
        Action::AddIdentity { column } | Action::ChangeIdentity { column, .. } => found.push(
            "identity-change",
            Class::D,
            Level::Warning,
            format!("INSERTs that give {table}.{column}, or leave it out, may fail"),
        ),
        Action::SetExpression { column } => found.push(
            "add-column-rewrite",
            Class::B,
            if world.is_small(table) {
                Level::Notice
            } else {
                Level::Error
            },
            format!("{table} is rewritten for the new expression of {column}"),
        ),
        Action::AddConstraint { constraint } => add_constraint(world, table, constraint, found),
        Action::DropConstraint { constraint, .. } => drop_constraint(world, table, constraint, found),
        Action::ValidateConstraint { constraint } => {
            if let Some(other) = references(world, table, constraint) {
                found.lock(&other, LockMode::RowShare);
            }
            found.long |= !world.is_small(table);
        }
        Action::AlterConstraint {
            constraint,
            enforced,
        } => {
            if *enforced {
                if let Some(other) = references(world, table, constraint) {
                    found.lock(&other, LockMode::ShareRowExclusive);
                }
                found.push(
                    "add-constraint-scan",
                    Class::B,
                    if world.is_small(table) {
                        Level::Notice
                    } else {
                        Level::Error
                    },
                    format!("every row of {table} is checked"),
                );
            }
        }
        Action::AttachPartition { partition, bound } => {
            partition::attach(world, table, partition, bound.as_ref(), found);
        }
        Action::DetachPartition {
            concurrently,
            finalize,
            partition,
        } => {
            let default = world
                .relation(table)
                .and_then(|relation| relation.default_partition.as_ref());
            if *concurrently && let Some(default) = default {
                found.push(
                    "detach-not-concurrent",
                    Class::E,
                    Level::Error,
                    format!("the server refuses it (55000) beside the default partition {default}"),
                );
            }
            if !concurrently && !finalize {
                found.push(
                    "detach-not-concurrent",
                    Class::B,
                    Level::Error,
                    format!("readers and writers of {table} wait"),
                );
            }
            found.push(
                "detach-partition",
                Class::D,
                Level::Warning,
                format!("queries on {table} lose the rows of {partition}"),
            );
        }
        Action::Inherit { parent } => found.push(
            "replace-view",
            Class::D,
            Level::Warning,
            format!("queries on {parent} gain the rows of {table}"),
        ),
        Action::DisableTrigger { name } => breaks(
            found,
            "disable-trigger",
            format!("what {name} keeps up on {table} is no longer kept up"),
        ),
        Action::EnableRowSecurity | Action::ForceRowSecurity => breaks(
            found,
            "row-security",
            format!("roles without a policy see no row of {table}"),
        ),
        Action::DisableRowSecurity => breaks(
            found,
            "row-security",
            format!("every role sees all rows of {table}"),
        ),
        Action::SetLogged { .. } => found.push(
            "set-logged",
            Class::E,
            Level::Error,
            format!("{table} is rewritten"),
        ),
        Action::SetAccessMethod | Action::SetTablespace => found.push(
            "set-storage-place",
            Class::E,
            Level::Error,
            format!("{table} is copied"),
        ),
        Action::Other { what } => found.push(
            "unknown-statement",
            Class::E,
            Level::Error,
            format!("ALTER TABLE … {what} is not known to this release"),
        ),
    }
}

fn set_type(
    world: &World<'_>,
    table: &QualifiedName,
    column: &str,
    to: &crate::form::TypeName,
    (using, collated): (bool, bool),
    found: &mut Found,
) {
    let Some(known) = world.type_of(table, column) else {
        found.push_unless(
            "change-type-rewrite",
            Class::B,
            Level::Error,
            format!("{table} is rewritten, or its indexes are rebuilt, for the new type of {column}"),
            format!("{column} is of a type that {} only widens, and nothing hangs on it (--database or --catalog tells)", to.text),
        );
        return;
    };
    let resolved = world.plain_type(to);
    let to = resolved.as_ref().unwrap_or(to);
    let effect = match types::change(&known, to) {
        _ if using => Effect::Rewrite,
        // Other values are alike, or come in another order.
        Effect::Free if collated => Effect::Indexes,
        effect => effect,
    };
    let small = world.is_small(table);
    let level = if small { Level::Notice } else { Level::Error };
    in_the_way(world, table, column, found);
    if effect != Effect::Free && !small {
        foreign_keys(world, table, column, found);
    }
    match effect {
        Effect::Free if world.catalog.is_none() => {
            if world.may_be_hung(table) {
                found.push_unless(
                    "change-type-index",
                    Class::B,
                    Level::Warning,
                    format!("a CHECK, or an index on an expression, of {table}.{column} is checked or built again"),
                    "none hangs on it (--database or --catalog tells)",
                );
            }
        }
        Effect::Free => {
            hangs_on(world, table, column, found);
            // The indexes of partitions are built anew even then (measured).
            let partitioned = world
                .relation(table)
                .is_some_and(|relation| relation.partition_key.is_some());
            if partitioned && !is_unindexed(world, table, column) && !small {
                found.push(
                    "change-type-index",
                    Class::B,
                    Level::Error,
                    format!("the indexes of the partitions of {table} on {column} are rebuilt"),
                );
            }
        }
        Effect::Indexes if is_unindexed(world, table, column) => {
            hangs_on(world, table, column, found);
        }
        Effect::Indexes => found.push(
            "change-type-index",
            Class::B,
            level,
            format!("the indexes on {table}.{column} are rebuilt"),
        ),
        Effect::Rewrite => found.push(
            "change-type-rewrite",
            Class::B,
            level,
            format!("{table} is rewritten: {known} to {}", to.text),
        ),
    }
    if types::narrower(&known, to) {
        found.push(
            "change-type-narrower",
            Class::D,
            Level::Error,
            format!("programs may write {known} that is no {}", to.text),
        );
    }
}

/// Whether the catalog says that no index names the column.
fn is_unindexed(world: &World<'_>, table: &QualifiedName, column: &str) -> bool {
    let name = world.name(table);
    world.catalog.is_some_and(|catalog| {
        !catalog.indexes_of(&name).any(|index| {
            index
                .keys
                .iter()
                .any(|key| key.column.as_deref() == Some(column) || key.expression.contains(column))
                || index.include.iter().any(|one| one == column)
        })
    })
}

/// Views, rules, policies and the like for which the server refuses a change of the column's type; foreign keys that point at it.
fn in_the_way(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    use aegis_catalog::DependentKind;
    let Some(catalog) = world.catalog else { return };
    let name = world.name(table);
    let dependents = catalog.dependents(&name, Some(column));
    let refusing: Vec<String> = dependents
        .iter()
        .filter(|one| {
            matches!(
                one.kind,
                DependentKind::View
                    | DependentKind::Rule
                    | DependentKind::Policy
                    | DependentKind::Trigger
            )
        })
        .chain(dependents.iter().filter(|one| {
            // A generated column that names it.
            one.kind == DependentKind::Expression
                && one.part.as_deref().is_some_and(|part| {
                    part != column
                        && world
                            .column(table, part)
                            .is_some_and(|other| other.generated != aegis_catalog::Generated::No)
                })
        }))
        .map(|one| match &one.part {
            Some(part) => format!("{part} of {}", one.dependent),
            None => one.dependent.to_string(),
        })
        .collect();
    if !refusing.is_empty() {
        found.push(
            "dependent-in-the-way",
            Class::E,
            Level::Error,
            format!(
                "the server refuses it (0A000) while {} names {table}.{column}",
                refusing.join(", ")
            ),
        );
    }
}

/// Foreign keys on the column, of this table and of others: they are checked again when the values are compared in another way.
fn foreign_keys(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    let Some(catalog) = world.catalog else { return };
    let name = world.name(table);
    for one in catalog.constraints.iter().filter(|one| {
        let of_this = one.table == name
            && one.references.is_some()
            && one.columns.iter().any(|one| one == column);
        let at_this = one.references.as_ref() == Some(&name)
            && one.referenced_columns.iter().any(|one| one == column);
        of_this || at_this
    }) {
        found.push(
            "change-type-index",
            Class::B,
            Level::Error,
            format!("{} of {} is checked again", one.name, one.table),
        );
    }
}

/// What hangs on a column makes even a free change of its type a scan, a rebuild or an error.
fn hangs_on(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    let Some(catalog) = world.catalog else { return };
    let name = world.name(table);
    let checks = catalog
        .constraints
        .iter()
        .filter(|one| one.table == name && one.definition.starts_with("CHECK"))
        .filter(|one| one.columns.iter().any(|other| other == column));
    let expressions = catalog.indexes.iter().filter(|one| {
        one.table == name
            && (one
                .keys
                .iter()
                .any(|key| key.column.is_none() && key.expression.contains(column))
                || one
                    .predicate
                    .as_ref()
                    .is_some_and(|predicate| predicate.contains(column)))
    });
    let parts: Vec<String> = checks
        .map(|one| format!("CHECK {}", one.name))
        .chain(expressions.map(|one| format!("index {}", one.name.name)))
        .collect();
    if !parts.is_empty() && !world.is_small(table) {
        found.push(
            "change-type-index",
            Class::B,
            Level::Error,
            format!(
                "{} hang on {table}.{column} and are checked or built again",
                parts.join(", ")
            ),
        );
    }
}

fn set_not_null(world: &World<'_>, table: &QualifiedName, column: &str, found: &mut Found) {
    if !world.is_proven(table, column) && world.is_not_null(table, column) == Some(true) {
        return;
    }
    if world.is_proven(table, column) {
        found.push(
            "set-not-null",
            Class::D,
            Level::Notice,
            format!("a valid CHECK on {table}.{column} says so already"),
        );
        return;
    }
    if !world.is_small(table) {
        let message = format!("every row of {table} is checked for {column}");
        if world.may_be_proven() {
            found.push_unless(
                "set-not-null-scan",
                Class::B,
                Level::Error,
                message,
                format!(
                    "a valid CHECK ({column} IS NOT NULL) is there (--database or --catalog tells)"
                ),
            );
        } else {
            found.push("set-not-null-scan", Class::B, Level::Error, message);
        }
    }
    found.push(
        "set-not-null",
        Class::D,
        Level::Error,
        format!("INSERTs that leave {table}.{column} NULL fail"),
    );
}

fn add_constraint(
    world: &World<'_>,
    table: &QualifiedName,
    constraint: &Constraint,
    found: &mut Found,
) {
    let restricts = |found: &mut Found| {
        found.push(
            "new-write-restriction",
            Class::D,
            Level::Warning,
            format!("writes of {table} that break it are refused from now on"),
        );
    };
    // A foreign key is not inherited.
    let small = match constraint.kind {
        ConstraintKind::ForeignKey { .. } => world.is_small_alone(table),
        _ => world.is_small(table),
    };
    let scan = |found: &mut Found, what: &str| {
        let level = if small { Level::Notice } else { Level::Error };
        found.push(
            "add-constraint-scan",
            Class::B,
            level,
            format!("every row of {table} is {what}"),
        );
    };
    let since = |found: &mut Found, what: &str, major: u32| {
        if world.server < major {
            found.push(
                "unknown-statement",
                Class::E,
                Level::Error,
                format!(
                    "{what} begins with {major}, and the server is {}",
                    world.server
                ),
            );
        }
    };
    if constraint.not_enforced {
        since(found, "NOT ENFORCED", 18);
    }
    if constraint.nulls_not_distinct {
        since(found, "NULLS NOT DISTINCT", 15);
    }
    match &constraint.kind {
        ConstraintKind::Check { .. } => {
            if !constraint.not_valid && !constraint.not_enforced {
                scan(found, "checked under ACCESS EXCLUSIVE");
            }
            if !constraint.not_enforced {
                restricts(found);
            }
        }
        ConstraintKind::NotNull { column } => {
            if constraint.not_valid && world.server < 18 {
                found.push(
                    "unknown-statement",
                    Class::E,
                    Level::Error,
                    format!("NOT NULL … NOT VALID begins with 18, and the server is {}", world.server),
                );
            } else if constraint.not_valid {
                restricts(found);
            } else {
                set_not_null(world, table, column, found);
            }
        }
        ConstraintKind::ForeignKey { references } => {
            found.lock(references, LockMode::ShareRowExclusive);
            if !constraint.not_valid && !constraint.not_enforced {
                scan(
                    found,
                    &format!("looked up in {references} while writers of both wait"),
                );
            }
            if constraint.not_valid && world.is_partitioned(table) && world.server < 18 {
                found.push(
                    "unknown-statement",
                    Class::E,
                    Level::Error,
                    format!("{table} is partitioned: a foreign key on it can be NOT VALID from 18 on (42809)"),
                );
            }
            if !constraint.not_enforced {
                restricts(found);
            }
        }
        ConstraintKind::Unique { using_index } => {
            if using_index.is_some() {
                found.push(
                    "new-write-restriction",
                    Class::D,
                    Level::Notice,
                    "its unique index refuses duplicates already",
                );
            } else {
                found.push(
                    "add-unique",
                    Class::B,
                    if world.is_small_alone(table) { Level::Notice } else { Level::Error },
                    format!("its index is built while readers and writers of {table} wait"),
                );
                restricts(found);
            }
        }
        ConstraintKind::PrimaryKey { using_index } => {
            if let Some(index) = using_index {
                primary_key_using(world, table, index, found);
            } else {
                found.push(
                    "add-primary-key",
                    Class::B,
                    if world.is_small_alone(table) { Level::Notice } else { Level::Error },
                    format!("its index is built while readers and writers of {table} wait"),
                );
                restricts(found);
            }
        }
        ConstraintKind::Exclude => found.push(
            "add-exclusion",
            Class::E,
            Level::Error,
            format!("its index is built while readers and writers of {table} wait, and there is no online form"),
        ),
        ConstraintKind::Other => found.push(
            "unknown-statement",
            Class::E,
            Level::Error,
            "this kind of constraint is not known to this release",
        ),
    }
}

/// Columns of a primary key become NOT NULL: a scan, unless they are.
fn primary_key_using(world: &World<'_>, table: &QualifiedName, index: &str, found: &mut Found) {
    let name = aegis_catalog::Name::new(world.name(table).schema, index);
    let Some(known) = world.catalog.and_then(|catalog| catalog.index(&name)) else {
        found.push_unless(
            "set-not-null-scan",
            Class::B,
            Level::Notice,
            format!("columns that are not NOT NULL yet are checked in every row of {table}"),
            "all columns of the index are NOT NULL",
        );
        return;
    };
    let nullable: Vec<&str> = known
        .keys
        .iter()
        .filter_map(|key| key.column.as_deref())
        .filter(|column| {
            world.is_not_null(table, column) != Some(true) && !world.is_proven(table, column)
        })
        .collect();
    if !nullable.is_empty() && !world.is_small(table) {
        found.push(
            "set-not-null-scan",
            Class::B,
            Level::Error,
            format!(
                "{} may be NULL: every row of {table} is checked under ACCESS EXCLUSIVE",
                nullable.join(", ")
            ),
        );
    }
}

fn references(world: &World<'_>, table: &QualifiedName, constraint: &str) -> Option<QualifiedName> {
    let name = world.name(table);
    let other = world
        .catalog?
        .constraints
        .iter()
        .find(|one| one.table == name && one.name == constraint)?
        .references
        .clone()?;
    Some(QualifiedName {
        schema: Some(other.schema),
        name: other.name,
    })
}

fn drop_constraint(world: &World<'_>, table: &QualifiedName, constraint: &str, found: &mut Found) {
    if let Some(other) = references(world, table, constraint) {
        found.lock(&other, LockMode::AccessExclusive);
    }
    // A CHECK that the set made to prove NOT NULL, or that nobody relied on yet.
    if world.is_scaffold(table, constraint) {
        return;
    }
    let made = again::Made::constraint(world, table, constraint);
    if world.comes_again(&made) {
        found.push(
            "drop-constraint",
            Class::D,
            Level::Warning,
            format!("until it is made again, what {constraint} kept true of {table} does not hold"),
        );
        return;
    }
    let is_check = world.catalog.is_some_and(|catalog| {
        let name = world.name(table);
        catalog.constraints.iter().any(|one| {
            one.table == name && one.name == constraint && one.definition.starts_with("CHECK")
        })
    });
    let level = if is_check {
        Level::Notice
    } else {
        Level::Error
    };
    found.push(
        "drop-constraint",
        Class::D,
        level,
        format!("what {constraint} kept true of {table} no longer holds"),
    );
}
