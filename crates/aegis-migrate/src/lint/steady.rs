//! The expressions of a dual write: one that has another value each time it is asked never agrees with what was written.

use super::{Judged, of_file, place};
use crate::change::{CHANGE_FILE, Change};

/// Expressions of `[sync]` that call a volatile function or a clock.
pub(super) fn moving(change: &Change) -> Vec<Judged> {
    let Some(sync) = &change.sync else {
        return Vec::new();
    };
    let file = format!("{}/{CHANGE_FILE}", change.path);
    let safe = aegis_ddl::rules::find("sync-volatile").map_or("", |rule| rule.safe);
    let sides = [("forward", &sync.forward), ("backward", &sync.backward)];
    let mut told = Vec::new();
    for (side, expressions) in sides {
        for (column, expression) in expressions {
            let Some(call) = aegis_ddl::volatile_call(expression) else {
                continue;
            };
            let line = place::of_key(&file, &format!("[sync.{side}]"), column);
            let said = format!(
                "sync.{side}.{column}: {call} has another value each time, so the two sides never agree"
            );
            told.push(of_file(&file, line, "sync-volatile", &said, safe));
        }
    }
    told
}
