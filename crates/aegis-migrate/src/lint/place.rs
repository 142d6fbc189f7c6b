//! Where something stands in a change.toml, for a finding that is about a key of it.
//!
//! Invariants: of a change that is no folder here, such as one of a commit, only the file can be named: the line is its first.

use aegis_ddl::UnusedOverride;

/// The line, from 1, of the first line of a section that is wanted.
pub(super) fn line_of(file: &str, section: &str, wanted: impl Fn(&str) -> bool) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut within = "";
    let at = text.lines().position(|line| {
        let line = line.trim();
        if line.starts_with('[') {
            within = line.split('#').next().unwrap_or_default().trim();
        }
        within == section && wanted(line)
    });
    at.map_or(1, |at| at + 1)
}

/// The line of a key.
pub(super) fn of_key(file: &str, section: &str, key: &str) -> usize {
    line_of(file, section, |line| {
        let named = line.split('=').next().unwrap_or_default();
        named.trim().trim_matches('"') == key
    })
}

/// The line of an override that silences nothing.
pub(super) fn of_override(file: &str, unused: &UnusedOverride) -> usize {
    let quoted = [format!("\"{}\"", unused.rule), format!("'{}'", unused.rule)];
    let names = |line: &str| {
        let plain = line.split('#').next().unwrap_or_default();
        plain
            .split("rule")
            .skip(1)
            .filter_map(|rest| rest.trim_start().strip_prefix('='))
            .any(|value| {
                quoted
                    .iter()
                    .any(|one| value.trim_start().starts_with(&**one))
            })
    };
    let section = match unused.phase {
        Some(aegis_ddl::Phase::Migrate) => "[migrate]",
        _ => "[expand]",
    };
    line_of(file, section, names)
}
