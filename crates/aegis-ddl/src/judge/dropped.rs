//! DROP.

use super::world::World;
use super::{Found, again};
use crate::class::Class;
use crate::form::ObjectKind;
use crate::lock::LockMode;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn judge(
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
    if names.is_empty() {
        // Aggregates, operators and casts are named by their arguments too.
        found.push(
            "drop-object",
            Class::D,
            Level::Error,
            format!(
                "the {} is gone for programs that name it{also}",
                kind.word()
            ),
        );
    }
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
