//! What people call a field, and how a value is told to them.

use serde_json::Value;

/// A field in people's words.
pub(crate) fn field(name: &str) -> &str {
    match name {
        "data_type" => "type",
        "not_null" => "NOT NULL",
        "not_null_valid" => "NOT NULL is validated",
        "collation" => "COLLATE",
        "row_security" => "row level security",
        "force_row_security" => "forced row level security",
        "predicate" => "WHERE",
        "include" => "INCLUDE",
        "valid" => "valid (indisvalid)",
        "ready" => "kept up by writes (indisready)",
        "live" => "live (indislive)",
        "nulls_not_distinct" => "NULLS NOT DISTINCT",
        "detach_pending" => "DETACH pending",
        "bound" => "partition bound",
        "partition_of" => "partition of",
        "partition_key" => "PARTITION BY",
        "column_order" => "order of columns",
        "body_sha256" => "body (its SHA-256)",
        "security_definer" => "SECURITY DEFINER",
        "using" => "USING",
        "check" => "WITH CHECK",
        "local" => "declared by the table itself",
        "no_inherit" => "NO INHERIT",
        "persistence" => "logged or not",
        "base" => "base type",
        other => other,
    }
}

/// A value for people.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => {
            let words: Vec<String> = values.iter().map(self::value).collect();
            format!("[{}]", words.join(", "))
        }
        Value::Object(_) => value.to_string(),
    }
}

/// A whole shape on one line: what stands out, without what is absent.
pub(crate) fn shape(shape: &super::Shape) -> String {
    let fields = shape.iter().filter(|(name, value)| {
        !super::TOLD_FIELDS.contains(&name.as_str())
            && !matches!(value, Value::Null | Value::Bool(false))
            && !value.as_array().is_some_and(Vec::is_empty)
    });
    let words = fields.map(|(name, found)| match found {
        Value::Bool(true) => field(name).to_owned(),
        other => format!("{} {}", field(name), value(other)),
    });
    words.collect::<Vec<String>>().join(", ")
}
