//! Every measured fact of `docs/measured.md` is shown by a test with its number in the name.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::markdown::rows;
use super::tree::Tree;

const PAGE: &str = "docs/measured.md";
const WHY: &str = "the engine's form rests on these facts; a new PostgreSQL may change one";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else {
        return Vec::new();
    };
    let mut tests: BTreeMap<usize, &str> = BTreeMap::new();
    for name in tree.functions(true) {
        tests.extend(test_number(name).map(|number| (number, name)));
    }
    let mut findings = Vec::new();
    let mut last = 0;
    for row in rows(page) {
        let Some(number) = row.cells[0]
            .strip_prefix('M')
            .and_then(|digits| digits.parse().ok())
        else {
            continue;
        };
        let mut complain = |what: String, fix: String| {
            findings.push(Finding {
                file: PAGE.to_owned(),
                line: row.line,
                what,
                why: WHY,
                fix,
            });
        };
        if number != last + 1 {
            complain(
                format!("M{number} follows M{last}"),
                "list every number once, in order".to_owned(),
            );
        }
        last = number;
        let remark = row.cells.get(2).copied().unwrap_or_default();
        let reason = remark.strip_prefix("not shown:").map(str::trim);
        match (tests.remove(&number), reason) {
            (None, None) => complain(
                format!("M{number} has no test"),
                format!(
                    "write a test `m{number:02}_…`, or say `not shown: why` in the third column"
                ),
            ),
            (None, Some("")) => {
                complain(
                    format!("M{number} is not shown, and why is not said"),
                    "give the reason".to_owned(),
                );
            }
            (Some(test), Some(_)) => {
                complain(
                    format!("M{number} is shown by `{test}`"),
                    "take `not shown` out".to_owned(),
                );
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
    findings.extend(tests.iter().map(|(number, test)| Finding {
        file: PAGE.to_owned(),
        line: 0,
        what: format!("`{test}` shows M{number}, which has no row"),
        why: WHY,
        fix: "add the row, or rename the test".to_owned(),
    }));
    findings
}

/// 7 for `m07_…`.
fn test_number(name: &str) -> Option<usize> {
    let (number, _) = name.strip_prefix('m')?.split_once('_')?;
    if number.len() == 2 {
        number.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    //! Shown, not shown, and both at once.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn rows_and_tests_must_agree() {
        let page = "| M | fact | remark |\n|---|---|---|\n| M1 | a |\n| M2 | b |\n| M3 | c | not shown: needs a failover |\n\
                    | M4 | d | not shown: |\n| M5 | e | not shown: x |\n| M7 | f |\n";
        let code = "//! T.\n#[test]\nfn m01_a() {}\nfn m02_is_no_test() {}\n#[test]\nfn m05_e() {}\n#[tokio::test]\n\
                    async fn m07_f() {}\n#[test]\nfn m99_z() {}\n#[test]\nfn m1_short() {}\n";
        let tree = Tree::of(&[
            ("docs/measured.md", page),
            ("crates/a/tests/it/main.rs", code),
        ]);
        assert_eq!(
            lines(&check(&tree)),
            [
                "docs/measured.md:4 M2 has no test",
                "docs/measured.md:6 M4 is not shown, and why is not said",
                "docs/measured.md:7 M5 is shown by `m05_e`",
                "docs/measured.md:8 M7 follows M5",
                "docs/measured.md:0 `m99_z` shows M99, which has no row",
            ]
        );
    }
}
