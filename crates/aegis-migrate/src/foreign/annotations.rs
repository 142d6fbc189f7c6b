//! What stands in comments for a tool: goose's, dbmate's and node-pg-migrate's Up and Down, what wants no transaction, placeholders.
//!
//! Invariants: lines keep their numbers; what goes back is blank.

use std::path::Path;

use super::placeholder::{self, Values};
use super::tool::{Tool, Wrapping};
use super::{liquibase, rows};
use crate::change::normalised;

/// A part of a file that is run forwards, by itself.
pub(super) struct Forward {
    pub(super) text: String,
    pub(super) wrapping: Wrapping,
    /// What was put in place of what is not known here: line and words.
    pub(super) notes: Vec<(usize, String)>,
    /// Its name in the file, where the file has several.
    pub(super) name: Option<String>,
}

impl Forward {
    const fn new(text: String, wrapping: Wrapping) -> Self {
        Self {
            text,
            wrapping,
            notes: Vec::new(),
            name: None,
        }
    }
}

/// What stands beside a file and says how it is run.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// It wants no transaction.
    no_transaction: bool,
    /// What its placeholders are filled with.
    values: Values,
}

impl Beside {
    /// Looks there, where the tool does.
    pub(super) fn of(tool: Tool, path: &Path, text: &str) -> Self {
        Self {
            no_transaction: match tool {
                Tool::Diesel => metadata_says_no_transaction(path),
                Tool::Flyway => conf_says_no_transaction(path),
                _ => false,
            },
            values: if tool == Tool::Flyway && text.contains("${") {
                Values::around(path)
            } else {
                Values::default()
            },
        }
    }
}

/// Line, what, and what to do.
pub(super) type Refused = (usize, String, &'static str);

/// Whether a file says `-- +goose`.
pub(super) fn is_goose(text: &str) -> bool {
    text.lines().any(|line| goose(line).is_some())
}

/// The words behind `-- +goose`.
fn goose(line: &str) -> Option<String> {
    let words = line.trim().strip_prefix("--")?.trim_start();
    let words = words.strip_prefix("+goose")?;
    Some(words.trim().to_ascii_lowercase())
}

/// The parts that are run forwards; `text` has LF only.
pub(super) fn forward(tool: Tool, beside: &Beside, text: &str) -> Result<Vec<Forward>, Refused> {
    let whole = |wrapping| Forward::new(text.to_owned(), wrapping);
    let unless = |outside: bool| {
        if outside {
            tool.without_transaction()
        } else {
            tool.wrapping()
        }
    };
    let one = match tool {
        Tool::Goose => of_goose(text)?,
        Tool::Flyway => of_flyway(beside, text),
        Tool::Liquibase => return liquibase::forward(text),
        Tool::Sqlx => whole(unless(text.starts_with("-- no-transaction"))),
        Tool::Atlas => whole(unless(head(text).any(|line| line == "atlas:txmode none"))),
        Tool::Diesel => whole(unless(beside.no_transaction)),
        Tool::Dbmate => of_dbmate(text)?,
        Tool::NodePgMigrate => of_node(text),
        Tool::Rails | Tool::Plain | Tool::Sqitch => {
            Forward::new(rows::without(text), tool.wrapping())
        }
        Tool::Refinery | Tool::GolangMigrate | Tool::Prisma | Tool::Supabase => {
            whole(tool.wrapping())
        }
    };
    Ok(vec![one])
}

/// What templates of the program around it fill is read as names.
pub(super) fn without_templates(mut parts: Vec<Forward>) -> Vec<Forward> {
    for part in parts.iter_mut().filter(|part| part.text.contains("{{")) {
        let mut templates = placeholder::Templates::default();
        let filled = part.text.split_inclusive('\n').enumerate();
        part.text = filled
            .map(|(index, line)| templates.fill(line, index + 1, &mut part.notes))
            .collect();
    }
    parts
}

/// The words of the comments that a file begins with.
fn head(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .take_while(|line| line.is_empty() || line.starts_with("--"))
        .filter_map(|line| line.strip_prefix("--").map(str::trim))
}

fn metadata_says_no_transaction(path: &Path) -> bool {
    let text = std::fs::read_to_string(path.with_file_name("metadata.toml")).unwrap_or_default();
    text.parse::<toml::Table>()
        .is_ok_and(|table| table.get("run_in_transaction") == Some(&toml::Value::Boolean(false)))
}

fn of_goose(text: &str) -> Result<Forward, Refused> {
    let mut up = false;
    let mut seen = false;
    let mut wrapping = Tool::Goose.wrapping();
    let mut filled = false;
    let mut kept = String::with_capacity(text.len());
    let mut notes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(words) = goose(line) {
            match words.as_str() {
                "up" if seen => {
                    return Err((index + 1, "a second `-- +goose Up`".to_owned(), "keep one"));
                }
                "up" => (up, seen) = (true, true),
                "down" => up = false,
                "no transaction" => wrapping = Tool::Goose.without_transaction(),
                "statementbegin" | "statementend" => {}
                "envsub on" => filled = true,
                "envsub off" => filled = false,
                other => {
                    let what = format!("`-- +goose {other}` is nothing that goose knows");
                    return Err((
                        index + 1,
                        what,
                        "write Up, Down, StatementBegin, StatementEnd, ENVSUB ON, ENVSUB OFF or NO TRANSACTION",
                    ));
                }
            }
        } else if up && filled {
            kept.push_str(&placeholder::of_environment(line, index + 1, &mut notes));
        } else if up {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    if !seen {
        return Err((
            1,
            "there is no `-- +goose Up` in it".to_owned(),
            "goose runs nothing of it; write it above what goes forwards",
        ));
    }
    let mut forward = Forward::new(normalised(&kept), wrapping);
    forward.notes = notes;
    Ok(forward)
}

fn of_dbmate(text: &str) -> Result<Forward, Refused> {
    let mut wrapping = Tool::Dbmate.wrapping();
    let mut seen = false;
    let kept = sections(text, |said| {
        if let Some(options) = said.strip_prefix("migrate:up") {
            seen = true;
            if options.contains("transaction:false") {
                wrapping = Tool::Dbmate.without_transaction();
            }
            return Some(true);
        }
        said.starts_with("migrate:down").then_some(false)
    });
    if !seen {
        return Err((
            1,
            "there is no `-- migrate:up` in it".to_owned(),
            "dbmate runs nothing of it; write it above what goes forwards",
        ));
    }
    Ok(Forward::new(kept, wrapping))
}

fn of_node(text: &str) -> Forward {
    let says = |line: &str, wanted: &str| {
        line.trim()
            .strip_prefix("--")
            .is_some_and(|said| said.trim().eq_ignore_ascii_case(wanted))
    };
    let kept = if text.lines().any(|line| says(line, "up migration")) {
        sections(text, |said| match said {
            "up migration" => Some(true),
            "down migration" => Some(false),
            _ => None,
        })
    } else {
        let forwards = text
            .lines()
            .take_while(|line| !says(line, "down migration"));
        forwards.fold(String::new(), |kept, line| kept + line + "\n")
    };
    Forward::new(kept, Tool::NodePgMigrate.wrapping())
}

/// The lines of the sections that go forwards; `of` says of a comment whether one begins, and which.
fn sections(text: &str, mut of: impl FnMut(&str) -> Option<bool>) -> String {
    let mut up = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let said = line
            .trim()
            .strip_prefix("--")
            .and_then(|said| of(&said.trim().to_ascii_lowercase()));
        match said {
            Some(begins) => up = begins,
            None if up => kept.push_str(line),
            None => {}
        }
        kept.push('\n');
    }
    kept
}

/// What a file of the same name with `.conf` behind it says to Flyway.
fn conf_says_no_transaction(path: &Path) -> bool {
    let Some(name) = path.file_name() else {
        return false;
    };
    let mut name = name.to_os_string();
    name.push(".conf");
    let text = std::fs::read_to_string(path.with_file_name(name)).unwrap_or_default();
    text.lines().any(|line| {
        let plain: String = line.split_whitespace().collect();
        plain.eq_ignore_ascii_case("executeInTransaction=false")
    })
}

fn of_flyway(beside: &Beside, text: &str) -> Forward {
    let wrapping = if beside.no_transaction {
        Tool::Flyway.without_transaction()
    } else {
        Tool::Flyway.wrapping()
    };
    let mut forward = Forward::new(String::new(), wrapping);
    for (index, line) in text.lines().enumerate() {
        forward
            .text
            .push_str(&beside.values.fill(line, index + 1, &mut forward.notes));
        forward.text.push('\n');
    }
    forward
}

impl Forward {
    /// A part of a file of several.
    pub(super) const fn part(text: String, wrapping: Wrapping, name: String) -> Self {
        Self {
            text,
            wrapping,
            notes: Vec::new(),
            name: Some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tool: Tool, text: &str) -> Forward {
        forward(tool, &Beside::default(), text)
            .ok()
            .unwrap()
            .remove(0)
    }

    #[test]
    fn what_goes_back_is_blank_and_lines_stay() {
        let text =
            "-- +goose NO TRANSACTION\n-- +goose Up\nSELECT 1;\n-- +goose Down\nDROP TABLE a;\n";
        let up = read(Tool::Goose, text);
        assert_eq!(up.wrapping, Wrapping::Each);
        assert_eq!(up.text, "\n\nSELECT 1;\n");
        let below = "-- +goose Down\nDROP TABLE a;\n-- +goose Up\nSELECT 1;\n";
        assert_eq!(read(Tool::Goose, below).text, "\n\n\nSELECT 1;\n");
        let mate = "-- migrate:up transaction:false\nSELECT 1;\n-- migrate:down\nDROP TABLE a;\n";
        let up = read(Tool::Dbmate, mate);
        assert_eq!(
            (up.text.as_str(), up.wrapping),
            ("\nSELECT 1;\n\n\n", Wrapping::OneQuery)
        );
        let node = "-- Up Migration\nSELECT 1;\n-- Down Migration\nDROP TABLE a;\n";
        assert_eq!(read(Tool::NodePgMigrate, node).text, "\nSELECT 1;\n\n\n");
        let node = "SELECT 1;\n-- Down Migration\nDROP TABLE a;\n";
        assert_eq!(read(Tool::NodePgMigrate, node).text, "SELECT 1;\n");
    }

    #[test]
    fn what_cannot_be_read_as_it_stands_is_told_with_its_line() {
        for (tool, text, line) in [
            (Tool::Goose, "SELECT 1;\n", 1),
            (Tool::Goose, "-- +goose Up\n-- +goose Upp\n", 2),
            (Tool::Dbmate, "SELECT 1;\n", 1),
        ] {
            let told = forward(tool, &Beside::default(), text);
            assert_eq!(told.err().unwrap().0, line, "{text}");
        }
    }

    #[test]
    fn what_wants_no_transaction_says_so() {
        let text = "-- no-transaction, since the index is built concurrently\nSELECT 1;\n";
        assert_eq!(read(Tool::Sqlx, text).wrapping, Wrapping::OneQuery);
        assert_eq!(
            read(Tool::Sqlx, "SELECT 1;\n").wrapping,
            Wrapping::Transaction
        );
        let atlas = "-- atlas:txmode none\n\nSELECT 1;\n";
        assert_eq!(read(Tool::Atlas, atlas).wrapping, Wrapping::Each);
        let late = "SELECT 1;\n-- atlas:txmode none\n";
        assert_eq!(read(Tool::Atlas, late).wrapping, Wrapping::Transaction);
    }

    #[test]
    fn placeholders_have_a_neutral_name_and_a_note() {
        let text = "-- +goose Up\n-- +goose ENVSUB ON\nCREATE TABLE ${APP}_a (b int DEFAULT $ONE, c text DEFAULT '${TWO:-x}');\n-- +goose ENVSUB OFF\nSELECT $1;\n";
        let up = read(Tool::Goose, text);
        assert!(
            up.text.contains(
                "CREATE TABLE placeholder_app_a (b int DEFAULT placeholder_one, c text DEFAULT 'x')"
            ) && up.text.contains("SELECT $1;"),
            "{}",
            up.text
        );
        let lines: Vec<usize> = up.notes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 3, 3]);
        let flyway = read(
            Tool::Flyway,
            "SELECT 1;\nCREATE TABLE ${flyway:defaultSchema}.a (b int);\n",
        );
        assert!(
            flyway
                .text
                .ends_with("CREATE TABLE placeholder_flyway_defaultschema.a (b int);\n")
        );
        assert_eq!(flyway.notes[0].0, 2);
    }
}
