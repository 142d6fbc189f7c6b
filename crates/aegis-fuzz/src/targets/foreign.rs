//! Files of other tools, as `lint` and `adopt` read them.

use std::path::Path;

use aegis_migrate::change::normalised;
use aegis_migrate::foreign::{ForeignFile, Tool, alone, by_text};

use crate::holds::{says, text};

/// The name of a file in the first line, and what it holds behind it, given to each tool in turn.
pub(super) fn foreign(bytes: &[u8]) {
    let cut = bytes.iter().position(|byte| *byte == b'\n');
    let (name, content) = match cut {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (b"1_a.sql".as_slice(), bytes),
    };
    let Some(name) = text(name) else { return };
    let whole = text(content).map(normalised);
    let own_words = whole.as_deref().and_then(by_text);
    for tool in Tool::ALL {
        match alone(tool, Path::new(name), content) {
            Ok(parts) => {
                // What was read was text.
                let whole = whole.as_deref().unwrap_or_default();
                for part in &parts {
                    stands_at_its_lines(tool, part, whole);
                }
                if own_words == Some(tool) && tool == Tool::Liquibase {
                    assert!(parts.len() <= whole.lines().count(), "parts of no lines");
                }
            }
            Err(problem) => says(&problem, bytes),
        }
    }
}

/// A line of a part is the line of the file with its number but for spaces at its end, or blank, unless a placeholder was filled in it, which is noted.
/// Liquibase fills its own properties without a note, and turns its delimiters into ours.
fn stands_at_its_lines(tool: Tool, part: &ForeignFile, whole: &str) {
    let lines: Vec<&str> = whole.lines().collect();
    let read = part.text.lines().count();
    assert!(
        read <= lines.len(),
        "{tool}: {read} lines of {}",
        lines.len()
    );
    if tool == Tool::Liquibase {
        return;
    }
    for (at, line) in part.text.lines().enumerate() {
        let noted = part.notes.iter().any(|(number, _)| *number == at + 1);
        assert!(
            line.is_empty() || line.trim_end() == lines[at].trim_end() || noted,
            "{tool}: line {} was {:?} and is {line:?}",
            at + 1,
            lines[at]
        );
    }
}
