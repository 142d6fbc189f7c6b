//! Every Rust and SQL file opens with what it is for.

use super::finding::Finding;
use super::tree::Tree;

const WHY: &str =
    "a reader must learn at the first line what a file is for and what it must never do";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (extension, open) in [("rs", "//! "), ("sql", "-- ")] {
        for (path, text) in tree.with_extension(extension) {
            let first = text.lines().next().unwrap_or_default();
            if first
                .strip_prefix(open)
                .is_none_or(|prose| prose.trim().is_empty())
            {
                findings.push(Finding {
                    file: path.to_owned(),
                    line: 1,
                    what: format!("does not open with `{}` and prose", open.trim()),
                    why: WHY,
                    fix: "say in one sentence what the file is for".to_owned(),
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    //! Good and bad heads.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn files_without_a_head_are_found() {
        let tree = Tree::of(&[
            ("a.rs", "//! For.\n"),
            ("b.rs", "use x;\n"),
            ("c.rs", "//!\n"),
            ("d.rs", ""),
            ("e.sql", "-- For.\nSELECT 1"),
            ("f.sql", "SELECT 1 -- For."),
            ("g.md", "text"),
        ]);
        let found = lines(&check(&tree));
        assert_eq!(
            found,
            [
                "b.rs:1 does not open with `//!` and prose",
                "c.rs:1 does not open with `//!` and prose",
                "d.rs:1 does not open with `//!` and prose",
                "f.sql:1 does not open with `--` and prose",
            ]
        );
    }
}
