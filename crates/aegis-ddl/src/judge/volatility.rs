//! Whether a default gives each row the same value, so that the server can store it once instead of rewriting the table.
//! The lists are written by hand from the documentation of PostgreSQL 18's functions; nothing compares them with a server's
//! pg_proc yet. What stands in neither is not known, and counts as volatile without a catalog.

use super::world::World;
use crate::form::Expression;
use crate::name::QualifiedName;

/// Functions whose value differs from row to row.
const VOLATILE: &[&str] = &[
    "clock_timestamp",
    "currval",
    "gen_random_bytes",
    "gen_random_uuid",
    "lastval",
    "nextval",
    "random",
    "random_normal",
    "setseed",
    "setval",
    "timeofday",
    "uuid_generate_v1",
    "uuid_generate_v1mc",
    "uuid_generate_v4",
    "uuidv4",
    "uuidv7",
    "gen_ulid",
    "pg_sleep",
    "txid_current",
];

/// Functions that have one value in a statement.
const STEADY: &[&str] = &[
    "abs",
    "array_fill",
    "array_to_json",
    "ceil",
    "chr",
    "coalesce",
    "concat",
    "concat_ws",
    "convert_from",
    "current_database",
    "current_schema",
    "current_setting",
    "current_user",
    "date",
    "date_part",
    "date_trunc",
    "decode",
    "digest",
    "encode",
    "extract",
    "floor",
    "format",
    "greatest",
    "int4range",
    "int8range",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "least",
    "length",
    "lower",
    "ltrim",
    "make_date",
    "make_interval",
    "make_timestamp",
    "make_timestamptz",
    "md5",
    "now",
    "nullif",
    "numrange",
    "point",
    "regexp_replace",
    "repeat",
    "replace",
    "round",
    "row_to_json",
    "rtrim",
    "session_user",
    "sha256",
    "split_part",
    "statement_timestamp",
    "string_to_array",
    "substr",
    "substring",
    "timezone",
    "to_char",
    "to_date",
    "to_json",
    "to_jsonb",
    "to_number",
    "to_timestamp",
    "to_tsvector",
    "transaction_timestamp",
    "trim",
    "trunc",
    "tsrange",
    "tstzrange",
    "upper",
    "daterange",
    "int4multirange",
    "age",
    "array_length",
    "cardinality",
];

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
    let of_the_server = call
        .schema
        .as_deref()
        .is_none_or(|schema| schema == "pg_catalog");
    if of_the_server && STEADY.contains(&call.name.as_str()) {
        return Some(true);
    }
    // Extensions' functions stand in any schema.
    if VOLATILE.contains(&call.name.as_str()) {
        return Some(false);
    }
    let name = world.name(call);
    let found = world
        .catalog?
        .functions
        .iter()
        .find(|one| one.name == name || call.schema.is_none() && one.name.name == call.name)?;
    Some(found.volatility != "volatile")
}
