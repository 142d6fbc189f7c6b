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

/// ALTER VIEW … SET (…), or ALTER TABLE … SET (…) of a view: who may read it, and what may be written through it.
pub(super) fn options(world: &World<'_>, plain: &str, found: &mut Found) {
    let lower = plain.to_ascii_lowercase();
    let (head, options) = match lower.split_once(" set (") {
        Some((head, rest)) => (head, rest.split(')').next().unwrap_or_default()),
        None => return,
    };
    // Of the text as it stands: a name may have large letters.
    let view = plain
        .get(..head.len())
        .and_then(|head| head.split_whitespace().next_back())
        .map(QualifiedName::read);
    let Some(view) = view.filter(|view| world.is_live(view)) else {
        return;
    };
    for option in options.split(',') {
        let (key, value) = option.split_once('=').unwrap_or((option, "true"));
        let value = value.trim().trim_matches('\'');
        let off = matches!(value, "off" | "0")
            || !value.is_empty() && ("false".starts_with(value) || "no".starts_with(value));
        match key.trim() {
            "security_invoker" if off => found.push(
                "revoke",
                Class::D,
                Level::Notice,
                format!("who may read {view} sees what its owner may read"),
            ),
            "security_invoker" => found.push(
                "revoke",
                Class::D,
                Level::Error,
                format!("who may read {view}, and not the tables below it, loses it"),
            ),
            "check_option" => found.push(
                "new-write-restriction",
                Class::D,
                Level::Warning,
                format!("writes through {view} that it would not show are refused from now on"),
            ),
            _ => {}
        }
    }
}
