//! What stands in comments for a tool: goose's Up and Down, sqlx's `no-transaction`, Flyway's placeholders.
//!
//! Invariants: lines keep their numbers; what goes back is blank.

use super::Tool;
use crate::change::normalised;

/// The part of a file that is run forwards.
pub(super) struct Forward {
    pub(super) text: String,
    pub(super) no_transaction: bool,
}

/// Line, what, and what to do.
type Refused = (usize, String, &'static str);

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

/// The part that is run forwards; `text` has LF only.
pub(super) fn forward(tool: Tool, text: &str) -> Result<Forward, Refused> {
    match tool {
        Tool::Goose => of_goose(text),
        Tool::Flyway => of_flyway(text),
        Tool::Sqlx => Ok(Forward {
            no_transaction: text
                .lines()
                .next()
                .is_some_and(|line| line.trim() == "-- no-transaction"),
            text: text.to_owned(),
        }),
        _ => Ok(Forward {
            text: text.to_owned(),
            no_transaction: false,
        }),
    }
}

fn of_goose(text: &str) -> Result<Forward, Refused> {
    let mut up = false;
    let mut seen = false;
    let mut no_transaction = false;
    let mut kept = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        if let Some(words) = goose(line) {
            match words.as_str() {
                "up" if seen => {
                    return Err((index + 1, "a second `-- +goose Up`".to_owned(), "keep one"));
                }
                "up" => (up, seen) = (true, true),
                "down" => up = false,
                "no transaction" => no_transaction = true,
                "statementbegin" | "statementend" | "envsub off" => {}
                "envsub on" => {
                    return Err((
                        index + 1,
                        "`-- +goose ENVSUB ON` fills the SQL from the environment".to_owned(),
                        "write the values into the file",
                    ));
                }
                other => {
                    let what = format!("`-- +goose {other}` is nothing that goose knows");
                    return Err((
                        index + 1,
                        what,
                        "write Up, Down, StatementBegin, StatementEnd or NO TRANSACTION",
                    ));
                }
            }
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
    Ok(Forward {
        text: normalised(&kept),
        no_transaction,
    })
}

fn of_flyway(text: &str) -> Result<Forward, Refused> {
    for (index, line) in text.lines().enumerate() {
        let code = line.split("--").next().unwrap_or_default();
        if let Some(at) = code.find("${") {
            let name: String = code[at..].chars().take(40).collect();
            return Err((
                index + 1,
                format!(
                    "a placeholder, {}",
                    name.split_inclusive('}').next().unwrap_or_default()
                ),
                "write its value into the file",
            ));
        }
    }
    Ok(Forward {
        text: text.to_owned(),
        no_transaction: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_back_is_blank_and_lines_stay() {
        let text =
            "-- +goose NO TRANSACTION\n-- +goose Up\nSELECT 1;\n-- +goose Down\nDROP TABLE a;\n";
        let up = forward(Tool::Goose, text).ok().unwrap();
        assert!(up.no_transaction);
        assert_eq!(up.text, "\n\nSELECT 1;\n");
        let below = "-- +goose Down\nDROP TABLE a;\n-- +goose Up\nSELECT 1;\n";
        assert_eq!(
            forward(Tool::Goose, below).ok().unwrap().text,
            "\n\n\nSELECT 1;\n"
        );
    }

    #[test]
    fn what_cannot_be_read_as_it_stands_is_told_with_its_line() {
        for (tool, text, line) in [
            (Tool::Goose, "SELECT 1;\n", 1),
            (Tool::Goose, "-- +goose Up\n-- +goose ENVSUB ON\n", 2),
            (Tool::Goose, "-- +goose Up\n-- +goose Upp\n", 2),
            (Tool::Flyway, "-- ${x}\nSELECT '${schema}';\n", 2),
        ] {
            assert_eq!(forward(tool, text).err().unwrap().0, line, "{text}");
        }
        assert!(
            forward(Tool::Sqlx, "-- no-transaction\nSELECT 1;\n")
                .ok()
                .unwrap()
                .no_transaction
        );
    }
}
