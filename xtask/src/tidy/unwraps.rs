//! No `unwrap` and no `expect` outside tests.
//!
//! clippy says so too, but an attribute can silence it; this cannot be silenced.

use super::finding::Finding;
use super::tree::{Tree, is_generated};

/// Test code as a whole: only a dev-dependency of others, see `layers`.
const TESTKIT: &str = "crates/aegis-testkit/";
const WHY: &str = "a worker that panics on an answer it did not expect takes its tasks with it";
const CALLS: [&str; 5] = [
    ".unwrap()",
    ".expect(",
    ".unwrap_err()",
    "::unwrap)",
    "::unwrap(",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .rust()
        .iter()
        .filter(|file| !is_generated(&file.path) && !file.path.starts_with(TESTKIT))
    {
        for (line, (code, is_test)) in (1..).zip(file.code.iter().zip(&file.is_test)) {
            let found = CALLS.iter().find(|call| !is_test && code.contains(**call));
            findings.extend(found.map(|call| {
                Finding {
                    file: file.path.clone(),
                    line,
                    what: format!("`{call}` outside tests"),
                    why: WHY,
                    fix: "return the error with context, or make the state impossible by a type"
                        .to_owned(),
                }
            }));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! In code, in tests, in comments and strings.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn calls_in_code_are_found_and_nothing_else() {
        let text = "//! Head: a.unwrap().\n#[expect(lint, reason = \"x\")]\nfn a() { b.unwrap() }\n\
                    fn c() { d.expect(\"e\") }\nfn f() { \".unwrap()\"; g.unwrap_or(1) }\n\
                    #[cfg(test)]\nmod tests { fn h() { i.unwrap() } }\n";
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", text),
            ("crates/a/tests/it/main.rs", "fn a() { b.unwrap() }"),
            ("crates/aegis-testkit/src/lib.rs", "fn a() { b.unwrap() }"),
            ("crates/a/src/generated/x.rs", "fn a() { b.unwrap() }"),
        ]);
        assert_eq!(
            lines(&check(&tree)),
            [
                "crates/a/src/lib.rs:3 `.unwrap()` outside tests",
                "crates/a/src/lib.rs:4 `.expect(` outside tests"
            ]
        );
    }
}
