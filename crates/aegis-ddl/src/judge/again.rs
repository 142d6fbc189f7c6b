//! What a file drops and makes again: a trigger, a policy, a view, a function, a constraint. The version before meets the new one, and
//! nobody misses the old one for longer than the transaction.

use std::collections::BTreeMap;

use aegis_catalog::Name;

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{Action, Form, ObjectKind};
use crate::name::QualifiedName;
use crate::report::Level;
use crate::statement::Statement;

/// Something that a statement makes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Made {
    kind: ObjectKind,
    name: Name,
    /// Its table.
    on: Option<Name>,
}

impl Made {
    /// The default of a column.
    pub(super) fn default(world: &World<'_>, table: &QualifiedName, column: &str) -> Self {
        Self::on(world, ObjectKind::Column, column, table)
    }

    /// A trigger that fires again.
    pub(super) fn enabled(world: &World<'_>, table: &QualifiedName, trigger: &str) -> Self {
        Self::on(world, ObjectKind::Other, trigger, table)
    }

    /// A view in the place of a table.
    pub(super) fn view(world: &World<'_>, name: &QualifiedName) -> Self {
        Self::alone(world, ObjectKind::View, name)
    }

    pub(super) fn constraint(world: &World<'_>, table: &QualifiedName, name: &str) -> Self {
        Self::on(world, ObjectKind::Constraint, name, table)
    }

    fn on(world: &World<'_>, kind: ObjectKind, name: &str, table: &QualifiedName) -> Self {
        Self {
            kind,
            name: Name::new("", name),
            on: Some(world.name(table)),
        }
    }

    fn alone(world: &World<'_>, kind: ObjectKind, name: &QualifiedName) -> Self {
        Self {
            kind,
            name: world.name(name),
            on: None,
        }
    }

    /// What DROP names.
    pub(super) fn dropped(
        world: &World<'_>,
        kind: ObjectKind,
        name: &QualifiedName,
        on: Option<&QualifiedName>,
    ) -> Self {
        match on {
            Some(table) => Self::on(world, kind, &name.name, table),
            None => Self::alone(world, kind, name),
        }
    }
}

/// What statements make, and how often.
pub(super) fn made_by(statements: &[Statement], world: &World<'_>) -> BTreeMap<Made, usize> {
    let mut made = BTreeMap::new();
    collect(statements, world, &mut made);
    made
}

fn collect(statements: &[Statement], world: &World<'_>, made: &mut BTreeMap<Made, usize>) {
    use ObjectKind as O;
    let mut add = |one: Made| *made.entry(one).or_default() += 1;
    for statement in statements {
        match &statement.form {
            Form::CreateTrigger { name, table, .. } => {
                add(Made::on(world, O::Trigger, name, table));
            }
            Form::CreateRule { name, table } => add(Made::on(world, O::Rule, name, table)),
            Form::CreatePolicy { name, table } => add(Made::on(world, O::Policy, name, table)),
            Form::CreateView { view, .. } => add(Made::alone(world, O::View, view)),
            Form::CreateFunction { name, .. } => add(Made::alone(world, O::Function, name)),
            Form::AlterTable { table, actions } => {
                for action in actions {
                    if let Action::EnableTrigger { name } = action {
                        add(Made::enabled(world, table, name));
                    }
                    if let Action::SetDefault { column, .. } = action {
                        add(Made::default(world, table, column));
                    }
                    if let Action::AddConstraint { constraint } = action
                        && let Some(name) = &constraint.name
                    {
                        add(Made::constraint(world, table, name));
                    }
                }
            }
            _ => {}
        }
    }
    for statement in statements {
        if let Form::Do { body } = &statement.form {
            collect(&body.statements, world, made);
        }
    }
}

/// The columns of the views that statements make; the last one of a name counts.
pub(super) fn views_of(statements: &[Statement], world: &World<'_>) -> BTreeMap<Name, Vec<String>> {
    statements
        .iter()
        .filter_map(|statement| match &statement.form {
            Form::CreateView {
                view,
                columns: Some(columns),
                ..
            } => Some((world.name(view), columns.clone())),
            _ => None,
        })
        .collect()
}

/// Constraints that statements drop, by table.
pub(super) fn drops_of(statements: &[Statement], world: &World<'_>) -> BTreeMap<Name, Vec<String>> {
    let mut drops: BTreeMap<Name, Vec<String>> = BTreeMap::new();
    for statement in statements {
        if let Form::AlterTable { table, actions } = &statement.form {
            for action in actions {
                if let Action::DropConstraint { constraint, .. } = action {
                    let of = drops.entry(world.name(table)).or_default();
                    of.push(constraint.clone());
                }
            }
        }
    }
    drops
}

/// What a DROP of something that comes again says. False: it is judged as every other DROP.
pub(super) fn judge(
    world: &World<'_>,
    kind: ObjectKind,
    name: &QualifiedName,
    on: Option<&QualifiedName>,
    found: &mut Found,
) -> bool {
    if !world.together || !world.comes_again(&Made::dropped(world, kind, name, on)) {
        return false;
    }
    if kind == ObjectKind::View
        && let Some(lost) = super::view::lost(world, name)
        && !lost.is_empty()
    {
        found.push(
            "replace-view",
            Class::D,
            Level::Error,
            format!("readers of {name} lose {}", lost.join(", ")),
        );
        return true;
    }
    let rule = match kind {
        ObjectKind::Trigger | ObjectKind::Rule => "create-trigger",
        ObjectKind::Policy => "alter-policy",
        ObjectKind::View => "replace-view",
        ObjectKind::Function => "replace-function",
        _ => return false,
    };
    found.push(
        rule,
        Class::D,
        Level::Warning,
        format!(
            "the {} {name} is made again below: programs meet the new one, and for a moment none when the file is not one transaction",
            kind.word()
        ),
    );
    true
}
