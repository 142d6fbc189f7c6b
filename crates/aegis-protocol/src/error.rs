//! What is wrong with a line, or with a handshake.

/// A line that is no message of a handler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// Not JSON at all.
    #[error("not a line of JSON ({why}): {shown}")]
    NotJson {
        /// What the parser says.
        why: String,
        /// The beginning of the line.
        shown: String,
    },
    /// JSON, and no message of this version.
    #[error("no message of the exec protocol ({why}): {shown}")]
    NotAMessage {
        /// What the parser says.
        why: String,
        /// The beginning of the line.
        shown: String,
    },
}

/// The two sides share no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it chose version {chosen} of the exec protocol, and this worker offered {}: use a handler library that speaks one of them",
    offered.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
)]
pub struct NoCommonVersion {
    /// What the worker speaks.
    pub offered: Vec<u32>,
    /// What the handler answered.
    pub chosen: u32,
}

impl BadLine {
    pub(crate) fn of(error: &serde_json::Error, line: &[u8]) -> Self {
        let (why, shown) = (why(error), shown(line));
        if error.is_data() {
            Self::NotAMessage { why, shown }
        } else {
            Self::NotJson { why, shown }
        }
    }
}

/// What the parser says, which may name a word of the line: as harmless and as short as the line's beginning.
fn why(error: &serde_json::Error) -> String {
    const CHARS_MAX: usize = 300;
    let said = error.to_string();
    let mut text = String::new();
    for char in said.chars().take(CHARS_MAX) {
        // Marks that turn what follows around are escaped like controls.
        if char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            text.extend(char.escape_unicode());
        } else {
            text.push(char);
        }
    }
    if said.chars().nth(CHARS_MAX).is_some() {
        text.push_str(" …");
    }
    text
}

/// The beginning of a line for a person, with nothing in it that a terminal would obey.
fn shown(line: &[u8]) -> String {
    const BYTES_MAX: usize = 200;
    let cut = &line[..line.len().min(BYTES_MAX)];
    let mut text = format!("`{}`", String::from_utf8_lossy(cut).escape_debug());
    if cut.len() < line.len() {
        text.push_str(" …");
    }
    text
}
