//! Every crate has its row in ARCHITECTURE.md: a link into its sources. What stands in a workspace of its own,
//! and examples, are no rooms of the house.

use super::finding::Finding;
use super::tree::Tree;

const MAP: &str = "ARCHITECTURE.md";
const WHY: &str =
    "a newcomer looks for a room on the map, and builds a second one where the first is not drawn";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(map) = tree.text(MAP) else {
        return Vec::new();
    };
    tree.texts()
        .filter_map(|(path, _)| {
            let folder = path
                .strip_suffix("/src/lib.rs")
                .or_else(|| path.strip_suffix("/src/main.rs"))?;
            Some((folder, path)).filter(|(folder, _)| tree.exists(&format!("{folder}/Cargo.toml")))
        })
        .filter(|(folder, _)| {
            !["bench/", "examples/"]
                .iter()
                .any(|beside| folder.starts_with(beside))
        })
        .filter(|(folder, _)| !map.contains(&format!("]({folder}/src/")))
        .map(|(folder, path)| Finding {
            file: MAP.to_owned(),
            line: 0,
            what: format!("does not show {folder}"),
            why: WHY,
            fix: format!("add a row to the code map, with a link to {path}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    //! A crate with a row, and crates without one.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn a_crate_that_the_map_does_not_show_is_found() {
        let tree = Tree::of(&[
            (
                "ARCHITECTURE.md",
                "| [a](crates/a/src/lib.rs) | b, crates/b/src/lib.rs |\n",
            ),
            ("crates/a/Cargo.toml", "[package]\n"),
            ("crates/a/src/lib.rs", "//! A.\n"),
            ("crates/b/Cargo.toml", "[package]\n"),
            ("crates/b/src/lib.rs", "//! B.\n"),
            ("tool/Cargo.toml", "[package]\n"),
            ("tool/src/main.rs", "//! A tool.\n"),
            ("tool/src/deeper/src/main.rs", "//! No crate.\n"),
            ("examples/e/Cargo.toml", "[package]\n"),
            ("examples/e/src/main.rs", "//! An example.\n"),
        ]);
        let expected =
            ["crates/b", "tool"].map(|name| format!("ARCHITECTURE.md:0 does not show {name}"));
        assert_eq!(lines(&check(&tree)), expected);
    }
}
