//! What `docs/claims.md` cites exists: files in backticks, functions as `name()` or `a::name`, and everything
//! in backticks below a column head that says "test".

use super::bad_input::last_segment;
use super::finding::Finding;
use super::markdown::{code_spans, prose_lines, rows};
use super::tree::Tree;

const PAGE: &str = "docs/claims.md";
const WHY: &str = "a claim is worth what stands behind it";
const EXTENSIONS: [&str; 7] = [".rs", ".sql", ".md", ".toml", ".sh", ".yml", ".json"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(PAGE) else {
        return Vec::new();
    };
    let functions = tree.functions(false);
    let tests = tree.functions(true);
    let mut findings = Vec::new();
    let mut complain = |line: usize, what: String| {
        let fix = "cite what is there, or take the claim out".to_owned();
        findings.push(Finding {
            file: PAGE.to_owned(),
            line,
            what,
            why: WHY,
            fix,
        });
    };
    for (line, text) in prose_lines(text) {
        for span in code_spans(text) {
            match cited(span) {
                Some(Cited::File(path)) if !tree.exists(path) => {
                    complain(line, format!("there is no file `{path}`"));
                }
                Some(Cited::Function(name)) if !functions.contains(name) => {
                    complain(line, format!("there is no function `{name}`"));
                }
                _ => {}
            }
        }
    }
    for row in rows(text) {
        let columns = row
            .cells
            .iter()
            .zip(&row.head)
            .filter(|(_, head)| head.to_lowercase().contains("test"));
        for span in columns.flat_map(|(cell, _)| code_spans(cell)) {
            if cited(span).is_none() && !tests.contains(span) {
                complain(row.line, format!("there is no test `{span}`"));
            }
        }
    }
    findings
}

enum Cited<'a> {
    File(&'a str),
    Function(&'a str),
}

/// What a code span cites; none for a command, a word, an address, a pattern.
fn cited(span: &str) -> Option<Cited<'_>> {
    if span.contains([' ', '*', '<', '{', '$', '|'])
        || span.starts_with(['/', '-', '~'])
        || span.contains("://")
    {
        return None;
    }
    let path = span.split(['#', ':']).next().unwrap_or(span);
    if (path.contains('/') && !path.starts_with("target/"))
        || EXTENSIONS.iter().any(|end| path.ends_with(end))
    {
        return Some(Cited::File(path));
    }
    let name = span.strip_suffix("()").unwrap_or(span);
    let function = last_segment(name);
    let is_name = !function.is_empty()
        && function
            .chars()
            .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_');
    ((span.ends_with("()") || span.contains("::")) && is_name).then_some(Cited::Function(function))
}

#[cfg(test)]
mod tests {
    //! Citations that hold and that do not.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::check;

    #[test]
    fn citations_must_exist() {
        let page = "Holds: `crates/a/src/lib.rs`, `crates/a/src/lib.rs:3`, `shows_it()`, `a::helper`, `make demo`, `/v1/tasks`,\n\
                    `lease_until`, `target/release/aegis`, `docs/*.md`, `Applied::Fenced`.\n\
                    Does not: `crates/gone.rs`, `gone()`, `a::gone`.\n\n\
                    | claim | test |\n|---|---|\n| a `word` | `shows_it` |\n| b | `helper` |\n";
        let code = "//! T.\n#[test]\nfn shows_it() {}\nfn helper() {}\n";
        let tree = Tree::of(&[("docs/claims.md", page), ("crates/a/src/lib.rs", code)]);
        assert_eq!(
            lines(&check(&tree)),
            [
                "docs/claims.md:3 there is no file `crates/gone.rs`",
                "docs/claims.md:3 there is no function `gone`",
                "docs/claims.md:3 there is no function `gone`",
                "docs/claims.md:8 there is no test `helper`",
            ]
        );
    }
}
