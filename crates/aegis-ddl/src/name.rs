//! Names as they stand in SQL: perhaps without a schema, quotes taken away, case folded as the server folds it.

use aegis_catalog::{Name, shown};
use serde::{Deserialize, Serialize};

/// A name that may lack its schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QualifiedName {
    /// None: where search_path finds it.
    pub schema: Option<String>,
    /// The object's name.
    pub name: String,
}

impl QualifiedName {
    /// From the text of a path, as `"My Schema".t`.
    pub(crate) fn read(text: &str) -> Self {
        let mut parts = split(text);
        let name = parts.pop().unwrap_or_default();
        Self {
            schema: parts.pop(),
            name,
        }
    }

    /// The table of a column's path, as `"My Schema".t.c`.
    pub(crate) fn read_table_of(text: &str) -> Self {
        let mut parts = split(text);
        parts.pop();
        let name = parts.pop().unwrap_or_default();
        Self {
            schema: parts.pop(),
            name,
        }
    }

    /// In the schema that search_path names first.
    pub fn resolve(&self, schema: &str) -> Name {
        Name::new(self.schema.as_deref().unwrap_or(schema), &self.name)
    }
}

impl std::fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", shown(schema))?;
        }
        f.write_str(&shown(&self.name))
    }
}

/// One identifier, as the server stores it.
pub(crate) fn identifier(text: &str) -> String {
    split(text).pop().unwrap_or_default()
}

/// The parts of a path. Comments between them do not occur: the tree gives tokens.
fn split(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut characters = text.chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                part.push('"');
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            _ if quoted => part.push(character),
            _ if character.is_whitespace() => {}
            // The server folds ASCII only, in a UTF-8 database.
            _ => part.push(character.to_ascii_lowercase()),
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::QualifiedName;

    #[test]
    fn quotes_go_case_folds_and_dots_inside_stay() {
        let name = QualifiedName::read(r#""My.S""x" . Users"#);
        assert_eq!(name.schema.as_deref(), Some("My.S\"x"));
        assert_eq!(name.name, "users");
        assert_eq!(QualifiedName::read("ÜNÏ").name, "ÜnÏ");
        assert_eq!(name.to_string(), r#""My.S""x".users"#);
    }
}
