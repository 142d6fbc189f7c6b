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
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let braced = after.strip_prefix('{').and_then(|inside| {
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

/// A line with `{{ … }}` of a template read as a name. In a quoted string it is text, and braces with commas are an array.
pub(super) fn of_template(line: &str, number: usize, notes: &mut Vec<(usize, String)>) -> String {
    let mut filled = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("{{") {
        let inside = rest[at + 2..]
            .find("}}")
            .map(|end| &rest[at + 2..at + 2 + end]);
        filled.push_str(&rest[..at]);
        let quoted = filled.matches('\'').count() % 2 == 1;
        let names = |inside: &&str| !inside.trim().is_empty() && !inside.contains(['{', ',', '\'']);
        let Some(inside) = inside.filter(names).filter(|_| !quoted) else {
            filled.push_str("{{");
            rest = &rest[at + 2..];
            continue;
        };
        let neutral = neutral(inside.trim());
        let end = at + inside.len() + 4;
        notes.push((number, said(&rest[at..end], &neutral)));
        filled.push_str(&neutral);
        rest = &rest[end..];
    }
    filled.push_str(rest);
    filled
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
            of_template(line, 3, &mut notes),
            "ALTER TABLE placeholder_index__options__ns_.users ADD a int[] DEFAULT '{{1,2},{3,4}}', b text DEFAULT '{{ x }}'; -- {{}}\n"
        );
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].0, 3);
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
