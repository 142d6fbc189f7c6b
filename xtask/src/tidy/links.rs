//! Links between the pages of the repository lead somewhere.

use super::finding::Finding;
use super::markdown::{anchors, link_targets, prose_lines};
use super::tree::{Tree, has_extension};

const WHY: &str = "a reader who follows a dead link stops reading";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, text) in prose_lines(text) {
            for target in link_targets(text) {
                let Some(what) = complaint(tree, path, &target) else {
                    continue;
                };
                findings.push(Finding {
                    file: path.to_owned(),
                    line,
                    what,
                    why: WHY,
                    fix: "correct the link, or take it out".to_owned(),
                });
            }
        }
    }
    findings
}

fn complaint(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = resolve(from, file)?;
    if !tree.exists(&file) {
        return Some(format!("dead link `{target}`: there is no `{file}`"));
    }
    let page = tree.text(&file).filter(|_| has_extension(&file, "md"))?;
    let dead = !anchor.is_empty() && !anchors(page).iter().any(|known| known == anchor);
    dead.then(|| format!("dead link `{target}`: `{file}` has no heading `#{anchor}`"))
}

/// The path that `target` means on the page `from`; none for one that leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    let (mut parts, target) = match target.strip_prefix('/') {
        Some(absolute) => (Vec::new(), absolute),
        None => (
            from.split('/')
                .rev()
                .skip(1)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect(),
            target,
        ),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            // Above the root lie pages of the forge (`../../issues`): not ours to judge.
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    //! Files, folders, anchors.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn dead_links_are_found_and_living_ones_are_not() {
        let page = "# Head\n[a](../README.md) [b](#head) [c](/docs) [d](https://x.y/z) [e](../../issues)\n\
                    [f](gone.md)\n[g](../README.md#gone)\n[h](#gone)\n```\n[i](gone.md)\n```\n[j]: gone.md\n";
        let tree = Tree::of(&[
            ("README.md", "# Read me\n[k](docs/a.md#head)"),
            ("docs/a.md", page),
        ]);
        assert_eq!(
            lines(&check(&tree)),
            [
                "docs/a.md:3 dead link `gone.md`: there is no `docs/gone.md`",
                "docs/a.md:4 dead link `../README.md#gone`: `README.md` has no heading `#gone`",
                "docs/a.md:5 dead link `#gone`: `docs/a.md` has no heading `#gone`",
                "docs/a.md:9 dead link `gone.md`: there is no `docs/gone.md`",
            ]
        );
    }
}
