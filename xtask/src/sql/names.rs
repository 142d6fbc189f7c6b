//! Names: what a file, parameter or column may be called so that Rust and SQL agree.

/// Words that Rust keeps for itself.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Words that cannot even be written as raw identifiers.
const NEVER: &[&str] = &["self", "super", "crate", "_"];

/// Whether `name` is a lower-case ASCII identifier that both languages take.
pub(super) fn is_snake_case(name: &str) -> bool {
    name.starts_with(|char: char| char.is_ascii_lowercase())
        && name
            .chars()
            .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        && !NEVER.contains(&name)
}

/// `name` as a Rust identifier.
pub(super) fn identifier(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// `task_body` as `TaskBody`.
pub(super) fn pascal_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in name.split('_') {
        let mut chars = word.chars();
        out.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    //! Cases.

    use super::{identifier, is_snake_case, pascal_case};

    #[test]
    fn names_are_told_apart_and_turned() {
        assert!(
            is_snake_case("a1_b")
                && !is_snake_case("1a")
                && !is_snake_case("aB")
                && !is_snake_case("")
        );
        assert!(!is_snake_case("self") && !is_snake_case("?column?"));
        assert_eq!(
            (identifier("type").as_str(), identifier("kind").as_str()),
            ("r#type", "kind")
        );
        assert_eq!(pascal_case("hand_back"), "HandBack");
    }
}
