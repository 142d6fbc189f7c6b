//! Whether a default gives each row the same value, so that the server can store it once instead of rewriting the table.
//! What the servers' own functions are is generated from their pg_proc (`facts/functions.txt`); those of the usual extensions are
//! written here. What stands in neither is not known, and counts as volatile without a catalog.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::world::World;
use crate::form::{Expression, Form};
use crate::name::QualifiedName;

/// Generated: a letter and a name on each line.
static SERVERS: LazyLock<HashMap<&'static str, bool>> = LazyLock::new(|| {
    include_str!("../../facts/functions.txt")
        .lines()
        .filter_map(|line| {
            let (letter, name) = line.split_once(' ')?;
            // Mixed are two: timezone(), volatile of a timetz only, and ts_rewrite(), volatile of a query only.
            (letter != "#").then_some((name, letter == "v"))
        })
        .collect()
});

/// Functions of extensions whose value differs from row to row: pgcrypto, uuid-ossp, pgulid and the like.
const VOLATILE: &[&str] = &[
    "gen_random_bytes",
    "gen_ulid",
    "generate_ulid",
    "nanoid",
    "uuid_generate_v1",
    "uuid_generate_v1mc",
    "uuid_generate_v4",
    "uuid_generate_v7",
];

/// Functions of extensions that have one value in a statement: pgcrypto, uuid-ossp, unaccent, hstore, PostGIS; and words of the
/// language that stand in no pg_proc.
const STEADY: &[&str] = &[
    "coalesce",
    "digest",
    "greatest",
    "hmac",
    "hstore",
    "least",
    "nullif",
    "st_geomfromtext",
    "st_makepoint",
    "st_setsrid",
    "unaccent",
    "uuid_generate_v3",
    "uuid_generate_v5",
    "uuid_nil",
];

/// Functions of the server that are steady within one statement, and other ones in the next.
const OF_THE_MOMENT: &[&str] = &[
    "clock_timestamp",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "now",
    "statement_timestamp",
    "transaction_timestamp",
];

/// Those that stand without brackets: the others are columns then.
const WITHOUT_BRACKETS: &[&str] = &[
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
];

/// What an expression calls or names that has another value at another time: a volatile function of the server or of a usual
/// extension, or a clock. None: it has none, or nobody knows.
pub fn volatile_call(expression: &str) -> Option<String> {
    let script = crate::read(&format!("SELECT {expression}")).ok()?;
    let statement = script.statements.first()?;
    let Form::Select { calls, .. } = &statement.form else {
        return None;
    };
    let is_moving = |call: &&QualifiedName| {
        let name = call.name.as_str();
        SERVERS.get(name) == Some(&true)
            || VOLATILE.contains(&name)
            || OF_THE_MOMENT.contains(&name)
    };
    if let Some(call) = calls.iter().find(is_moving) {
        return Some(format!("{call}()"));
    }
    // Words of the language, without brackets.
    let text = crate::read::pieces::outside_of_strings(&statement.plain);
    let is_of_word = |one: char| one.is_alphanumeric() || matches!(one, '_' | '$');
    // Behind a dot even these are columns.
    let mut before = "";
    for word in text.split_inclusive(|one| !is_of_word(one)) {
        let name = word.trim_end_matches(|one| !is_of_word(one));
        let is_clock = WITHOUT_BRACKETS.contains(&name.to_ascii_lowercase().as_str());
        if is_clock && before != "." {
            return Some(name.to_owned());
        }
        if !word.trim().is_empty() {
            before = word.trim();
        }
    }
    None
}

/// What is known of a default's volatility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Volatility {
    /// One value for all rows.
    Steady,
    /// A value for each row.
    Volatile(String),
    /// It calls somebody's own function, of which nothing is known here.
    Unknown(String),
}

pub(super) fn of(world: &World<'_>, expression: &Expression) -> Volatility {
    let mut unknown = None;
    for call in &expression.calls {
        match of_call(world, call) {
            Some(true) => {}
            Some(false) => return Volatility::Volatile(call.to_string()),
            None => unknown = Some(call.to_string()),
        }
    }
    unknown.map_or(Volatility::Steady, Volatility::Unknown)
}

/// Whether it is steady; none when that is not known.
fn of_call(world: &World<'_>, call: &QualifiedName) -> Option<bool> {
    let name = call.name.as_str();
    let of_the_server = call
        .schema
        .as_deref()
        .is_none_or(|schema| schema == "pg_catalog");
    if let Some(volatile) = SERVERS.get(name)
        && (of_the_server || *volatile)
    {
        return Some(!volatile);
    }
    // Extensions' functions stand in any schema.
    if VOLATILE.contains(&name) {
        return Some(false);
    }
    if STEADY.contains(&name) {
        return Some(true);
    }
    if let Some(steady) = world.said_steady(call) {
        return Some(steady);
    }
    let name = world.name(call);
    let found = world
        .catalog?
        .functions
        .iter()
        .find(|one| one.name == name || call.schema.is_none() && one.name.name == call.name)?;
    Some(found.volatility != "volatile")
}

/// Whether a function is known to have one value in a statement: then it changes nothing either.
pub(super) fn is_steady(world: &World<'_>, call: &QualifiedName) -> bool {
    of_call(world, call) == Some(true)
}
