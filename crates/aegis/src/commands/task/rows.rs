//! Many rows, printed as they come: memory does not grow with their number.
//!
//! Invariant: JSON is one array on one line and YAML one list, whatever the number.

use serde_json::Value;

use crate::output::{Output, note, part, raw};

/// So many rows are aligned with each other in a table.
const CHUNK: usize = 10_000;

/// Where rows go.
pub(super) struct Rows {
    output: Output,
    columns: &'static [&'static str],
    chunk: Vec<Vec<String>>,
    names: Vec<Value>,
    count: u64,
}

impl Rows {
    pub(super) fn new(output: Output, columns: &'static [&'static str]) -> Self {
        Self {
            output,
            columns,
            chunk: Vec::new(),
            names: Vec::new(),
            count: 0,
        }
    }

    /// One more: a row for people, an object for programs.
    pub(super) fn push(&mut self, row: impl FnOnce() -> Vec<String>, json: impl FnOnce() -> Value) {
        match self.output {
            Output::Table => self.chunk.push(row()),
            Output::Name => self.names.push(json()),
            Output::Json => {
                let start = if self.count == 0 { "[" } else { "," };
                part(&format!("{start}{}", json()));
            }
            // JSON is YAML; one entry a line.
            Output::Yaml => part(&format!("- {}\n", json())),
        }
        self.count += 1;
        if self.chunk.len() + self.names.len() >= CHUNK {
            self.flush();
        }
    }

    /// Prints what is left.
    pub(super) fn finish(mut self) {
        self.flush();
        match (self.output, self.count) {
            (Output::Table, 0) => note("nothing found"),
            (Output::Json | Output::Yaml, 0) => raw(b"[]\n"),
            (Output::Json, _) => raw(b"]\n"),
            (Output::Yaml, _) => raw(b""),
            _ => {}
        }
    }

    fn flush(&mut self) {
        if !self.chunk.is_empty() || !self.names.is_empty() {
            self.output.list(
                self.columns,
                std::mem::take(&mut self.chunk),
                std::mem::take(&mut self.names),
            );
        }
    }
}
