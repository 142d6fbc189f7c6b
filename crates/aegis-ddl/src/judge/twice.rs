//! What the set makes though it made it before: the server refuses the second one. A table, an index, a column, a constraint and the
//! like, each without IF NOT EXISTS or OR REPLACE.
//!
//! Invariants: only statements that stand by themselves count; what a block or a function does may depend on anything, so after one
//! nothing is known to stand.

use aegis_catalog::Name;

use super::Found;
use super::world::{Thing, World};
use crate::class::Class;
use crate::form::{Action, ConstraintKind, CreateTable, Form, ObjectKind};
use crate::name::QualifiedName;
use crate::report::Level;
use crate::statement::Statement;

/// Something that a statement makes.
struct Made {
    thing: Thing,
    /// The table with which it goes: whose index, partition or own sequence it is.
    of: Option<Name>,
    /// IF NOT EXISTS, OR REPLACE: one that is there is no failure.
    lenient: bool,
}

/// One statement that stands by itself, after it was judged.
pub(super) fn judge(world: &mut World<'_>, statement: &Statement, sure: Level, found: &mut Found) {
    if world.is_contract() {
        late(world, statement);
    }
    if sets_path(statement) {
        world.searches_unread();
        world.forgets_what_stands();
    }
    if forgets(world, statement, found) || !world.knows_its_path() {
        world.forgets_what_stands();
        return;
    }
    take_away(world, statement);
    let is_of_session = is_temporary(statement);
    for made in made_by(world, statement) {
        if let (Thing::Relation(name), true) = (&made.thing, is_of_session) {
            world.made_temporary(name.clone());
        }
        if is_of_session || world.is_temporary(&made.thing, made.of.as_ref()) {
            continue;
        }
        let stands = world.stands(&made.thing);
        if let (Some(same_file), false) = (stands, made.lenient) {
            let (what, code) = made.thing.told();
            // A plain folder may hold files that never run one after another.
            let level = if same_file { Level::Error } else { sure };
            found.push(
                "already-there",
                Class::E,
                level,
                format!("{what} was made before, and the server refuses a second one ({code})"),
            );
        }
        if stands.is_none() && world.waits_for_contract(&made.thing) {
            until_contract(&made, found);
        }
        // A shell announces the type that is made then.
        let announces = matches!(made.thing, Thing::Type(_)) && is_shell(statement);
        if !announces && (stands.is_none() || !made.lenient) {
            world.made_thing(made.thing, made.of);
        }
    }
}

/// What a contract takes away: changes that were written later may run before it.
fn late(world: &mut World<'_>, statement: &Statement) {
    match &statement.form {
        Form::Drop {
            kind, names, on, ..
        } => {
            for name in names {
                let thing = thing_of(world, *kind, name, on.as_ref());
                world.stays_until_contract(thing);
            }
        }
        Form::AlterTable { table, actions } => {
            let table = world.name(table);
            for action in actions {
                let thing = match action {
                    Action::DropColumn { column, .. } => {
                        Thing::Column(table.clone(), column.clone())
                    }
                    Action::DropConstraint { constraint, .. } => {
                        Thing::Constraint(table.clone(), constraint.clone())
                    }
                    _ => continue,
                };
                world.stays_until_contract(thing);
            }
        }
        _ => {}
    }
}

/// Nobody knows here whether the contract ran: it is only to be known.
fn until_contract(made: &Made, found: &mut Found) {
    let (what, code) = made.thing.told();
    let said = if made.lenient {
        format!(
            "{what} is there until the contract of an earlier change takes it away, and is not made anew before"
        )
    } else {
        format!(
            "{what} is there until the contract of an earlier change takes it away, and the server refuses a second one before ({code})"
        )
    };
    found.push_unless(
        "already-there",
        Class::E,
        Level::Notice,
        said,
        "that contract ran",
    );
}

/// Whether it sets search_path by a function. An empty one, as pg_dump writes it, lets no name stand without its schema.
fn sets_path(statement: &Statement) -> bool {
    let Form::Select { calls, .. } = &statement.form else {
        return false;
    };
    let lower = statement.plain.to_ascii_lowercase();
    calls.iter().any(|call| call.name == "set_config")
        && lower.contains("search_path")
        && !lower.contains("set_config('search_path', '', ")
}

/// Whether things may be gone or moved after it that nobody can name.
fn forgets(world: &World<'_>, statement: &Statement, found: &Found) -> bool {
    if !found.unread.is_empty() || world.ran_a_body() {
        return true;
    }
    match &statement.form {
        Form::Do { .. } | Form::Call { .. } | Form::Other { .. } => true,
        Form::Set { name, .. } => matches!(name.as_str(), "search_path" | "all"),
        Form::CreateOther { what } => what.starts_with("DISCARD"),
        Form::TransactionControl { what } => {
            what.starts_with("ROLLBACK") || what.starts_with("ABORT")
        }
        Form::Drop { kind, cascade, .. } => {
            *cascade
                || matches!(
                    kind,
                    ObjectKind::Schema | ObjectKind::Extension | ObjectKind::Other
                )
        }
        Form::Rename { kind, .. } => *kind == ObjectKind::Schema,
        Form::AlterTable { actions, .. } => actions.iter().any(|action| {
            matches!(
                action,
                Action::DropColumn { cascade: true, .. }
                    | Action::DropConstraint { cascade: true, .. }
                    | Action::Other { .. }
            )
        }),
        _ => false,
    }
}

/// What a statement takes away or gives another name.
fn take_away(world: &mut World<'_>, statement: &Statement) {
    match &statement.form {
        Form::Drop {
            kind, names, on, ..
        } => {
            for name in names {
                take_one(world, *kind, name, on.as_ref());
            }
        }
        Form::DropIndex { indexes, .. } => {
            for index in indexes {
                take_one(world, ObjectKind::Index, index, None);
            }
        }
        // Its other name is not read, nor which one it had.
        Form::Rename {
            kind: ObjectKind::Trigger | ObjectKind::Policy,
            on: Some(table),
            ..
        }
        | Form::AlterPolicy { table } => {
            let table = world.name(table);
            world.took_triggers_and_policies(&table);
        }
        Form::AlterSequence { name } if statement.sequence.owned_by.is_some() => {
            take_one(world, ObjectKind::Sequence, name, None);
        }
        Form::Rename { kind, name, on } => take_one(world, *kind, name, on.as_ref()),
        Form::SetSchema { kind, name } => take_one(world, *kind, name, None),
        Form::AlterTable { table, actions } => {
            for action in actions {
                take_action(world, table, action);
            }
        }
        _ => {}
    }
}

fn take_one(
    world: &mut World<'_>,
    kind: ObjectKind,
    name: &QualifiedName,
    on: Option<&QualifiedName>,
) {
    let thing = thing_of(world, kind, name, on);
    world.took(&thing);
}

fn thing_of(
    world: &World<'_>,
    kind: ObjectKind,
    name: &QualifiedName,
    on: Option<&QualifiedName>,
) -> Thing {
    match (kind, on) {
        (ObjectKind::Trigger, Some(on)) => Thing::Trigger(world.name(on), name.name.clone()),
        (ObjectKind::Policy, Some(on)) => Thing::Policy(world.name(on), name.name.clone()),
        (ObjectKind::Type | ObjectKind::Domain, _) => Thing::Type(world.name(name)),
        _ => Thing::Relation(world.name(name)),
    }
}

fn take_action(world: &mut World<'_>, table: &QualifiedName, action: &Action) {
    let name = world.name(table);
    match action {
        Action::DropColumn { column, .. } => {
            world.took(&Thing::Column(name.clone(), column.clone()));
            world.took_what_hangs_on(&name);
        }
        Action::RenameColumn { column, .. } => {
            world.took(&Thing::Column(name, column.clone()));
        }
        Action::DropConstraint { constraint, .. } | Action::RenameConstraint { constraint } => {
            world.took(&Thing::Relation(Name::new(
                name.schema.clone(),
                constraint.clone(),
            )));
            world.took(&Thing::Constraint(name.clone(), constraint.clone()));
            world.took(&Thing::PrimaryKey(name));
        }
        Action::AddConstraint { constraint } => {
            if let ConstraintKind::Unique {
                using_index: Some(index),
            }
            | ConstraintKind::PrimaryKey {
                using_index: Some(index),
            } = &constraint.kind
            {
                // It gets the name of the constraint.
                world.took(&Thing::Relation(Name::new(name.schema, index.clone())));
            }
        }
        Action::AttachPartition { partition, .. } => {
            let partition = Thing::Relation(world.name(partition));
            world.goes_with(&partition, name);
        }
        Action::SetSchema => world.took(&Thing::Relation(name)),
        _ => {}
    }
}

/// What a statement makes.
fn made_by(world: &mut World<'_>, statement: &Statement) -> Vec<Made> {
    let relation = |world: &World<'_>, name: &QualifiedName, lenient| Made {
        thing: Thing::Relation(world.name(name)),
        of: None,
        lenient,
    };
    let if_not_exists = super::objects::says_if_not_exists(&statement.plain);
    match &statement.form {
        Form::CreateTable(table) => of_table(world, table),
        Form::CreateTableAs { table: name } | Form::CreateMaterializedView { view: name, .. } => {
            vec![relation(world, name, if_not_exists)]
        }
        Form::CreateSequence { name } => vec![Made {
            of: statement
                .sequence
                .owned_by
                .as_ref()
                .map(|of| world.name(of)),
            ..relation(world, name, if_not_exists)
        }],
        Form::CreateView { view, replace, .. } => vec![relation(world, view, *replace)],
        Form::CreateIndex(index) => index.index.as_ref().map_or_else(Vec::new, |name| {
            let table = world.name(&index.table);
            vec![Made {
                thing: Thing::Relation(Name::new(table.schema.clone(), &*name.name)),
                of: Some(table),
                lenient: index.if_not_exists,
            }]
        }),
        Form::CreateType { name, .. } | Form::CreateDomain { name, .. } => {
            plain(Thing::Type(world.name(name)))
        }
        Form::CreateSchema { name } if !name.is_empty() => vec![Made {
            thing: Thing::Schema(name.clone()),
            of: None,
            lenient: if_not_exists,
        }],
        Form::CreateTrigger {
            name,
            table,
            replace,
        } => vec![Made {
            thing: Thing::Trigger(world.name(table), name.clone()),
            of: None,
            lenient: *replace,
        }],
        Form::CreatePolicy { name, table } => plain(Thing::Policy(world.name(table), name.clone())),
        Form::AlterTable { table, actions } => {
            let mut made = Vec::new();
            for action in actions {
                made.extend(of_action(world, table, action));
            }
            made
        }
        _ => Vec::new(),
    }
}

/// CREATE TYPE with a name and nothing more.
fn is_shell(statement: &Statement) -> bool {
    let text = crate::read::pieces::outside_of_strings(&statement.plain);
    let is_type = matches!(statement.form, Form::CreateType { .. });
    is_type && !text.contains('(') && !text.contains(" AS ")
}

fn plain(thing: Thing) -> Vec<Made> {
    vec![Made {
        thing,
        of: None,
        lenient: false,
    }]
}

fn of_table(world: &World<'_>, table: &CreateTable) -> Vec<Made> {
    let name = world.name(&table.table);
    let mut made = vec![Made {
        thing: Thing::Relation(name.clone()),
        of: table.partition_of.as_ref().map(|parent| world.name(parent)),
        lenient: table.if_not_exists,
    }];
    if table.if_not_exists {
        // A table that was there may have other parts.
        return made;
    }
    for column in &table.columns {
        made.extend(plain(Thing::Column(name.clone(), column.name.clone())));
    }
    for constraint in &table.constraint_names {
        made.extend(plain(Thing::Constraint(name.clone(), constraint.clone())));
    }
    if table.has_primary_key {
        made.extend(plain(Thing::PrimaryKey(name)));
    }
    made
}

fn of_action(world: &mut World<'_>, table: &QualifiedName, action: &Action) -> Vec<Made> {
    let name = world.name(table);
    match action {
        Action::AddColumn {
            column,
            if_not_exists,
        } => {
            let mut made = vec![Made {
                thing: Thing::Column(name.clone(), column.name.clone()),
                of: None,
                lenient: *if_not_exists,
            }];
            if column.primary && !if_not_exists {
                made.extend(plain(Thing::PrimaryKey(name)));
            }
            made
        }
        Action::RenameColumn { to, .. } => plain(Thing::Column(name, to.clone())),
        Action::RenameTable { to } => {
            let to = Name::new(name.schema.clone(), &**to);
            if world.is_temporary(&Thing::Relation(name.clone()), None) {
                world.made_temporary(to);
                return Vec::new();
            }
            if world.stands(&Thing::Relation(to.clone())).is_some() {
                return plain(Thing::Relation(to));
            }
            world.moved_table(&name, &to);
            vec![Made {
                thing: Thing::Relation(to),
                of: None,
                lenient: true,
            }]
        }
        Action::AddConstraint { constraint } => {
            let mut made = Vec::new();
            if matches!(constraint.kind, ConstraintKind::PrimaryKey { .. }) {
                made.extend(plain(Thing::PrimaryKey(name.clone())));
            }
            let Some(named) = &constraint.name else {
                return made;
            };
            made.extend(plain(Thing::Constraint(name.clone(), named.clone())));
            let has_index = matches!(
                constraint.kind,
                ConstraintKind::Unique { .. }
                    | ConstraintKind::PrimaryKey { .. }
                    | ConstraintKind::Exclude
            );
            if has_index {
                made.push(Made {
                    thing: Thing::Relation(Name::new(name.schema.clone(), &**named)),
                    of: Some(name),
                    lenient: false,
                });
            }
            made
        }
        _ => Vec::new(),
    }
}

/// Whether what it makes is of this session, in a schema of its own.
fn is_temporary(statement: &Statement) -> bool {
    let words: Vec<String> = statement
        .plain
        .split_whitespace()
        .map(str::to_ascii_uppercase)
        .collect();
    let is_word = |word: &String| word == "TEMP" || word == "TEMPORARY";
    let into = words.iter().position(|word| word == "INTO");
    words.iter().take(4).any(is_word)
        || matches!(statement.form, Form::CreateTableAs { .. })
            && into.is_some_and(|at| words[at..].iter().skip(1).take(2).any(is_word))
}
