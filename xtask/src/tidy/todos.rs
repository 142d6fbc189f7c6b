//! Work that is left open names its issue.

use super::finding::Finding;
use super::tree::Tree;

const WHY: &str = "a note without an issue is found by nobody";
/// In two parts, so that this file does not find itself.
const WORDS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const KINDS: [&str; 6] = [".rs", ".sql", ".sh", ".toml", ".yml", "Makefile"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        if !KINDS.iter().any(|kind| path.ends_with(kind)) && !path.starts_with("scripts/") {
            continue;
        }
        let code = tree
            .rust()
            .iter()
            .find(|file| file.path == path)
            .map(|file| &file.code);
        for (line, text) in (1..).zip(text.lines()) {
            // A constant may be called so; a note stands in a comment.
            let code = code
                .and_then(|code| code.get(line - 1))
                .map_or("", String::as_str);
            let open = WORDS
                .iter()
                .find(|word| has_word(text, word) && !has_word(code, word));
            if let Some(word) = open.filter(|_| !names_issue(text)) {
                findings.push(Finding {
                    file: path.to_owned(),
                    line,
                    what: format!("{word} without an issue"),
                    why: WHY,
                    fix: format!("do it now, or write `{word}(#123): …`"),
                });
            }
        }
    }
    findings
}

fn has_word(text: &str, word: &str) -> bool {
    let is_word =
        |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    text.match_indices(word).any(|(at, _)| {
        !is_word(text[..at].chars().next_back()) && !is_word(text[at + word.len()..].chars().next())
    })
}

fn names_issue(text: &str) -> bool {
    text.match_indices('#')
        .any(|(at, _)| text[at + 1..].starts_with(|char: char| char.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    //! With and without an issue.

    use super::super::finding::lines;
    use super::super::tree::Tree;
    use super::{WORDS, check};

    #[test]
    fn notes_without_an_issue_are_found() {
        let [first, second] = WORDS;
        let text = format!(
            "// {first}: a\n// {first}(#12): b\n// {second} c # d\n// {first}S e\nconst {first}: u8 = 1;\n"
        );
        let tree = Tree::of(&[("a.rs", &text), ("b.md", &text), ("scripts/prepare", &text)]);
        let expected = [
            ("a.rs", 1, first),
            ("a.rs", 3, second),
            ("scripts/prepare", 1, first),
            ("scripts/prepare", 3, second),
            // Only Rust is read closely enough to know a name from a note.
            ("scripts/prepare", 5, first),
        ]
        .map(|(path, line, word)| format!("{path}:{line} {word} without an issue"));
        assert_eq!(lines(&check(&tree)), expected);
    }
}
