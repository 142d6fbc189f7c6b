//! The text of a statement after its includes, where every character still knows its file, line and column.
//!
//! Invariant: an include line is a line of its own, `-- include: NAME.sql`, replaced by the file's text.
//! Never: a cycle; a file outside `sql/include/`.

use std::fs;
use std::path::Path;
use std::rc::Rc;

use super::Mistake;

/// Where a character comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) file: Rc<str>,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Origin {
    pub(super) fn mistake(&self, what: impl Into<String>) -> Mistake {
        Mistake {
            file: self.file.to_string(),
            at: (self.line, self.column),
            what: what.into(),
        }
    }
}

/// One character with its origin.
#[derive(Debug, Clone)]
pub(super) struct Char {
    pub(super) value: char,
    pub(super) origin: Origin,
}

/// The name in an include line.
pub(super) fn include_name(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix("--")?
        .trim_start()
        .strip_prefix("include:")
        .map(str::trim)
}

/// Expands `text` (from line `first_line` of `file`). `names` collects every include that was used.
pub(super) fn expand(
    sql: &Path,
    file: &str,
    text: &str,
    first_line: u32,
    names: &mut Vec<String>,
) -> Result<Vec<Char>, Mistake> {
    let mut expansion = Expansion {
        sql,
        names,
        open: Vec::new(),
        out: Vec::new(),
    };
    expansion.append(file, text, first_line, "")?;
    Ok(expansion.out)
}

struct Expansion<'a> {
    sql: &'a Path,
    names: &'a mut Vec<String>,
    /// Includes being expanded, outermost first.
    open: Vec<String>,
    out: Vec<Char>,
}

impl Expansion<'_> {
    fn append(
        &mut self,
        file: &str,
        text: &str,
        first_line: u32,
        indent: &str,
    ) -> Result<(), Mistake> {
        let file: Rc<str> = file.into();
        for (line, text) in (first_line..).zip(text.lines()) {
            let origin = |column| Origin {
                file: Rc::clone(&file),
                line,
                column,
            };
            let Some(name) = include_name(text) else {
                for value in indent.chars() {
                    self.out.push(Char {
                        value,
                        origin: origin(1),
                    });
                }
                for (column, value) in (1..).zip(text.chars().chain(['\n'])) {
                    self.out.push(Char {
                        value,
                        origin: origin(column),
                    });
                }
                continue;
            };
            if self.open.iter().any(|outer| outer == name) {
                let chain = self.open.join(" → ");
                return Err(origin(1).mistake(format!("include cycle: {chain} → {name}")));
            }
            if name.is_empty() || name.contains(['/', '\\']) {
                return Err(origin(1).mistake("include takes the name of a file in sql/include/"));
            }
            let included =
                fs::read_to_string(self.sql.join("include").join(name)).map_err(|error| {
                    origin(1).mistake(format!("cannot read sql/include/{name}: {error}"))
                })?;
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_owned());
            }
            self.open.push(name.to_owned());
            let blanks = &text[..text.len() - text.trim_start().len()];
            let indent = format!("{indent}{blanks}");
            self.append(&format!("sql/include/{name}"), &included, 1, &indent)?;
            self.open.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Includes: nesting, origins, cycles, missing files.

    use super::{Mistake, expand};

    fn expanded(files: &[(&str, &str)], text: &str) -> Result<(String, Vec<String>), Mistake> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("include")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join("include").join(name), text).unwrap();
        }
        let mut names = Vec::new();
        let chars = expand(folder.path(), "sql/task/x.sql", text, 3, &mut names)?;
        Ok((chars.iter().map(|char| char.value).collect(), names))
    }

    #[test]
    fn nested_includes_are_replaced_and_named_once() {
        let files = [
            ("outer.sql", "a\n-- include: inner.sql\n"),
            ("inner.sql", "b\n"),
        ];
        let text = "  -- include: outer.sql\n--include:inner.sql\nc";
        let (text, names) = expanded(&files, text).unwrap();
        assert_eq!(text, "  a\n  b\nb\nc\n");
        assert_eq!(names, ["outer.sql", "inner.sql"]);
    }

    #[test]
    fn a_cycle_is_named_where_it_closes() {
        let files = [
            ("a.sql", "\n-- include: b.sql"),
            ("b.sql", "-- include: a.sql"),
        ];
        let mistake = expanded(&files, "-- include: a.sql").unwrap_err();
        assert_eq!(
            mistake.to_string(),
            "sql/include/b.sql:1:1: include cycle: a.sql → b.sql → a.sql"
        );
    }

    #[test]
    fn a_missing_include_is_an_error_at_its_line() {
        let mistake = expanded(&[], "SELECT\n-- include: gone.sql").unwrap_err();
        assert_eq!(
            (mistake.file.as_str(), mistake.at),
            ("sql/task/x.sql", (4, 1))
        );
        assert!(
            mistake.what.contains("cannot read sql/include/gone.sql"),
            "{mistake}"
        );
    }

    #[test]
    fn an_include_stays_in_its_folder() {
        let mistake = expanded(&[], "-- include: ../task/x.sql").unwrap_err();
        assert!(
            mistake.what.contains("name of a file in sql/include/"),
            "{mistake}"
        );
    }
}
