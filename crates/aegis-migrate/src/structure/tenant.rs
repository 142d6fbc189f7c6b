//! One structure for many schemas: what a lock makes in the schema of its files, as it would be in another one.
//!
//! Invariants: a name changes where it names the schema, and nowhere else: not inside a longer name, not in a literal (but for the
//! name of a relation, as in `nextval('app.users_id_seq'::regclass)`). A function's body is known by its hash alone and stays.

use aegis_catalog::{Key, Kind, Structure, quote, shown};
use serde_json::Value;

/// Fields that hold names and words as the catalog stores them: nothing in them is the name of a schema.
const AS_STORED: [&str; 8] = [
    "labels",
    "column_order",
    "include",
    "privileges",
    "options",
    "body_sha256",
    "owner",
    "grantee",
];

/// The structure with `to` for `from`, in every spelling that a server has for it.
pub fn in_schema(structure: &Structure, from: &str, to: &str) -> Structure {
    let renaming = Renaming::new(from, to);
    let mut made = structure.clone();
    made.gone = structure
        .gone
        .iter()
        .map(|key| key_in(key, &renaming))
        .collect();
    made.elements = structure
        .elements
        .iter()
        .map(|(key, shape)| {
            let values = shape.iter();
            let values = values.map(|(field, value)| {
                let value = if AS_STORED.contains(&&**field) {
                    value.clone()
                } else {
                    value_in(value, &renaming)
                };
                (field.clone(), value)
            });
            (key_in(key, &renaming), values.collect())
        })
        .collect();
    made
}

/// From one schema to another.
struct Renaming<'a> {
    from: &'a str,
    to: &'a str,
    /// The old name with its point, as a server may print it: keywords stand in quotes.
    spellings: Vec<String>,
    /// The new one.
    becomes: String,
}

impl<'a> Renaming<'a> {
    fn new(from: &'a str, to: &'a str) -> Self {
        let mut spellings = vec![format!("{}.", quote(from))];
        if shown(from) == from {
            spellings.push(format!("{from}."));
        }
        Self {
            from,
            to,
            spellings,
            becomes: format!("{}.", shown(to)),
        }
    }

    fn name(&self, name: &str) -> String {
        if name == self.from { self.to } else { name }.to_owned()
    }

    /// In an expression, a definition or a list of types.
    fn text(&self, text: &str) -> String {
        let mut made = String::with_capacity(text.len());
        let mut rest = text;
        // What stands before: a name goes on, or a point makes it a part of another.
        let mut before = ' ';
        while let Some(first) = rest.chars().next() {
            let starts = !(before.is_alphanumeric() || "_$.\"".contains(before));
            let spelling = self.spellings.iter().find(|one| rest.starts_with(&**one));
            let taken = match (spelling, first) {
                (Some(spelling), _) if starts => {
                    made.push_str(&self.becomes);
                    spelling.len()
                }
                (_, '\'') => {
                    let end = end_of(rest, '\'');
                    let names_a_relation = rest[end..].starts_with("::reg");
                    if names_a_relation && end > 2 {
                        made.push('\'');
                        made.push_str(&self.text(&rest[1..end - 1]));
                        made.push('\'');
                    } else {
                        made.push_str(&rest[..end]);
                    }
                    end
                }
                (_, '"') => {
                    let end = end_of(rest, '"');
                    made.push_str(&rest[..end]);
                    end
                }
                _ => {
                    made.push(first);
                    first.len_utf8()
                }
            };
            before = rest[..taken].chars().next_back().unwrap_or(' ');
            rest = &rest[taken..];
        }
        made
    }
}

/// Where what is quoted at the beginning ends, after its last quote. A doubled one is part of it.
fn end_of(text: &str, mark: char) -> usize {
    let mut marks = text.char_indices().skip(1).peekable();
    while let Some((at, one)) = marks.next() {
        if one == mark && marks.next_if(|(_, next)| *next == mark).is_none() {
            return at + 1;
        }
    }
    text.len()
}

fn key_in(key: &Key, renaming: &Renaming<'_>) -> Key {
    let mut made = key.clone();
    made.schema = renaming.name(&key.schema);
    let names_it = match key.kind {
        Kind::Schema => true,
        Kind::Grant => key.schema == key.name && key.part.starts_with("schema "),
        _ => false,
    };
    match key.kind {
        _ if names_it => made.name = renaming.name(&key.name),
        Kind::Function => made.part = renaming.text(&key.part),
        // A grant on a function has its types behind its name.
        Kind::Grant if key.name.ends_with(')') => made.name = renaming.text(&key.name),
        Kind::Other => made.name = renaming.text(&key.name),
        _ => {}
    }
    made
}

fn value_in(value: &Value, renaming: &Renaming<'_>) -> Value {
    match value {
        Value::String(text) => Value::from(renaming.text(text)),
        Value::Array(values) => values.iter().map(|one| value_in(one, renaming)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::Renaming;

    #[test]
    fn a_schema_is_named_where_it_is_named_and_nowhere_else() {
        let renaming = Renaming::new("app", "t 1");
        for (text, becomes) in [
            ("app.users", "\"t 1\".users"),
            ("\"app\".users", "\"t 1\".users"),
            ("happy(app.users, 1)", "happy(\"t 1\".users, 1)"),
            ("other.app.x + myapp.y", "other.app.x + myapp.y"),
            ("'app.users'::text", "'app.users'::text"),
            (
                "nextval('app.users_id_seq'::regclass)",
                "nextval('\"t 1\".users_id_seq'::regclass)",
            ),
            ("'it''s app.x' || app.f()", "'it''s app.x' || \"t 1\".f()"),
            ("\"app.x\" = \"a\"\"app.y\"", "\"app.x\" = \"a\"\"app.y\""),
            ("größe(app.a) é.app.b", "größe(\"t 1\".a) é.app.b"),
            ("'open app.x", "'open app.x"),
        ] {
            assert_eq!(renaming.text(text), becomes, "{text}");
        }
        let back = Renaming::new("t 1", "app");
        assert_eq!(back.text("\"t 1\".users"), "app.users");
    }
}
