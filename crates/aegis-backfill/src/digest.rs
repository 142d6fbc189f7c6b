//! One value for a list of texts: the same texts, the same value.

use sha2::{Digest as _, Sha256};

/// SHA-256 over parts, each behind its length, so that no two lists are one text.
pub(crate) struct Digest(Sha256);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(crate) fn add(&mut self, part: &str) {
        self.0.update(part.len().to_le_bytes());
        self.0.update(part.as_bytes());
    }

    /// Columns and their expressions.
    pub(crate) fn add_pairs<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) {
        for (column, from) in pairs {
            self.add(column);
            self.add(from);
        }
    }

    /// In lower case, 64 digits.
    pub(crate) fn hex(self) -> String {
        let digits = self.0.finalize();
        let digits = digits.iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    fn of(parts: &[&str]) -> String {
        let mut digest = Digest::new();
        for part in parts {
            digest.add(part);
        }
        digest.hex()
    }

    /// Jobs, passes and triggers of before are known by it.
    #[test]
    fn a_list_keeps_its_value_from_build_to_build() {
        assert_eq!(
            of(&["a", "bc"]),
            "9a8acca1b6c6c0befd3fbc756aed625da998c998f7252e738c4ef061906b9b21"
        );
    }

    #[test]
    fn lists_of_one_text_in_other_parts_differ() {
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
