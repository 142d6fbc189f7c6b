//! An SQL file of a change, and what of its bytes counts.
//!
//! Invariants: what is executed and hashed has no byte order mark, LF at the ends of its lines, and ends with one of them; so a
//! checkout with other line ends is the same file (MG-15). The hash of the bytes as they are is kept beside it.

use sha2::{Digest as _, Sha256};

/// A file of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFile {
    /// Its name in the folder of the change.
    pub name: String,
    /// How messages call it.
    pub path: String,
    /// What is executed.
    pub text: String,
    /// SHA-256 of the bytes as they are, in hex.
    pub raw_sha256: String,
    /// SHA-256 of [`Self::text`], in hex.
    pub sha256: String,
    /// The bytes have a byte order mark, or ends of lines that are not LF. They count as without; another tool may not take them so.
    pub other_line_ends: bool,
}

/// Why bytes are no SQL file.
pub(super) struct NotText {
    /// The line of the first byte that is no UTF-8.
    pub(super) line: usize,
}

impl SqlFile {
    pub(super) fn new(name: &str, path: String, bytes: &[u8]) -> Result<Self, NotText> {
        let text = std::str::from_utf8(bytes).map_err(|error| NotText {
            line: line_of(&bytes[..error.valid_up_to()]),
        })?;
        let other_line_ends = text.starts_with('\u{feff}') || text.contains("\r\n");
        let text = normalised(text);
        Ok(Self {
            other_line_ends,
            name: name.to_owned(),
            path,
            raw_sha256: sha256(bytes),
            sha256: sha256(text.as_bytes()),
            text,
        })
    }

    /// Whether the bytes differ from what counts, by a byte order mark or by line ends.
    pub fn is_normalised_away(&self) -> bool {
        self.raw_sha256 != self.sha256
    }
}

/// Without byte order mark, with LF, and one at the end.
pub fn normalised(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut text = text.replace("\r\n", "\n");
    text.truncate(text.trim_end_matches(['\n', '\r', ' ', '\t']).len());
    text.push('\n');
    text
}

/// SHA-256 in hex.
pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            // Into a string: cannot fail.
            write!(hex, "{byte:02x}").ok();
            hex
        })
}

/// The line, from 1, behind these bytes.
pub(super) fn line_of(before: &[u8]) -> usize {
    // A file of megabytes is counted once, for a message.
    1 + before
        .iter()
        .fold(0, |lines, byte| lines + usize::from(*byte == b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mg_15_line_ends_a_mark_and_the_last_line_do_not_count() {
        let plain = SqlFile::new("a", "a".into(), b"select 1;\nselect 2;\n")
            .ok()
            .unwrap();
        for other in [
            &b"select 1;\r\nselect 2;\r\n"[..],
            b"\xef\xbb\xbfselect 1;\nselect 2;",
            b"select 1;\nselect 2;\n\n\n",
        ] {
            let other = SqlFile::new("a", "a".into(), other).ok().unwrap();
            assert_eq!(other.sha256, plain.sha256);
            assert_ne!(other.raw_sha256, plain.raw_sha256);
            assert!(other.is_normalised_away() && !plain.is_normalised_away());
        }
        let ends = |bytes: &[u8]| SqlFile::new("a", "a".into(), bytes).ok().unwrap();
        assert!(ends(b"select 1;\r\n").other_line_ends);
        assert!(ends(b"\xef\xbb\xbfselect 1;\n").other_line_ends);
        assert!(!ends(b"select 1;\n\n").other_line_ends);
        let edited = SqlFile::new("a", "a".into(), b"select 1;\nselect 3;\n")
            .ok()
            .unwrap();
        assert_ne!(edited.sha256, plain.sha256);
    }

    #[test]
    fn what_is_not_utf_8_is_told_with_its_line() {
        let refused = SqlFile::new("a", "a".into(), b"select 1;\nselect '\xe9';\n").err();
        assert_eq!(refused.unwrap().line, 2);
    }
}
