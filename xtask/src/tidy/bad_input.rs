//! Every kind of bad input in `docs/bad-input.md` names the test that shows its message.

use super::finding::Finding;
use super::markdown::{code_spans, rows};
use super::tree::Tree;

const PAGE: &str = "docs/bad-input.md";
const WHY: &str = "a message that no test shows is one that nobody has read";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(PAGE) else {
        return Vec::new();
    };
    let tests = tree.functions(true);
    let mut findings = Vec::new();
    for row in rows(text) {
        let mut complain = |what: String| {
            let fix = "write `| input | message | `test` |` with the name of a test".to_owned();
            findings.push(Finding {
                file: PAGE.to_owned(),
                line: row.line,
                what,
                why: WHY,
                fix,
            });
        };
        let named = row
            .cells
            .get(2)
            .map(|cell| code_spans(cell))
            .unwrap_or_default();
        if named.is_empty() {
            complain("the third column names no test".to_owned());
        }
        for name in named
            .into_iter()
            .filter(|name| !tests.contains(last_segment(name)))
        {
            complain(format!("there is no test `{name}`"));
        }
    }
    findings
}

/// `c` of `a::b::c`.
pub(super) fn last_segment(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    //! Rows with and without a test.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn rows_must_name_a_test_that_exists() {
        let page = "| input | message | test |\n|---|---|---|\n| a | b | `config::refuses_a` |\n| c | d | `gone` |\n\
                    | e | f | `helper` |\n| g | h |  |\n| i | j |\n";
        let code = "//! T.\n#[test]\nfn refuses_a() {}\nfn helper() {}\n";
        let tree = Tree::of(&[
            ("docs/bad-input.md", page),
            ("crates/a/tests/it/main.rs", code),
        ]);
        assert_eq!(
            lines(&check(&tree)),
            [
                "docs/bad-input.md:4 there is no test `gone`",
                "docs/bad-input.md:5 there is no test `helper`",
                "docs/bad-input.md:6 the third column names no test",
                "docs/bad-input.md:7 the third column names no test",
            ]
        );
    }
}
