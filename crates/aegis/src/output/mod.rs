//! What is printed for people (tables) and for programs (JSON, YAML, one name a line).
//!
//! Invariants: what a program reads is on stdout and whole; a table is cut to the terminal only where there is one; no
//! character of a stored text reaches a terminal as a command to it.
//!
//! Never: a colour in a pipe.

mod look;
mod progress;
mod table;

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;

pub(crate) use look::{error_look, set_colour};
pub(crate) use progress::Progress;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON document on one line.
    Json,
    /// One YAML document.
    Yaml,
    /// The id or name alone, one a line: for pipes.
    Name,
}

impl Output {
    /// Prints a list: a table with these columns, or the array.
    pub(crate) fn list(self, columns: &[&str], rows: Vec<Vec<String>>, json: Vec<Value>) {
        match self {
            Self::Table if rows.is_empty() => note("nothing found"),
            Self::Table => {
                let (text, left_out) = table::list(columns, rows, look::stdout());
                line(&text);
                if !left_out.is_empty() {
                    note(&format!(
                        "left out, as the terminal is narrow: {} (see --output json)",
                        left_out.join(", ")
                    ));
                }
            }
            Self::Json => line(&Value::Array(json).to_string()),
            Self::Yaml => document(&yaml(&Value::Array(json))),
            Self::Name => {
                let first = rows.iter().map(|row| row.first().cloned());
                let names = json.iter().map(name);
                for (named, first) in names.zip(first.chain(std::iter::repeat(None))) {
                    if let Some(text) = named.or(first) {
                        line(&text);
                    }
                }
            }
        }
    }

    /// Prints one thing: `name  value` lines, or the object.
    pub(crate) fn one(self, fields: &[(&str, String)], json: &Value) {
        match self {
            Self::Table => line(&table::one(fields, look::stdout())),
            Self::Json => line(&json.to_string()),
            Self::Yaml => document(&yaml(json)),
            Self::Name => {
                if let Some(text) =
                    name(json).or_else(|| fields.first().map(|(_, value)| value.clone()))
                {
                    line(&text);
                }
            }
        }
    }
}

/// What a thing is called in a pipe: its id, else its name.
fn name(json: &Value) -> Option<String> {
    ["id", "name"].iter().find_map(|field| match &json[*field] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// JSON is YAML, so a document that the writer refuses is still one.
fn yaml(json: &Value) -> String {
    yaml_serde::to_string(json).unwrap_or_else(|error| {
        tracing::warn!(%error, "printed as JSON, which is YAML too");
        json.to_string()
    })
}

fn document(text: &str) {
    line(text.trim_end_matches('\n'));
}

/// Why something that was printed did not arrive. A closed pipe (`| head`) is no reason: who reads has had enough.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// Why stdout is not whole; `None`: it is, or its reader left.
pub(crate) fn unwritten() -> Option<&'static str> {
    UNWRITTEN.get().map(String::as_str)
}

/// Nobody gets what is printed any more.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Whether it is of no use to read on for the sake of printing.
pub(crate) fn unread() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// A line on stdout.
pub(crate) fn line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    kept(writeln!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Whether colours are wanted on stdout.
pub(crate) fn colours() -> bool {
    look::stdout().colour
}

/// Bytes on stdout as they are.
pub(crate) fn raw(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    kept(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// A part of a long answer; it is out at the latest when [`line()`] or [`raw`] ends it.
pub(crate) fn part(text: &str) {
    kept(std::io::stdout().lock().write_all(text.as_bytes()));
}

fn kept(written: std::io::Result<()>) {
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            UNREAD.store(true, Ordering::Relaxed);
        }
        Err(error) => {
            UNREAD.store(true, Ordering::Relaxed);
            UNWRITTEN.get_or_init(|| error.to_string());
        }
    }
}

/// A remark for the person, on stderr; a line of JSON where log lines are.
pub(crate) fn note(text: &str) {
    if !aegis_telemetry::tell_json(tracing::Level::INFO, text) {
        said(&harmless(text));
    }
}

/// A line on stderr. A worker outlives whoever read it, so a closed one is nothing: `eprintln!` would end the process.
pub(crate) fn said(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

/// A text with words of others in it, on lines of its own: nothing in it is a command to a terminal.
pub(crate) fn harmless(text: &str) -> String {
    table::shown(text, true)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_keeps_what_looks_like_something_else() {
        let tricky = json!({
            "version": "1.10", "answer": "no", "null": "~", "octal": "0o17", "time": "2026-11-30", "lines": "a\nb\n",
            "colon": "a: b #c", "empty": "", "none": null, "number": 1.5, "list": [{"a": [1, 2]}], "escape": "\u{1b}[2J",
        });
        let text = yaml(&tricky);
        let back: Value = yaml_serde::from_str(&text).unwrap();
        assert_eq!(back, tricky, "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_thing_is_called_by_its_id_or_its_name() {
        assert_eq!(name(&json!({ "id": "a", "name": "b" })).unwrap(), "a");
        assert_eq!(name(&json!({ "name": "b" })).unwrap(), "b");
        assert_eq!(name(&json!({ "id": 7 })).unwrap(), "7");
        assert_eq!(name(&json!({ "id": null })), None);
    }
}
