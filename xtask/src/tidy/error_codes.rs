//! Every error code has a page, every page a code, and nobody names a code that does not exist.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::tree::Tree;

/// Where codes are given out.
const SOURCE: &str = "crates/aegis-model/src/error_code.rs";
const PAGES: &str = "docs/errors/";
const WHY: &str = "whoever sees a code at night must find what it means and what to do";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(source) = tree.text(SOURCE) else {
        return Vec::new();
    };
    let known: BTreeMap<&str, usize> = codes(source)
        .into_iter()
        .rev()
        .map(|(line, code)| (code, line))
        .collect();
    let mut findings = Vec::new();
    for (code, line) in &known {
        let page = format!("{PAGES}{code}.md");
        let (what, fix) = match tree.text(&page) {
            None => (
                format!("{code} has no page"),
                format!("write {page}: meaning, cause, what to do"),
            ),
            Some(text)
                if !text
                    .lines()
                    .next()
                    .is_some_and(|first| first.contains(code)) =>
            {
                (
                    format!("the page of {code} does not open with it"),
                    format!("begin {page} with `# {code}: …`"),
                )
            }
            Some(_) => continue,
        };
        findings.push(finding(SOURCE, *line, what, fix));
    }
    for (path, _) in tree.texts().filter(|(path, _)| path.starts_with(PAGES)) {
        let name = path[PAGES.len()..].trim_end_matches(".md");
        let is_code = codes(name).first().is_some_and(|(_, code)| *code == name);
        if is_code && !known.contains_key(name) {
            let fix = format!("remove the page, or give the code out in {SOURCE}");
            findings.push(finding(path, 0, format!("{name} is no code"), fix));
        }
    }
    for (path, text) in tree
        .texts()
        .filter(|(path, _)| !path.starts_with("xtask/") && *path != SOURCE)
    {
        for (line, code) in codes(text)
            .into_iter()
            .filter(|(_, code)| !known.contains_key(code))
        {
            if path.starts_with(PAGES) && path.ends_with(&format!("{code}.md")) {
                continue;
            }
            let fix = format!("correct it, or give it out in {SOURCE}");
            findings.push(finding(path, line, format!("{code} is no code"), fix));
        }
    }
    findings
}

fn finding(file: &str, line: usize, what: String, fix: String) -> Finding {
    Finding {
        file: file.to_owned(),
        line,
        what,
        why: WHY,
        fix,
    }
}

/// Each `AEG-0000` with its line.
fn codes(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        for (at, _) in text.match_indices("AEG-") {
            let digits = text[at + 4..]
                .chars()
                .take_while(char::is_ascii_digit)
                .count();
            if digits == 4 {
                found.push((line, &text[at..at + 8]));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    //! Codes without pages, pages without codes, codes out of nowhere.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::{SOURCE, check};

    #[test]
    fn both_directions_are_checked() {
        let tree = Tree::of(&[
            (
                SOURCE,
                "//! Codes.\n\"AEG-0001\"\n\"AEG-0002\"\n\"AEG-0003\"\n\"AEG-0001\"\n",
            ),
            ("docs/errors/AEG-0001.md", "# AEG-0001: fenced\n"),
            ("docs/errors/AEG-0003.md", "# Fenced\n"),
            ("docs/errors/AEG-0004.md", "# AEG-0004: gone\n"),
            ("docs/errors/README.md", "# Errors\n"),
            ("crates/a/src/lib.rs", "//! Says AEG-0001 and AEG-0009.\n"),
        ]);
        assert_eq!(
            lines(&check(&tree)),
            [
                "crates/aegis-model/src/error_code.rs:3 AEG-0002 has no page",
                "crates/aegis-model/src/error_code.rs:4 the page of AEG-0003 does not open with it",
                "docs/errors/AEG-0004.md:0 AEG-0004 is no code",
                "crates/a/src/lib.rs:1 AEG-0009 is no code",
            ]
        );
    }

    #[test]
    fn without_codes_there_is_nothing_to_say() {
        let tree = Tree::of(&[("docs/errors/AEG-0004.md", "# AEG-0004\n")]);
        assert_eq!(check(&tree), []);
    }
}
