//! Every public failure of `docs/replays.toml` has tests with its number in their names, or a reason why it has none.
//!
//! Invariant: what is found here is what `cargo xtask docs` prints; the table names no test, so none can be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::finding::Finding;
use super::tree::Tree;

const TABLE: &str = "docs/replays.toml";
const WHY: &str = "a failure that another engine's users met is either shown not to happen here, or known to be open";

/// The collections and how many numbers each has.
const COLLECTIONS: [(&str, u16); 2] = [("TE", 72), ("RL", 42)];

/// A number like `TE-07`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    /// Its place in [`COLLECTIONS`].
    collection: usize,
    number: u16,
}

impl Number {
    fn all() -> impl Iterator<Item = Self> {
        (0..COLLECTIONS.len()).flat_map(|collection| {
            (1..=COLLECTIONS[collection].1).map(move |number| Self { collection, number })
        })
    }

    fn parse(text: &str) -> Option<Self> {
        Self::all().find(|one| one.to_string() == text)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", COLLECTIONS[self.collection].0, self.number)
    }
}

/// One public failure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// Its number.
    pub(crate) id: String,
    /// Where it was reported.
    pub(crate) report: String,
    /// What its users met.
    #[serde(rename = "failure")]
    pub(crate) met: String,
    /// What its tests leave open.
    pub(crate) open: Option<String>,
    /// Why there is no test.
    pub(crate) not_here: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    failure: Vec<Failure>,
}

/// A test and its file.
pub(crate) type Test = (String, String);

/// The tests of each number.
pub(crate) type Tests = BTreeMap<String, BTreeSet<Test>>;

/// The table, and the tests of each number.
pub(crate) fn load(root: &Path) -> anyhow::Result<(Vec<Failure>, Tests)> {
    let tree = Tree::load(root)?;
    let text = tree.text(TABLE).unwrap_or_default();
    let table: Table = toml::from_str(text)?;
    let tests = tests(&tree)
        .into_iter()
        .map(|(number, tests)| (number.to_string(), tests))
        .collect();
    Ok((table.failure, tests))
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(TABLE) else {
        return Vec::new();
    };
    let finding = |line: usize, what: String, fix: &str| Finding {
        file: TABLE.to_owned(),
        line,
        what,
        why: WHY,
        fix: fix.to_owned(),
    };
    let table: Table = match toml::from_str(text) {
        Ok(table) => table,
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let line = text[..at].matches('\n').count() + 1;
            return vec![finding(line, error.message().to_owned(), "mend the table")];
        }
    };
    let mut tests = tests(tree);
    let mut wanted = Number::all();
    let mut findings = Vec::new();
    for failure in &table.failure {
        let line = line_of(text, &failure.id);
        let (Some(number), next) = (Number::parse(&failure.id), wanted.next()) else {
            findings.push(finding(
                line,
                format!("{} is no number of a collection", failure.id),
                "write TE-01 to TE-72, RL-01 to RL-42",
            ));
            continue;
        };
        if next != Some(number) {
            findings.push(finding(
                line,
                format!("{number} is out of its order"),
                "list every number once, in order",
            ));
            wanted = Number::all();
            let _ = wanted.by_ref().find(|one| *one == number);
        }
        let shown = tests.remove(&number);
        let (what, fix) = match (&shown, &failure.not_here, &failure.open) {
            (None, None, _) => (
                format!("{number} has no test and no reason"),
                "write a test with the number in its name, or say in `not_here` why there is none",
            ),
            (Some(_), Some(_), _) => (
                format!("{number} has a test and a reason why it has none"),
                "take `not_here` out; what the test leaves open goes into `open`",
            ),
            (_, Some(text), _) | (_, _, Some(text)) if text.trim().is_empty() => {
                (format!("{number} gives an empty reason"), "give it")
            }
            (None, Some(_), Some(_)) => (
                format!("{number} has no test that could leave something open"),
                "say all of it in `not_here`",
            ),
            _ => continue,
        };
        findings.push(finding(line, what, fix));
    }
    let listed: BTreeSet<Number> = table
        .failure
        .iter()
        .filter_map(|failure| Number::parse(&failure.id))
        .collect();
    findings.extend(
        Number::all()
            .filter(|number| !listed.contains(number))
            .map(|number| {
                finding(
                    0,
                    format!("{number} is not listed"),
                    "list every number once, in order",
                )
            }),
    );
    findings
}

/// The tests that bear each number in their names.
fn tests(tree: &Tree) -> BTreeMap<Number, BTreeSet<Test>> {
    let mut found: BTreeMap<Number, BTreeSet<Test>> = BTreeMap::new();
    for file in tree.rust() {
        for test in file.functions().filter(|function| function.is_test) {
            for number in numbers(&test.name) {
                let entry = (file.path.clone(), test.name.clone());
                found.entry(number).or_default().insert(entry);
            }
        }
    }
    found
}

/// TE-01 and RL-16 of `te_01_rl_16_…`.
fn numbers(name: &str) -> Vec<Number> {
    let words: Vec<&str> = name.split('_').collect();
    words
        .windows(2)
        .filter_map(|pair| Number::parse(&format!("{}-{}", pair[0].to_uppercase(), pair[1])))
        .collect()
}

/// The line, from 1, on which a number is given.
fn line_of(text: &str, id: &str) -> usize {
    let wanted = format!("id = \"{id}\"");
    (1..)
        .zip(text.lines())
        .find(|(_, line)| line.trim() == wanted)
        .map_or(0, |(line, _)| line)
}

#[cfg(test)]
mod tests {
    //! Shown, not shown, both, out of order, unknown, missing.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::{Number, check, numbers};

    fn table(change: impl Fn(&str) -> &'static str) -> String {
        let entry = |number: Number| {
            let number = number.to_string();
            let rest = change(&number);
            format!("[[failure]]\nid = \"{number}\"\nreport = \"r\"\nfailure = \"f\"\n{rest}\n")
        };
        Number::all().map(entry).collect()
    }

    fn found(table: &str, code: &str) -> Vec<String> {
        let code = format!("//! T.\n{code}");
        let tree = Tree::of(&[
            ("docs/replays.toml", table),
            ("crates/a/tests/it/main.rs", &code),
        ]);
        lines(&check(&tree))
    }

    #[test]
    fn a_number_has_a_test_or_a_reason() {
        let reason = "not_here = \"why\"";
        assert!(found(&table(|_| reason), "").is_empty());
        let text = table(|number| match number {
            "TE-01" | "TE-02" | "RL-42" => "",
            "TE-03" => "not_here = \" \"",
            "TE-04" => "open = \"o\"",
            "TE-05" => "open = \"o\"\nnot_here = \"n\"",
            _ => reason,
        });
        let code = "#[test]\nfn process_te_01_rl_42_a() {}\n#[test]\nfn te_06_b() {}\n#[test]\nfn te_04_c() {}\n\
                    fn te_02_is_no_test() {}\n#[test]\nfn late_02_d() {}\n";
        assert_eq!(
            found(&text, code),
            [
                "docs/replays.toml:7 TE-02 has no test and no reason",
                "docs/replays.toml:12 TE-03 gives an empty reason",
                "docs/replays.toml:22 TE-05 has no test that could leave something open",
                "docs/replays.toml:28 TE-06 has a test and a reason why it has none",
            ]
        );
    }

    #[test]
    fn every_number_stands_there_once_and_in_order() {
        let reason = "not_here = \"why\"";
        let whole = table(|_| reason);
        let without = whole.replacen("\"TE-02\"", "\"TE-73\"", 1);
        assert_eq!(
            found(&without, ""),
            [
                "docs/replays.toml:7 TE-73 is no number of a collection",
                "docs/replays.toml:0 TE-02 is not listed",
            ]
        );
        let twice = whole.replacen("\"TE-02\"", "\"TE-01\"", 1);
        let complaints = found(&twice, "");
        assert!(complaints[0].contains("TE-01 is out of its order"));
        assert!(
            complaints
                .iter()
                .any(|line| line.contains("TE-02 is not listed"))
        );
        assert!(found("[[failure]]\nid = 1\n", "")[0].starts_with("docs/replays.toml:2 "));
    }

    #[test]
    fn numbers_stand_anywhere_in_a_name() {
        let of =
            |name: &str| -> Vec<String> { numbers(name).iter().map(ToString::to_string).collect() };
        assert_eq!(of("m21_te_64_rl_05_x"), ["TE-64", "RL-05"]);
        assert!(of("late_02_te_2_rl_43_te").is_empty());
    }
}
