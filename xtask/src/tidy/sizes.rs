//! No file is so long that nobody reads it.

use super::finding::Finding;
use super::tree::{Tree, has_extension, is_generated};

/// Lines beside inline test modules.
const MAX_LINES: usize = 800;
const WHY: &str = "somebody new must find the place for a line of code at first sight";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let rust = tree.rust().iter().map(|file| {
        let inline_tests = if file.is_test.iter().all(|test| *test) {
            0
        } else {
            file.is_test.iter().filter(|test| **test).count()
        };
        (file.path.as_str(), file.code.len() - inline_tests)
    });
    let others = tree
        .texts()
        .filter(|(path, _)| has_extension(path, "sql") || has_extension(path, "sh"))
        .map(|(path, text)| (path, text.lines().count()));
    rust.chain(others)
        .filter(|&(path, lines)| lines > MAX_LINES && !is_generated(path))
        .map(|(path, lines)| Finding {
            file: path.to_owned(),
            line: 0,
            what: format!("{lines} lines beside its tests, the limit is {MAX_LINES}"),
            why: WHY,
            fix: "one verb, one file: move a part that has a name of its own".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    //! At the limit and above.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn only_what_is_above_the_limit_is_found_and_inline_tests_do_not_count() {
        let at_limit = "x\n".repeat(800);
        let above = "x\n".repeat(801);
        let with_tests = format!("{at_limit}#[cfg(test)]\nmod tests {{\n{above}}}\n");
        let tree = Tree::of(&[
            ("crates/a/src/limit.rs", &at_limit),
            ("crates/a/src/above.rs", &above),
            ("crates/a/src/tested.rs", &with_tests),
            ("crates/a/tests/it/long.rs", &above),
            ("crates/a/src/generated/task.rs", &above),
            ("crates/a/sql/long.sql", &above),
        ]);
        let found = lines(&check(&tree));
        let expected = [
            "crates/a/src/above.rs",
            "crates/a/tests/it/long.rs",
            "crates/a/sql/long.sql",
        ]
        .map(|path| format!("{path}:0 801 lines beside its tests, the limit is 800"));
        assert_eq!(found, expected);
    }
}
