//! Placeholders that a tool fills when it runs: with the value of its own configuration where one stands there, else with a name that
//! means nothing.
//!
//! Invariants: a line stays a line; what was put in is noted with its line.

use std::collections::BTreeMap;
use std::path::Path;

use super::evidence::Around;

/// What a configuration says, by name in lower case.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    /// From `flyway.conf` and `flyway.toml` in the folders above a file; the nearest counts.
    pub(super) fn around(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(Path::new("."));
        let files = [
            "flyway.toml",
            "flyway.conf",
            "conf/flyway.toml",
            "conf/flyway.conf",
        ];
        let mut values = Self::default();
        for text in Around::of(folder).texts(&files) {
            values.read(&text);
        }
        values
    }

    fn read(&mut self, text: &str) {
        let mut put = |name: &str, value: &str| {
            let value = value.replace(['\r', '\n'], " ");
            self.0.entry(name.to_ascii_lowercase()).or_insert(value);
        };
        if let Ok(table) = text.parse::<toml::Table>() {
            let of_flyway = table
                .get("flyway")
                .and_then(|flyway| flyway.get("placeholders"));
            for (name, value) in of_flyway
                .and_then(toml::Value::as_table)
                .into_iter()
                .flatten()
            {
                let value = match value {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Integer(number) => number.to_string(),
                    toml::Value::Boolean(is) => is.to_string(),
                    _ => continue,
                };
                put(name, &value);
            }
            return;
        }
        for line in text.lines() {
            if let Some((key, value)) = line.trim().split_once('=')
                && let Some(name) = key.trim().strip_prefix("flyway.placeholders.")
            {
                put(name, value.trim());
            }
        }
    }

    /// One value.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_ascii_lowercase(), value.to_owned());
    }

    /// A line with its `${name}` filled.
    pub(super) fn fill(
        &self,
        line: &str,
        number: usize,
        notes: &mut Vec<(usize, String)>,
    ) -> String {
        let mut filled = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find("${") {
            let Some(end) = rest[at..].find('}') else {
                break;
            };
            let name = &rest[at + 2..at + end];
            filled.push_str(&rest[..at]);
            if let Some(value) = self.0.get(&name.to_ascii_lowercase()) {
                filled.push_str(value);
            } else {
                let neutral = neutral(name);
                notes.push((number, said(&rest[at..=at + end], &neutral)));
                filled.push_str(&neutral);
            }
            rest = &rest[at + end + 1..];
        }
        filled.push_str(rest);
        filled
    }
}

/// A line with the variables of the environment filled: the value that stands there for an empty one, else a neutral name.
pub(super) fn of_environment(
    line: &str,
    number: usize,
    notes: &mut Vec<(usize, String)>,
) -> String {
    let mut filled = String::with_capacity(line.len());
    let mut rest = line;
    let last_end = line.rfind('}').unwrap_or(0);
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        // Behind the last end there is none to look for.
        let has_end = line.len() - after.len() < last_end;
        let braced = after.strip_prefix('{').filter(|_| has_end);
        let braced = braced.and_then(|inside| {
            let end = inside.find('}')?;
            Some((&inside[..end], end + 2))
        });
        let bare = || {
            let end = after
                .find(|one: char| !(one.is_ascii_alphanumeric() || one == '_'))
                .unwrap_or(after.len());
            let is_name = after.starts_with(|one: char| one.is_ascii_alphabetic() || one == '_');
            // `$tag$` is a quote.
            (is_name && !after[end..].starts_with('$')).then_some((&after[..end], end))
        };
        let Some((inside, length)) = braced.or_else(bare) else {
            filled.push('$');
            // A quote's second sign belongs to the first.
            let more = usize::from(after.starts_with('$'));
            filled.push_str(&after[..more]);
            rest = &after[more..];
            continue;
        };
        let (name, default) = inside
            .split_once(":-")
            .or_else(|| inside.split_once('-'))
            .map_or((inside, None), |(name, default)| (name, Some(default)));
        let value = default.map_or_else(|| neutral(name), str::to_owned);
        notes.push((number, said(&rest[at..=at + length], &value)));
        filled.push_str(&value);
        rest = &after[length..];
    }
    filled.push_str(rest);
    filled
}

/// What the signs of a line stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Sql,
    /// `'…'`.
    Text,
    /// `"…"`.
    Name,
    /// `-- …`.
    LineComment,
}

/// Lines with `{{ … }}` of a template read as names, in their order. In a quoted string it is text, and braces with commas are an array.
#[derive(Debug, Default)]
pub(super) struct Templates {
    /// So many comments are open: they go over lines, and one can stand in another.
    comments: usize,
}

impl Templates {
    /// The next line.
    pub(super) fn fill(
        &mut self,
        line: &str,
        number: usize,
        notes: &mut Vec<(usize, String)>,
    ) -> String {
        let mut filled = String::with_capacity(line.len());
        let mut within = Within::Sql;
        let mut rest = line;
        // Where in the line the next end stands: each is looked for once.
        let mut next_end = 0;
        while let Some(at) = rest.find("{{") {
            let inside_at = line.len() - rest.len() + at + 2;
            if next_end < inside_at {
                let Some(end) = line[inside_at..].find("}}") else {
                    break;
                };
                next_end = inside_at + end;
            }
            within = self.passed(&rest[..at], within);
            filled.push_str(&rest[..at]);
            let inside = &line[inside_at..next_end];
            let is_name = !inside.contains(['{', ',', '\'']) && !inside.trim().is_empty();
            if within == Within::Text || !is_name {
                filled.push_str("{{");
                rest = &rest[at + 2..];
                continue;
            }
            let neutral = neutral(inside.trim());
            let end = at + inside.len() + 4;
            notes.push((number, said(&rest[at..end], &neutral)));
            filled.push_str(&neutral);
            rest = &rest[end..];
        }
        self.passed(rest, within);
        filled.push_str(rest);
        filled
    }

    /// Where one stands after a piece of a line.
    fn passed(&mut self, piece: &str, mut within: Within) -> Within {
        let mut rest = piece.as_bytes();
        while let [sign, after @ ..] = rest {
            let pair = rest.get(..2).unwrap_or_default();
            let mut passed = 1;
            if self.comments > 0 {
                match pair {
                    b"/*" => (self.comments, passed) = (self.comments + 1, 2),
                    b"*/" => (self.comments, passed) = (self.comments - 1, 2),
                    _ => {}
                }
            } else {
                within = match (within, sign) {
                    (Within::Sql, b'\'') => Within::Text,
                    (Within::Sql, b'"') => Within::Name,
                    (Within::Sql, b'-') if after.first() == Some(&b'-') => Within::LineComment,
                    (Within::Sql, b'/') if after.first() == Some(&b'*') => {
                        (self.comments, passed) = (1, 2);
                        Within::Sql
                    }
                    (Within::Text, b'\'') | (Within::Name, b'"') => Within::Sql,
                    (before, _) => before,
                };
            }
            rest = &rest[passed..];
        }
        within
    }
}

fn neutral(name: &str) -> String {
    let plain = name.chars().map(|one| {
        if one.is_ascii_alphanumeric() {
            one.to_ascii_lowercase()
        } else {
            '_'
        }
    });
    format!("placeholder_{}", plain.collect::<String>())
}

fn said(placeholder: &str, value: &str) -> String {
    format!("{placeholder} is filled when it runs; it was read as {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_both_forms_of_a_configuration() {
        let mut values = Values::default();
        values.read("# x\nflyway.url=jdbc:x\nflyway.placeholders.App = orders \n");
        values
            .read("[flyway]\nurl = \"x\"\n[flyway.placeholders]\nother = \"b\"\napp = \"late\"\n");
        let mut notes = Vec::new();
        assert_eq!(
            values.fill(
                "CREATE TABLE ${app}.${OTHER} (${new} int, ${",
                4,
                &mut notes
            ),
            "CREATE TABLE orders.b (placeholder_new int, ${"
        );
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].0, 4);
    }

    #[test]
    fn templates_are_names_and_strings_are_left() {
        let mut notes = Vec::new();
        let line = "ALTER TABLE {{ index .Options \"Ns\" }}.users ADD a int[] DEFAULT '{{1,2},{3,4}}', b text DEFAULT '{{ x }}'; -- {{}}\n";
        assert_eq!(
            Templates::default().fill(line, 3, &mut notes),
            "ALTER TABLE placeholder_index__options__ns_.users ADD a int[] DEFAULT '{{1,2},{3,4}}', b text DEFAULT '{{ x }}'; -- {{}}\n"
        );
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].0, 3);
    }

    #[test]
    fn an_apostrophe_in_a_comment_or_a_name_begins_no_string() {
        for (line, filled) in [
            (
                "ALTER TABLE t /* it's */ ADD COLUMN {{ name }} int;",
                "ALTER TABLE t /* it's */ ADD COLUMN placeholder_name int;",
            ),
            (
                "SELECT \"it's\", {{ a }}, '-- /* \" {{ b }}' -- it's {{ c }}",
                "SELECT \"it's\", placeholder_a, '-- /* \" {{ b }}' -- it's placeholder_c",
            ),
        ] {
            let told = Templates::default().fill(line, 1, &mut Vec::new());
            assert_eq!(told, filled);
        }
        let mut templates = Templates::default();
        let first = "/* it's /* in */ one";
        assert_eq!(templates.fill(first, 1, &mut Vec::new()), first);
        assert_eq!(
            templates.fill("it's */ ADD {{ a }}, b = '{{ c }}'", 2, &mut Vec::new()),
            "it's */ ADD placeholder_a, b = '{{ c }}'"
        );
    }

    #[test]
    fn a_line_of_braces_without_an_end_is_read_once() {
        // Each would be looked for to the end of the line: the square of it is 10^12 and more.
        for open in ["{{ x ", "${ x "] {
            let line = open.repeat(1_000_000);
            assert_eq!(Templates::default().fill(&line, 1, &mut Vec::new()), line);
            assert_eq!(of_environment(&line, 1, &mut Vec::new()), line);
        }
        let line = format!("{}}}}}", "{{".repeat(1_000_000));
        assert_eq!(Templates::default().fill(&line, 1, &mut Vec::new()), line);
    }

    #[test]
    fn quotes_with_dollars_are_no_variables() {
        let mut notes = Vec::new();
        let line = "DO $$ BEGIN PERFORM $1; END $$; SELECT $tag$ x $tag$, $HOME, '${A-b}'";
        assert_eq!(
            of_environment(line, 1, &mut notes),
            "DO $$ BEGIN PERFORM $1; END $$; SELECT $tag$ x $tag$, placeholder_home, 'b'"
        );
        assert_eq!(notes.len(), 2);
    }
}
