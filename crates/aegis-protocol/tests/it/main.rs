//! The protocol as it is written down: schemas and golden vectors of `protocol/exec` against the types.
#![expect(
    clippy::unwrap_used,
    reason = "a panic with a sentence is how a test fails"
)]

mod bytes;
mod matrix;
mod vectors;

use std::path::PathBuf;

use serde_json::Value;

/// A file of `protocol/exec/v1`.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../protocol/exec/v1")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Its lines, each JSON.
fn lines(name: &str) -> Vec<(String, Value)> {
    let text = file(name);
    let lines: Vec<_> = text
        .lines()
        .map(|line| {
            let value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{name}: {line}: {e}"));
            (line.to_owned(), value)
        })
        .collect();
    assert!(lines.len() > 3, "{name} is nearly empty");
    lines
}

/// A compiled schema.
fn schema(name: &str) -> jsonschema::Validator {
    let schema = serde_json::from_str(&file(&format!("schema/{name}.json"))).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}
