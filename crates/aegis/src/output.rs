//! What is printed for people (tables) and for programs (one JSON document).

use std::io::Write;

use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use serde_json::Value;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON document on stdout.
    Json,
}

impl Output {
    /// Prints a list: a table with these columns, or the JSON array.
    pub(crate) fn list(self, columns: &[&str], rows: Vec<Vec<String>>, json: Vec<Value>) {
        match self {
            Self::Table => {
                if rows.is_empty() {
                    note("nothing found");
                    return;
                }
                let mut table = Table::new();
                table
                    .load_style(presets::NOTHING)
                    .set_content_arrangement(ContentArrangement::Dynamic);
                table.set_header(
                    columns
                        .iter()
                        .map(|column| column.to_uppercase())
                        .collect::<Vec<_>>(),
                );
                for row in rows {
                    table.add_row(row);
                }
                line(&table.to_string());
            }
            Self::Json => line(&Value::Array(json).to_string()),
        }
    }

    /// Prints one thing: `name: value` lines, or the JSON object.
    pub(crate) fn one(self, fields: &[(&str, String)], json: &Value) {
        match self {
            Self::Table => {
                let width = fields
                    .iter()
                    .map(|(name, _)| name.len())
                    .max()
                    .unwrap_or_default();
                for (name, value) in fields {
                    line(&format!("{name:width$}  {value}"));
                }
            }
            Self::Json => line(&json.to_string()),
        }
    }
}

/// A line on stdout. A closed pipe (`| head`) is not an error of ours.
pub(crate) fn line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .is_err()
    {
        tracing::debug!("stdout is closed");
    }
}

/// A remark for the person, on stderr.
#[expect(clippy::print_stderr, reason = "the one place for remarks")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

/// A time in UTC, to the millisecond.
pub(crate) fn at(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
}

/// A time that may be missing.
pub(crate) fn maybe_at(time: Option<Timestamp>) -> String {
    time.map(at).unwrap_or_default()
}

/// Bytes of a stored payload: JSON as JSON, anything else by its size.
pub(crate) fn payload(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(format!("({} bytes, not JSON)", bytes.len())))
}
