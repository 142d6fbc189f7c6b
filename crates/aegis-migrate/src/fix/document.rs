//! `change.toml`, edited: keys come and go, comments and order stay.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::change::Problem;

/// What has to be shown before a contract that nobody has thought about yet.
const EVIDENCE: [&str; 5] = [
    "pods",
    "workers",
    "clients",
    "dependents",
    "rollback_window",
];

/// A `change.toml`.
#[derive(Debug)]
pub(super) struct Toml {
    document: DocumentMut,
}

impl Toml {
    pub(super) fn parse(text: &str, path: &str) -> Result<Self, Problem> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            Problem::of_file(
                path,
                format!("this is no TOML: {}", error.message()),
                "mend the line",
            )
        })?;
        Ok(Self { document })
    }

    pub(super) fn text(&self) -> String {
        self.document.to_string()
    }

    /// Names a file by a key such as `migrate.sql`.
    pub(super) fn name_file(&mut self, key: &str, file: &str) {
        let Some((section, key)) = key.split_once('.') else {
            return;
        };
        let is_new = !self.document.contains_key(section);
        let table = self.section(section);
        table[key] = value(file);
        if is_new && section == "contract" {
            table["observe"] = value("72h");
            table["evidence"] = Item::Value(Value::Array(EVIDENCE.iter().copied().collect()));
        }
    }

    /// The file that a key names.
    pub(super) fn file_of(&self, key: &str) -> Option<String> {
        let (section, key) = key.split_once('.')?;
        Some(self.document.get(section)?.get(key)?.as_str()?.to_owned())
    }

    /// Takes a key away, and its section with the last file of it; the reasons of expand go on in migrate.
    pub(super) fn forget_file_but_keep_reasons(&mut self, key: &str) {
        let reasons = self.compatible("expand");
        self.forget_file(key);
        let is_over = key.starts_with("expand.") && !self.document.contains_key("expand");
        if is_over && self.document.contains_key("migrate") {
            let there = self.compatible("migrate");
            for (rule, reason) in reasons {
                if !there.iter().any(|(known, _)| *known == rule) {
                    self.add_compatible("migrate", &rule, &reason);
                }
            }
        }
    }

    /// Takes a key away, and its section with the last file of it.
    fn forget_file(&mut self, key: &str) {
        let Some((section, key)) = key.split_once('.') else {
            return;
        };
        let Some(table) = self
            .document
            .get_mut(section)
            .and_then(Item::as_table_like_mut)
        else {
            return;
        };
        table.remove(key);
        let has_file = ["sql", "after_backfill", "tighten"]
            .iter()
            .any(|key| table.contains_key(key));
        if !has_file {
            self.document.remove(section);
        }
    }

    /// The rules that a section overrides, with their reasons.
    pub(super) fn compatible(&self, section: &str) -> Vec<(String, String)> {
        let Some(list) = self
            .document
            .get(section)
            .and_then(|section| section.get("compatible"))
        else {
            return Vec::new();
        };
        let pair = |rule: Option<&str>, reason: Option<&str>| {
            Some((rule?.to_owned(), reason.unwrap_or_default().to_owned()))
        };
        if let Some(tables) = list.as_array_of_tables() {
            return tables
                .iter()
                .filter_map(|one| {
                    pair(
                        one.get("rule").and_then(Item::as_str),
                        one.get("reason").and_then(Item::as_str),
                    )
                })
                .collect();
        }
        list.as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_inline_table)
            .filter_map(|one| {
                pair(
                    one.get("rule").and_then(Value::as_str),
                    one.get("reason").and_then(Value::as_str),
                )
            })
            .collect()
    }

    /// Adds an override with the reason that the author gave elsewhere.
    pub(super) fn add_compatible(&mut self, section: &str, rule: &str, reason: &str) {
        let table = self.section(section);
        let mut one = InlineTable::new();
        one.insert("rule", rule.into());
        one.insert("reason", reason.into());
        match table.get_mut("compatible") {
            Some(Item::ArrayOfTables(tables)) => tables.push(one.into_table()),
            Some(Item::Value(Value::Array(list))) => list.push(Value::InlineTable(one)),
            _ => {
                let mut list = Array::new();
                list.push(Value::InlineTable(one));
                table["compatible"] = value(list);
            }
        }
    }

    /// Takes an override away.
    pub(super) fn remove_compatible(&mut self, section: &str, rule: &str) {
        let Some(table) = self
            .document
            .get_mut(section)
            .and_then(Item::as_table_like_mut)
        else {
            return;
        };
        let empty = match table.get_mut("compatible") {
            Some(Item::ArrayOfTables(tables)) => {
                tables.retain(|one| one.get("rule").and_then(Item::as_str) != Some(rule));
                tables.is_empty()
            }
            Some(Item::Value(Value::Array(list))) => {
                list.retain(|one| {
                    one.as_inline_table()
                        .and_then(|one| one.get("rule"))
                        .and_then(Value::as_str)
                        != Some(rule)
                });
                list.is_empty()
            }
            _ => false,
        };
        if empty {
            table.remove("compatible");
        }
    }

    fn section(&mut self, name: &str) -> &mut Item {
        if !self.document.contains_key(name) {
            let mut table = Table::new();
            table.decor_mut().set_prefix("\n");
            self.document.insert(name, Item::Table(table));
        }
        &mut self.document[name]
    }
}

#[cfg(test)]
mod tests {
    use super::Toml;

    #[test]
    fn comments_and_order_stay() {
        let text = "# head\nformat = 1 # one\n\n[expand] # short\nsql = \"expand.sql\"\n# why\ncompatible = [{ rule = \"a\", reason = \"b\" }]\n";
        let mut toml = Toml::parse(text, "change.toml").unwrap();
        assert_eq!(toml.text(), text);
        toml.name_file("migrate.sql", "migrate.sql");
        toml.add_compatible("migrate", "a", "b");
        assert_eq!(
            toml.text(),
            format!(
                "{text}\n[migrate]\nsql = \"migrate.sql\"\ncompatible = [{{ rule = \"a\", reason = \"b\" }}]\n"
            )
        );
        assert_eq!(
            toml.compatible("migrate"),
            [("a".to_owned(), "b".to_owned())]
        );
        toml.remove_compatible("expand", "a");
        toml.forget_file("migrate.sql");
        let text = toml.text();
        assert!(
            text.contains("[expand] # short") && !text.contains("[migrate]"),
            "{text}"
        );
        assert!(!text.contains("compatible"), "{text}");
    }
}
