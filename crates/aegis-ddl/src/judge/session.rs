//! What a file sets for its session that others meet, and what its SELECTs set.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::name::QualifiedName;
use crate::report::Level;

/// SET session_replication_role.
pub(super) fn replication_role(world: &World<'_>, plain: &str, found: &mut Found) {
    let lower = plain.to_ascii_lowercase();
    if lower.starts_with("set")
        && lower
            .trim_end_matches(['\'', '"', ' '])
            .ends_with("replica")
    {
        fires_nothing(world, found);
    }
}

/// What SELECT sets: a parameter by set_config, a sequence by setval.
pub(super) fn select(world: &World<'_>, calls: &[QualifiedName], plain: &str, found: &mut Found) {
    let lower = plain.to_ascii_lowercase();
    if calls.iter().any(|call| call.name == "set_config")
        && lower.contains("'session_replication_role'")
        // What it is set to may be computed.
        && !["'origin'", "'local'"].iter().any(|value| lower.contains(value))
    {
        fires_nothing(world, found);
    }
    if calls.iter().any(|call| call.name == "setval") && !world.fresh {
        found.push(
            "identity-change",
            Class::D,
            Level::Notice,
            "the next numbers of the sequence are others",
        );
    }
}

fn fires_nothing(world: &World<'_>, found: &mut Found) {
    if world.fresh {
        return;
    }
    found.push(
        "disable-trigger",
        Class::D,
        Level::Error,
        "what this session writes fires no trigger and is checked by no foreign key",
    );
}
