//! Names of objects as the catalog stores them: unquoted, case kept, any character.
//!
//! Whoever writes one into SQL takes `sql()`, which always quotes; `Display` is for people and quotes only what needs it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name in a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// The schema's name.
    pub schema: String,
    /// The object's name.
    pub name: String,
}

impl Name {
    /// Both parts, as the catalog stores them.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            schema: schema.into(),
            name: name.into(),
        }
    }

    /// As it can stand in SQL, whatever it holds.
    pub fn sql(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", shown(&self.schema), shown(&self.name))
    }
}

/// An identifier in double quotes, its own doubled.
pub fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// An identifier for people: in quotes when it would be another without them.
pub fn shown(identifier: &str) -> String {
    let mut characters = identifier.chars();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first == '_');
    let goes_on = characters.all(|next| {
        next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_' || next == '$'
    });
    if starts && goes_on {
        identifier.to_owned()
    } else {
        quote(identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, quote, shown};

    #[test]
    fn hostile_names_are_quoted() {
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(shown("Users"), "\"Users\"");
        assert_eq!(shown("a.b"), "\"a.b\"");
        assert_eq!(shown(""), "\"\"");
        assert_eq!(shown("users_2"), "users_2");
        assert_eq!(
            Name::new("app", "x\"; drop").to_string(),
            "app.\"x\"\"; drop\""
        );
        assert_eq!(Name::new("app", "users").sql(), "\"app\".\"users\"");
    }
}
