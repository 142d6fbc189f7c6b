//! The head of a statement file: prose, then what the statement locks, uses, fences and returns.
//!
//! Invariant: `lock`, `index`, `fence` and `returns` are always stated; a fence is an include or a reason.

use super::Mistake;
use super::source::include_name;

const KEYS: [&str; 6] = ["lock", "index", "fence", "returns", "nullable", "batch"];

/// How many rows a statement gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Returns {
    Many,
    Optional,
    One,
    /// No rows: the number of those affected.
    Count,
    /// `COPY … FROM STDIN BINARY`: the caller sends the rows; only its text and its columns' types are generated.
    Copy,
}

/// What must match before a write is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fence {
    Includes(Vec<String>),
    None(String),
}

/// A parsed head.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// Lines of prose; an empty one parts paragraphs.
    pub(super) prose: Vec<String>,
    pub(super) lock: String,
    pub(super) index: String,
    pub(super) fence: Fence,
    pub(super) returns: Returns,
    pub(super) nullable: Vec<String>,
    /// Ascending; empty without a `batch` line.
    pub(super) batch: Vec<usize>,
    /// Line of the `fence` key, for mistakes found later.
    pub(super) fence_line: u32,
    /// First line after the head, from 1.
    pub(super) body_line: u32,
}

struct Entry {
    key: &'static str,
    value: String,
    line: u32,
}

/// Reads the head of `text`.
pub(super) fn parse(file: &str, text: &str) -> Result<Header, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let mut prose = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut body_line = 1;
    for (line, text) in (1..).zip(text.lines()) {
        body_line = line;
        let Some(comment) = text
            .strip_prefix("--")
            .filter(|_| include_name(text).is_none())
        else {
            break;
        };
        body_line = line + 1;
        let content = comment.strip_prefix(' ').unwrap_or(comment).trim_end();
        if let Some((key, value)) = entry(content) {
            if entries.iter().any(|known| known.key == key) {
                mistakes.push(at(file, line, format!("`{key}` stands twice")));
            }
            entries.push(Entry {
                key,
                value: value.to_owned(),
                line,
            });
        } else if let Some(last) = entries.last_mut() {
            if content.starts_with("  ") {
                last.value.push(' ');
                last.value.push_str(content.trim());
            } else if !content.is_empty() {
                let keys = KEYS.join(", ");
                let what = format!(
                    "`{content}` is neither a key ({keys}) nor the continuation of one (two more spaces)"
                );
                mistakes.push(at(file, line, what));
            }
        } else {
            prose.push(content.to_owned());
        }
    }
    while prose.last().is_some_and(String::is_empty) {
        prose.pop();
    }
    if prose.first().is_none_or(String::is_empty) {
        mistakes.push(at(
            file,
            1,
            "the file must open with a comment that says what the statement does",
        ));
    }
    assemble(file, prose, &entries, body_line, mistakes)
}

fn entry(content: &str) -> Option<(&'static str, &str)> {
    let (key, value) = content.split_once(':')?;
    let key = KEYS.into_iter().find(|&known| known == key)?;
    Some((key, value.trim()))
}

fn assemble(
    file: &str,
    prose: Vec<String>,
    entries: &[Entry],
    body_line: u32,
    mut mistakes: Vec<Mistake>,
) -> Result<Header, Vec<Mistake>> {
    let find = |key| entries.iter().find(|entry| entry.key == key);
    let mut required = |key| {
        let entry = find(key).filter(|entry| !entry.value.is_empty());
        if entry.is_none() {
            let line = find(key).map_or(1, |entry| entry.line);
            mistakes.push(at(file, line, format!("the head must say `{key}: …`")));
        }
        entry.map_or(("", 1), |entry| (entry.value.as_str(), entry.line))
    };
    let (lock, index) = (required("lock").0, required("index").0);
    let (fence, fence_line) = required("fence");
    let (returns, returns_line) = required("returns");

    let fence = match fence.strip_prefix("none") {
        Some(reason) => {
            let reason = reason.trim_start_matches(':').trim();
            if reason.is_empty() {
                mistakes.push(at(
                    file,
                    fence_line,
                    "`fence: none` needs a reason: `fence: none: why`",
                ));
            }
            Fence::None(reason.to_owned())
        }
        None => Fence::Includes(words(fence)),
    };
    let returns = match returns {
        "many" => Returns::Many,
        "optional" => Returns::Optional,
        "one" => Returns::One,
        "count" | "" => Returns::Count,
        "copy" => Returns::Copy,
        other => {
            let what = format!("`returns: {other}` is none of many, optional, one, count, copy");
            mistakes.push(at(file, returns_line, what));
            Returns::Count
        }
    };
    let nullable = find("nullable").map_or_else(Vec::new, |entry| words(&entry.value));
    let mut batch = Vec::new();
    if let Some(entry) = find("batch") {
        match words(&entry.value)
            .iter()
            .map(|size| size.parse())
            .collect::<Result<Vec<usize>, _>>()
        {
            Ok(sizes) if !sizes.is_empty() && sizes[0] > 0 && sizes.is_sorted_by(|a, b| a < b) => {
                batch = sizes;
            }
            _ => mistakes.push(at(
                file,
                entry.line,
                "`batch` takes ascending sizes: `batch: 1, 10, 100`",
            )),
        }
    }

    if mistakes.is_empty() {
        let (lock, index) = (lock.to_owned(), index.to_owned());
        Ok(Header {
            prose,
            lock,
            index,
            fence,
            returns,
            nullable,
            batch,
            fence_line,
            body_line,
        })
    } else {
        Err(mistakes)
    }
}

fn words(list: &str) -> Vec<String> {
    list.split(',')
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

fn at(file: &str, line: u32, what: impl Into<String>) -> Mistake {
    Mistake {
        file: file.to_owned(),
        at: (line, 1),
        what: what.into(),
    }
}

#[cfg(test)]
mod tests {
    //! A whole head, and each way to get one wrong.

    use super::{Fence, Returns, parse};

    const GOOD: &str = "-- Completes a group.\n-- Slowly.\n--\n-- More: prose.\n--\n-- lock: rows,\n--   in id order\n\
                        -- index: task_pkey\n-- fence: guard.sql\n-- returns: many\n-- nullable: a, b\n\
                        -- batch: 1, 10\n-- include: guard.sql\nSELECT 1";

    fn complaint(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "the fixture no longer holds {from:?}");
        let mistakes = parse("x.sql", &GOOD.replace(from, to)).unwrap_err();
        mistakes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_whole_head_is_read_and_ends_before_the_include() {
        let header = parse("x.sql", GOOD).unwrap();
        assert_eq!(
            header.prose,
            ["Completes a group.", "Slowly.", "", "More: prose."]
        );
        assert_eq!(header.lock, "rows, in id order");
        assert_eq!(header.index, "task_pkey");
        assert_eq!(header.fence, Fence::Includes(vec!["guard.sql".to_owned()]));
        assert_eq!(header.returns, Returns::Many);
        assert_eq!(header.nullable, ["a", "b"]);
        assert_eq!(header.batch, [1, 10]);
        assert_eq!((header.fence_line, header.body_line), (9, 13));
    }

    #[test]
    fn every_required_key_is_missed_by_name() {
        for key in [
            "lock: rows,",
            "index: task_pkey",
            "fence: guard.sql",
            "returns: many",
        ] {
            let name = key.split(':').next().unwrap();
            let said = complaint(&format!("-- {key}\n"), "");
            assert!(said.contains(&format!("must say `{name}: …`")), "{said}");
        }
    }

    #[test]
    fn a_fence_of_none_needs_its_reason() {
        assert!(
            complaint("fence: guard.sql", "fence: none").contains("x.sql:9:1: `fence: none` needs")
        );
        let header = parse(
            "x.sql",
            &GOOD.replace("fence: guard.sql", "fence: none: reads only"),
        )
        .unwrap();
        assert_eq!(header.fence, Fence::None("reads only".to_owned()));
    }

    #[test]
    fn wrong_values_are_told_apart() {
        assert!(
            complaint("returns: many", "returns: some")
                .contains("none of many, optional, one, count")
        );
        assert!(complaint("batch: 1, 10", "batch: 10, 1").contains("ascending sizes"));
        assert!(complaint("batch: 1, 10", "batch: ten").contains("ascending sizes"));
        assert!(
            complaint("nullable: a, b", "nulable: a, b")
                .contains("`nulable: a, b` is neither a key")
        );
        assert!(complaint("nullable: a, b", "lock: again").contains("`lock` stands twice"));
        assert!(
            complaint(
                "-- Completes a group.\n-- Slowly.\n--\n-- More: prose.\n",
                ""
            )
            .contains("must open")
        );
    }
}
