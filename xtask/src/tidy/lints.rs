//! Every crate takes the workspace's lints.

use super::finding::Finding;
use super::tree::Tree;

const WHY: &str = "a crate outside the lints may hold unsafe code and undocumented items unseen";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.texts()
        .filter(|(path, text)| path.ends_with("Cargo.toml") && text.contains("[package]"))
        .filter(|(_, text)| !takes_workspace_lints(text))
        .map(|(path, _)| Finding {
            file: path.to_owned(),
            line: 0,
            what: "does not take the workspace's lints".to_owned(),
            why: WHY,
            fix: "add `[lints]` with `workspace = true`".to_owned(),
        })
        .collect()
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[lints]")
        .skip(1);
    lines.find(|line| !line.is_empty() && !line.starts_with('#')) == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    //! With, without, and in another table.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let tree = Tree::of(&[
            ("Cargo.toml", "[workspace]\n"),
            (
                "crates/a/Cargo.toml",
                "[package]\n[lints]\n# all\nworkspace = true\n",
            ),
            (
                "crates/b/Cargo.toml",
                "[package]\n[dependencies]\nworkspace = true\n",
            ),
            (
                "crates/c/Cargo.toml",
                "[package]\n[lints]\n[dependencies]\nworkspace = true\n",
            ),
        ]);
        let what = "does not take the workspace's lints";
        let expected = ["b", "c"].map(|name| format!("crates/{name}/Cargo.toml:0 {what}"));
        assert_eq!(lines(&check(&tree)), expected);
    }
}
