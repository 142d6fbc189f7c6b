//! Where a key of a TOML file stands: from a path to its line, and from a place to its path.

use toml::de::{DeTable, DeValue};

use super::sql_file::line_of;

/// A parsed file that can say where things are.
pub(super) struct Located<'a> {
    text: &'a str,
    document: DeTable<'a>,
}

impl<'a> Located<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, toml::de::Error> {
        Ok(Self {
            text,
            document: DeTable::parse(text)?.into_inner(),
        })
    }

    /// The line of a key such as `backfill.batch.max`; of the longest part of it that stands there.
    pub(super) fn line(&self, path: &str) -> Option<usize> {
        let mut table = &self.document;
        let mut at = None;
        for word in path.split('.') {
            let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == word)
            else {
                break;
            };
            at = Some(key.span().start);
            match value.get_ref() {
                DeValue::Table(below) => table = below,
                _ => break,
            }
        }
        at.map(|at| self.line_at(at))
    }

    /// The line of a byte.
    pub(super) fn line_at(&self, at: usize) -> usize {
        line_at(self.text, at)
    }

    /// The path of the key at a byte.
    pub(super) fn key_at(&self, at: usize) -> Option<String> {
        let mut path = Vec::new();
        let mut table = &self.document;
        while let Some((key, value)) = table.iter().find(|(key, value)| {
            key.span().contains(&at)
                || value.span().contains(&at)
                || below_contains(value.get_ref(), at)
        }) {
            path.push(key.get_ref().to_string());
            match value.get_ref() {
                DeValue::Table(below) if !key.span().contains(&at) => table = below,
                _ => break,
            }
        }
        (!path.is_empty()).then(|| path.join("."))
    }
}

/// A table's own span is its head; what is in it stands behind.
fn below_contains(value: &DeValue<'_>, at: usize) -> bool {
    match value {
        DeValue::Table(table) => table.iter().any(|(key, value)| {
            key.span().contains(&at)
                || value.span().contains(&at)
                || below_contains(value.get_ref(), at)
        }),
        _ => false,
    }
}

/// The line, from 1, of a byte.
pub(super) fn line_at(text: &str, at: usize) -> usize {
    line_of(&text.as_bytes()[..at.min(text.len())])
}
