//! Pieces of Rust text: literals, prose, lint attributes.

/// Prose as rustdoc takes it: outside backticks no link and no tag begins.
pub(super) fn markdown(prose: &str) -> String {
    let mut code = false;
    let mut out = String::with_capacity(prose.len());
    for char in prose.chars() {
        code ^= char == '`';
        if !code && matches!(char, '[' | ']' | '<' | '>') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// A raw string literal with as many hashes as it needs.
pub(super) fn raw_string(text: &str) -> String {
    let mut hashes = String::new();
    if text.contains('"') {
        hashes.push('#');
        while text.contains(&format!("\"{hashes}")) {
            hashes.push('#');
        }
    }
    format!("r{hashes}\"{text}\"{hashes}")
}

/// What clippy must be told about a struct with these field types.
pub(super) fn struct_lint<'a>(types: impl Iterator<Item = &'a str>) -> &'static str {
    if types.filter(|rust| *rust == "bool").count() > 3 {
        "#[expect(clippy::struct_excessive_bools, reason = \"the statement has them\")]\n"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    //! Quoting.

    use super::{markdown, raw_string};

    #[test]
    fn texts_take_no_more_hashes_than_they_need() {
        assert_eq!(raw_string("a"), "r\"a\"");
        assert_eq!(raw_string("\"a\""), "r#\"\"a\"\"#");
        assert_eq!(raw_string("\"#"), "r##\"\"#\"##");
    }

    #[test]
    fn prose_makes_no_links_and_no_tags() {
        assert_eq!(
            markdown("a[i] <b> `c[0] <d>`"),
            "a\\[i\\] \\<b\\> `c[0] <d>`"
        );
    }
}
