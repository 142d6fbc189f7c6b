//! A Rust file as text checks need it: without comments and literals, with its test code marked.
//!
//! Not a parser: it knows comments, literals, braces and attributes, which is all that the checks ask about.

mod mask;

use mask::mask;

/// A function and where it begins.
pub(super) struct Function {
    pub(super) name: String,
    /// Under an attribute like `#[test]` or `#[tokio::test]`.
    pub(super) is_test: bool,
}

/// A Rust file.
pub(super) struct RustFile {
    pub(super) path: String,
    /// Lines of code: comments and the inside of literals are blank.
    pub(super) code: Vec<String>,
    /// For each line whether it is test code.
    pub(super) is_test: Vec<bool>,
    functions: Vec<Function>,
}

impl RustFile {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let masked = mask(text);
        let code: Vec<String> = masked.lines().map(str::to_owned).collect();
        let whole = is_test_path(path);
        let mut is_test = vec![whole; code.len()];
        for (first, last) in test_items(&masked) {
            is_test[first..=last].fill(true);
        }
        let functions = functions(&code);
        Self {
            path: path.to_owned(),
            code,
            is_test,
            functions,
        }
    }

    pub(super) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter()
    }
}

/// Whether all of a file is test code: integration tests, and the files of test modules.
fn is_test_path(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    folder.split('/').any(|part| part == "tests")
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// First and last line, from 0, of each item under `#[cfg(test)]`.
fn test_items(masked: &str) -> Vec<(usize, usize)> {
    let line_of = |at: usize| masked[..at].matches('\n').count();
    let mut items = Vec::new();
    for (start, _) in masked.match_indices("#[cfg(test)]") {
        let mut depth = 0_usize;
        let end = masked[start..].char_indices().find_map(|(at, char)| {
            match char {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            let ends = depth == 0 && matches!(char, '}' | ';');
            ends.then_some(start + at)
        });
        items.push((
            line_of(start),
            line_of(end.unwrap_or(masked.trim_end().len())),
        ));
    }
    items
}

fn functions(code: &[String]) -> Vec<Function> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in code {
        let line = line.trim();
        if let Some(attribute) = line.strip_prefix("#[") {
            let path = attribute.split(['(', ']', ' ']).next().unwrap_or_default();
            is_test |= path.rsplit("::").next() == Some("test");
        }
        if let Some(name) = function_name(line) {
            found.push(Function {
                name: name.to_owned(),
                is_test,
            });
            is_test = false;
        } else if line == "}" {
            is_test = false;
        }
    }
    found
}

/// The name in a line like `pub async fn name<T>(…`.
fn function_name(line: &str) -> Option<&str> {
    let at = line
        .find("fn ")
        .filter(|&at| at == 0 || line[..at].ends_with([' ', ']']))?;
    let rest = &line[at + 3..];
    let end = rest
        .find(|char: char| !char.is_alphanumeric() && char != '_')
        .unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    //! Test code and test functions.

    use super::RustFile;

    const TEXT: &str = "fn a() { b.unwrap() }\n#[cfg(test)]\nmod tests {\n    // }\n    #[tokio::test(flavor = \"x\",\n    \
                        threads = 2)]\n    async fn t() { \"}\"; }\n    fn helper() {}\n}\nfn c() {}\n#[cfg(test)]\nuse d;\nfn e() {}\n";

    #[test]
    fn test_items_end_where_their_braces_do() {
        let file = RustFile::new("crates/a/src/lib.rs", TEXT);
        let tests: Vec<usize> = (1..)
            .zip(&file.is_test)
            .filter(|(_, test)| **test)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(tests, [2, 3, 4, 5, 6, 7, 8, 9, 11, 12]);
    }

    #[test]
    fn functions_are_found_with_what_they_are() {
        let file = RustFile::new("crates/a/src/lib.rs", TEXT);
        let found: Vec<(&str, bool)> = file
            .functions()
            .map(|function| (function.name.as_str(), function.is_test))
            .collect();
        assert_eq!(
            found,
            [
                ("a", false),
                ("t", true),
                ("helper", false),
                ("c", false),
                ("e", false)
            ]
        );
    }

    #[test]
    fn whole_files_are_tests_by_their_place() {
        for (path, expected) in [
            ("crates/a/tests/it/main.rs", true),
            ("crates/a/src/scan_tests.rs", true),
            ("crates/a/src/tests.rs", true),
            ("crates/a/src/contests.rs", false),
            ("crates/aegis-testkit/src/lib.rs", false),
        ] {
            assert_eq!(
                RustFile::new(path, "fn a() {}").is_test,
                [expected],
                "{path}"
            );
        }
    }
}
