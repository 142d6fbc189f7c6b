//! Views: what their readers meet.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn create(
    world: &mut World<'_>,
    view: &QualifiedName,
    replace: bool,
    columns: Option<&[String]>,
    found: &mut Found,
) {
    if replace
        && let (Some(old), Some(new)) = (world.view_columns(view), columns)
        && !new.starts_with(&old)
    {
        found.push(
            "replace-view-columns",
            Class::E,
            Level::Error,
            format!(
                "{view} has the columns {}, and the server only adds to their end",
                old.join(", ")
            ),
        );
    }
    if replace && world.is_live(view) && (world.relation(view).is_some() || world.catalog.is_none())
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
    world.said_view(view, columns);
}

/// DROP of a view that is made again below: columns that its readers lose. None: nobody knows them all.
pub(super) fn lost(world: &World<'_>, view: &QualifiedName) -> Option<Vec<String>> {
    let old = world.view_columns(view)?;
    let new = world.view_to_come(view)?;
    Some(old.into_iter().filter(|one| !new.contains(one)).collect())
}
