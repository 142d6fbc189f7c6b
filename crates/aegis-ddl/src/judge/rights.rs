//! REVOKE: whose rights go. Of what the file itself makes nobody has any yet.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::name::QualifiedName;
use crate::report::Level;

pub(super) fn revoke(world: &World<'_>, plain: &str, found: &mut Found) {
    if is_of_new_objects(world, plain) == Some(true) {
        return;
    }
    found.push(
        "revoke",
        Class::D,
        Level::Error,
        "programs of the version before lose a right",
    );
}

/// Whether each object that `REVOKE … ON … FROM` names was made by this file. None: the text is of another form.
fn is_of_new_objects(world: &World<'_>, plain: &str) -> Option<bool> {
    let upper = plain.to_ascii_uppercase();
    let (start, end) = (upper.find(" ON ")? + 4, upper.rfind(" FROM ")?);
    let objects = plain.get(start..end)?.trim();
    let (kind, names) = match objects.split_once(' ') {
        Some((word, rest)) => (word.to_ascii_uppercase(), rest),
        None => (String::new(), objects),
    };
    let is_new = |name: &str| {
        let name = QualifiedName::read(name.split('(').next().unwrap_or_default().trim());
        match kind.as_str() {
            "FUNCTION" | "PROCEDURE" | "ROUTINE" => world.is_new_function(&name),
            "SCHEMA" => world.is_new_schema(&name.name),
            "TYPE" | "DOMAIN" => world.is_new_type(&name),
            _ => !world.is_live(&name),
        }
    };
    match kind.as_str() {
        "ALL" | "DATABASE" | "LANGUAGE" | "LARGE" | "FOREIGN" | "PARAMETER" | "TABLESPACE" => {
            Some(false)
        }
        "TABLE" | "SEQUENCE" | "FUNCTION" | "PROCEDURE" | "ROUTINE" | "SCHEMA" | "TYPE"
        | "DOMAIN" => Some(listed(names).iter().all(|name| is_new(name))),
        _ => Some(listed(objects).iter().all(|name| is_new(name))),
    }
}

/// Names between commas that stand in no brackets.
fn listed(text: &str) -> Vec<&str> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    names.push(&text[start..]);
    names
}
