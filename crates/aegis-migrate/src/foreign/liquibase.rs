//! Liquibase's SQL with comments: each changeset is deployed by itself, with a transaction of its own.
//!
//! Invariants: a changeset stands at its own lines, all others are blank; one for another database is left out, as Liquibase does.

use super::annotations::{Forward, Refused};
use super::placeholder::Values;
use super::tool::{Tool, Wrapping};

/// Each changeset stands at its own lines, behind as many blank ones: most of these in all.
const BLANKS_MAX: usize = 64 << 20;

struct Changeset {
    name: String,
    wrapping: Wrapping,
    delimiter: Option<String>,
    is_ours: bool,
    text: String,
    /// How many lines the text has.
    lines: usize,
    notes: Vec<(usize, String)>,
}

/// The changesets of a file, in its order.
pub(super) fn forward(text: &str) -> Result<Vec<Forward>, Refused> {
    let mut values = Values::default();
    let mut all: Vec<Changeset> = Vec::new();
    let mut ignored = 0_usize;
    let mut blanks = 0_usize;
    for (index, line) in text.lines().enumerate() {
        let said = line.trim().strip_prefix("--").map(str::trim);
        let is = |said: &str, word: &str| {
            said.get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        match said {
            Some(said) if is(said, "changeset ") => {
                blanks += index + 1;
                if blanks > BLANKS_MAX {
                    let what = format!(
                        "{} changesets so far, too many in so long a file",
                        all.len() + 1
                    );
                    return Err((index + 1, what, "split the file"));
                }
                all.push(changeset(&said["changeset ".len()..], index));
                continue;
            }
            Some(said) if is(said, "property ") => property(said, &mut values),
            Some(said) if is(said, "ignoreLines:") => {
                let many = said["ignoreLines:".len()..].trim();
                ignored = match many {
                    "start" => usize::MAX,
                    "end" => 0,
                    many => many.parse().unwrap_or(0),
                };
                continue;
            }
            _ => {}
        }
        if ignored > 0 {
            if ignored != usize::MAX {
                ignored -= 1;
            }
            continue;
        }
        let Some(open) = all.last_mut() else {
            if said.is_none() && !line.trim().is_empty() {
                let what = "SQL above the first `--changeset`".to_owned();
                return Err((index + 1, what, "write `--changeset AUTHOR:ID` above it"));
            }
            continue;
        };
        let line = values.fill(line, index + 1, &mut open.notes);
        let blank = index - open.lines;
        open.text.extend(std::iter::repeat_n('\n', blank));
        open.lines = index + 1;
        open.text
            .push_str(&delimited(&line, open.delimiter.as_deref()));
        open.text.push('\n');
    }
    if all.is_empty() {
        let what = "there is no `--changeset` in it".to_owned();
        return Err((
            1,
            what,
            "Liquibase runs nothing of it; write `--changeset AUTHOR:ID` above what is to run",
        ));
    }
    Ok(all
        .into_iter()
        .filter(|one| one.is_ours)
        .map(|one| {
            let mut forward = Forward::part(one.text, one.wrapping, one.name);
            forward.notes = one.notes;
            forward
        })
        .collect())
}

fn changeset(words: &str, index: usize) -> Changeset {
    let mut parts = words.split_whitespace();
    let name = parts.next().unwrap_or_default().to_owned();
    let attribute = |wanted: &str| {
        words.split_whitespace().skip(1).find_map(|part| {
            let (key, value) = part.split_once(':')?;
            key.eq_ignore_ascii_case(wanted)
                .then(|| value.trim_matches('"').to_owned())
        })
    };
    let says_no =
        |wanted: &str| attribute(wanted).is_some_and(|value| value.eq_ignore_ascii_case("false"));
    let wrapping = match (says_no("runInTransaction"), says_no("splitStatements")) {
        (false, _) => Tool::Liquibase.wrapping(),
        (true, false) => Wrapping::Each,
        (true, true) => Wrapping::OneQuery,
    };
    let is_ours = attribute("dbms").is_none_or(|dbms| {
        let has = |word: &str| {
            dbms.split(',')
                .any(|one| one.trim().eq_ignore_ascii_case(word))
        };
        (has("postgresql") || has("all") || dbms.split(',').all(|one| one.trim().starts_with('!')))
            && !has("!postgresql")
    });
    Changeset {
        name,
        wrapping,
        delimiter: attribute("endDelimiter").filter(|one| one != ";" && !one.is_empty()),
        is_ours,
        text: "\n".repeat(index + 1),
        lines: index + 1,
        notes: Vec::new(),
    }
}

/// `--property name:x value:y`.
fn property(said: &str, values: &mut Values) {
    let part = |wanted: &str| {
        said.split_whitespace().find_map(|part| {
            let (key, value) = part.split_once([':', '='])?;
            (key == wanted).then_some(value)
        })
    };
    if let (Some(name), Some(value)) = (part("name"), part("value")) {
        values.set(name, value);
    }
}

/// A line that ends with another delimiter ends with a semicolon.
fn delimited(line: &str, delimiter: Option<&str>) -> String {
    match delimiter.and_then(|end| line.trim_end().strip_suffix(end)) {
        Some(rest) => format!("{rest};"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changeset_stands_at_its_lines_with_its_own_transaction() {
        let text = "--liquibase formatted sql\n\n--changeset ann:1\nSELECT 1;\n--rollback DROP TABLE a;\n\
            --changeset ann:2 runInTransaction:false\nSELECT 2;\n--changeset bob:3 dbms:mysql\nSELECT `3`;\n\
            --changeset bob:4 runInTransaction:false splitStatements:false\nSELECT 4;\n\
            --changeset bob:5 endDelimiter:/\nSELECT 5\n/\n";
        let parts = forward(text).ok().unwrap();
        let seen: Vec<(Option<&str>, &str, Wrapping)> = parts
            .iter()
            .map(|one| (one.name.as_deref(), one.text.as_str(), one.wrapping))
            .collect();
        assert_eq!(
            seen,
            [
                (
                    Some("ann:1"),
                    "\n\n\nSELECT 1;\n--rollback DROP TABLE a;\n",
                    Wrapping::Transaction
                ),
                (Some("ann:2"), "\n\n\n\n\n\nSELECT 2;\n", Wrapping::Each),
                (
                    Some("bob:4"),
                    "\n\n\n\n\n\n\n\n\n\nSELECT 4;\n",
                    Wrapping::OneQuery
                ),
                (
                    Some("bob:5"),
                    "\n\n\n\n\n\n\n\n\n\n\n\nSELECT 5\n;\n",
                    Wrapping::Transaction
                ),
            ]
        );
    }

    #[test]
    fn a_file_that_would_fill_the_memory_with_blank_lines_is_refused() {
        let many = |changesets: usize| "--changeset a:1\n".repeat(changesets) + "SELECT 1;\n";
        assert!(forward(&many(1000)).is_ok());
        let (line, what, _) = forward(&many(12_000)).err().unwrap();
        assert_eq!(line, 11_585);
        assert_eq!(what, "11585 changesets so far, too many in so long a file");
    }

    #[test]
    fn what_liquibase_would_not_run_is_told_or_left_out() {
        assert_eq!(
            forward("--liquibase formatted sql\nSELECT 1;\n")
                .err()
                .unwrap()
                .0,
            2
        );
        assert_eq!(forward("--liquibase formatted sql\n").err().unwrap().0, 1);
        let text = "--liquibase formatted sql\n--property name:app value:orders\n--changeset a:1\n\
            --ignoreLines:1\nthis is no SQL\nSELECT '${app}', '${other}';\n";
        let parts = forward(text).ok().unwrap();
        assert_eq!(
            parts[0].text.trim(),
            "SELECT 'orders', 'placeholder_other';"
        );
        assert_eq!(parts[0].notes[0].0, 6);
    }
}
