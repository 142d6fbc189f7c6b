//! What the name of a file says to each tool: its version, its words, forwards or back.

use std::fmt;
use std::path::Path;

use super::Tool;

/// A version: numbers, compared one by one (`1.10` is after `1.9`; `1` and `1.0` are the same).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Vec<u64>);

impl Version {
    /// From the numbers, as a ledger has them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text
            .split(['.', '_'])
            .map(|part| {
                let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| part.parse().ok()).flatten()
            })
            .collect::<Option<Vec<u64>>>()?;
        while numbers.len() > 1 && numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(Self(numbers))
    }

    /// Whether it is the next whole number.
    pub(super) fn follows(&self, before: &Self) -> bool {
        matches!((&before.0[..], &self.0[..]), ([a], [b]) if a.checked_add(1) == Some(*b))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, number) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            write!(f, "{number}")?;
        }
        Ok(())
    }
}

/// What a name means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// Run forwards.
    Forward {
        version: Option<Version>,
        description: String,
    },
    /// Run to go back.
    Backward,
    /// Nothing that is run.
    Other,
    /// Run, and no SQL.
    Unreadable(String),
    /// A list of other files, or changes in another language; what is in it tells.
    Changelog,
    /// An SQL file that the tool has no name for.
    Unknown,
}

/// The name of a file.
pub(super) fn of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

pub(super) fn is_sql(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("sql"))
}

/// Rails calls it so; a multi-database application puts words before it.
pub(super) fn is_structure(path: &Path) -> bool {
    of(path).is_some_and(|name| name == "structure.sql" || name.ends_with("_structure.sql"))
}

/// Whether refinery wants no hole before it.
pub(super) fn is_contiguous(path: &Path) -> bool {
    of(path).is_some_and(|name| name.starts_with('V'))
}

/// What the name of a file, and its folders' where the tool has some, say.
pub(super) fn parse(tool: Tool, path: &Path) -> Parsed {
    let name = of(path).unwrap_or_default();
    let Some(stem) = strip(name, ".sql") else {
        return not_sql(tool, name);
    };
    match tool {
        Tool::Sqlx => match strip(stem, ".down") {
            Some(_) => Parsed::Backward,
            // Without words it is none of sqlx's: it leaves the file alone.
            None => described(strip(stem, ".up").unwrap_or(stem)),
        },
        Tool::GolangMigrate => match (strip(stem, ".down"), strip(stem, ".up")) {
            (Some(_), _) => Parsed::Backward,
            (None, Some(stem)) => described(stem),
            (None, None) => Parsed::Unknown,
        },
        Tool::Goose | Tool::Dbmate | Tool::Supabase => numbered(stem, "_"),
        Tool::NodePgMigrate => match numbered(stem, "_") {
            Parsed::Unknown => numbered(stem, "-"),
            known => known,
        },
        Tool::Refinery => match stem.split_at_checked(1) {
            Some(("V" | "U", rest)) => numbered(rest, "__"),
            _ => Parsed::Unknown,
        },
        Tool::Flyway => flyway(stem),
        Tool::Rails => {
            if is_structure(path) {
                forward(None, "structure")
            } else {
                Parsed::Other
            }
        }
        Tool::Prisma => in_folder(path, stem, "migration"),
        Tool::Diesel => match in_folder(path, stem, "up") {
            Parsed::Other if stem == "down" => Parsed::Backward,
            other => other,
        },
        Tool::Sqitch => sqitch(path, stem),
        Tool::Liquibase => forward(None, stem),
        Tool::Atlas => atlas(stem),
        Tool::Plain => {
            let back = ["down", "rollback", "undo", "revert"].iter().any(|word| {
                [".", "_", "-"]
                    .iter()
                    .any(|dot| stem.ends_with(&format!("{dot}{word}")))
                    || stem == *word
            });
            if back {
                Parsed::Backward
            } else {
                forward(None, stem)
            }
        }
    }
}

/// Its own names, and those of golang-migrate and Flyway, whose formats it takes.
fn atlas(stem: &str) -> Parsed {
    if strip(stem, ".down").is_some() {
        return Parsed::Backward;
    }
    let stem = strip(stem, ".up").unwrap_or(stem);
    match (numbered(stem, "_"), flyway(stem)) {
        (Parsed::Unknown, known @ (Parsed::Forward { .. } | Parsed::Backward)) => known,
        (Parsed::Unknown, _) => forward(None, stem),
        (known, _) => known,
    }
}

/// A file whose folder is the migration.
fn in_folder(path: &Path, stem: &str, wanted: &str) -> Parsed {
    if stem != wanted {
        return Parsed::Other;
    }
    forward(None, path.parent().and_then(of).unwrap_or(stem))
}

/// Scripts of `deploy`; those of `revert` and `verify` go back or look.
fn sqitch(path: &Path, stem: &str) -> Parsed {
    let mut folders = path.ancestors().skip(1).filter_map(of);
    match folders.find(|name| ["deploy", "revert", "verify"].contains(name)) {
        Some("deploy") => forward(None, stem),
        Some(_) => Parsed::Backward,
        None => Parsed::Other,
    }
}

/// A number and words.
fn described(stem: &str) -> Parsed {
    if stem.contains('_') {
        numbered(stem, "_")
    } else {
        Parsed::Unknown
    }
}

fn strip<'a>(name: &'a str, suffix: &str) -> Option<&'a str> {
    let at = name.len().checked_sub(suffix.len())?;
    let end = name.get(at..)?;
    end.eq_ignore_ascii_case(suffix).then(|| &name[..at])
}

fn forward(version: Option<Version>, description: &str) -> Parsed {
    Parsed::Forward {
        version,
        description: description.replace('_', " "),
    }
}

fn numbered(stem: &str, between: &str) -> Parsed {
    let parts = stem.split_once(between).unwrap_or((stem, ""));
    match Version::parse(parts.0) {
        Some(version) => forward(Some(version), parts.1),
        None => Parsed::Unknown,
    }
}

fn flyway(stem: &str) -> Parsed {
    const CALLBACKS: [&str; 4] = ["before", "after", "create", "drop"];
    match stem.split_at_checked(1) {
        Some(("V" | "B", rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            numbered(rest, "__")
        }
        Some(("R", rest)) if rest.starts_with("__") => forward(None, &rest[2..]),
        Some(("U", rest)) if rest.starts_with(|c: char| c.is_ascii_digit()) => Parsed::Backward,
        _ if CALLBACKS.iter().any(|word| stem.starts_with(word)) => Parsed::Unreadable(
            "it is a callback, which Flyway runs beside every migration".to_owned(),
        ),
        _ => Parsed::Unknown,
    }
}

/// Files that a tool runs and that are no SQL.
fn not_sql(tool: Tool, name: &str) -> Parsed {
    let extension = Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    let begins_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    let versioned = name.starts_with(['V', 'U', 'R', 'B']) && name.contains("__");
    match (tool, extension) {
        (Tool::Goose, "go") if begins_with_digit => {
            Parsed::Unreadable("a migration written in Go".to_owned())
        }
        (Tool::Refinery, "rs") if versioned => {
            Parsed::Unreadable("a migration written in Rust".to_owned())
        }
        (Tool::Liquibase, "xml" | "yaml" | "yml" | "json") => Parsed::Changelog,
        (Tool::NodePgMigrate, "js" | "ts" | "cjs" | "mjs") if begins_with_digit => {
            Parsed::Unreadable("a migration written in JavaScript".to_owned())
        }
        (Tool::Flyway, "java" | "kt" | "class" | "py" | "sh") if versioned => {
            Parsed::Unreadable("a migration that is a program".to_owned())
        }
        _ => Parsed::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(tool: Tool, name: &str) -> String {
        match parse(tool, Path::new(name)) {
            Parsed::Forward {
                version,
                description,
            } => format!(
                "{} {description}",
                version.map_or_else(|| "-".to_owned(), |version| version.to_string())
            ),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[test]
    fn names_mean_what_each_tool_takes_them_for() {
        for (tool, name, wanted) in [
            (
                Tool::Sqlx,
                "20260101000000_create_users.sql",
                "20260101000000 create users",
            ),
            (Tool::Sqlx, "1_a.up.sql", "1 a"),
            (Tool::Sqlx, "1_a.down.sql", "backward"),
            (Tool::Sqlx, "a.sql", "unknown"),
            (Tool::Sqlx, "002.sql", "unknown"),
            (Tool::GolangMigrate, "000001_a_b.up.sql", "1 a b"),
            (Tool::GolangMigrate, "000001_a_b.down.sql", "backward"),
            (Tool::Dbmate, "20260101000000_a.sql", "20260101000000 a"),
            (Tool::Supabase, "20260101000000_a.sql", "20260101000000 a"),
            (
                Tool::NodePgMigrate,
                "1767225600000_a.sql",
                "1767225600000 a",
            ),
            (
                Tool::NodePgMigrate,
                "1767225600000-a.sql",
                "1767225600000 a",
            ),
            (Tool::Prisma, "m/20260101_a/migration.sql", "- 20260101 a"),
            (Tool::Prisma, "m/20260101_a/notes.sql", "other"),
            (
                Tool::Diesel,
                "m/2026-01-01-000000_a/up.sql",
                "- 2026-01-01-000000 a",
            ),
            (Tool::Diesel, "m/2026-01-01-000000_a/down.sql", "backward"),
            (Tool::Sqitch, "s/deploy/users.sql", "- users"),
            (Tool::Sqitch, "s/revert/users.sql", "backward"),
            (Tool::Sqitch, "s/verify/users.sql", "backward"),
            (Tool::Atlas, "20260101_a.sql", "20260101 a"),
            (Tool::Atlas, "20260101_a.up.sql", "20260101 a"),
            (Tool::Atlas, "20260101_a.down.sql", "backward"),
            (Tool::Atlas, "V10__a.sql", "10 a"),
            (Tool::Atlas, "U10__a.sql", "backward"),
            (Tool::Atlas, "schema.sql", "- schema"),
            (Tool::Liquibase, "changes/a.sql", "- a"),
            (Tool::Liquibase, "changelog.xml", "changelog"),
            (Tool::Sqlx, "README.md", "other"),
            (Tool::Refinery, "V1__a.sql", "1 a"),
            (Tool::Refinery, "U7__b_c.sql", "7 b c"),
            (Tool::Refinery, "1_a.sql", "unknown"),
            (Tool::Goose, "00002_b.sql", "2 b"),
            (Tool::Flyway, "V1_1__a.sql", "1.1 a"),
            (Tool::Flyway, "V1.10__a.sql", "1.10 a"),
            (Tool::Flyway, "V2.0__a.sql", "2 a"),
            (Tool::Flyway, "R__view.sql", "- view"),
            (Tool::Flyway, "U1__a.sql", "backward"),
            (Tool::Flyway, "V__a.sql", "unknown"),
            (Tool::Rails, "structure.sql", "- structure"),
            (Tool::Rails, "20260101_a.rb", "other"),
            (Tool::Plain, "anything.SQL", "- anything"),
            (Tool::Plain, "001_a_down.sql", "backward"),
        ] {
            assert_eq!(is(tool, name), wanted, "{tool} {name}");
        }
        assert!(is(Tool::Goose, "00003_c.go").starts_with("unreadable"));
        assert!(is(Tool::Refinery, "V1__a.rs").starts_with("unreadable"));
        assert!(is(Tool::Flyway, "beforeMigrate.sql").starts_with("unreadable"));
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("1.10") > version("1.9"));
        assert_eq!(version("1"), version("1.0"));
        assert_eq!(version("0"), version("0"));
        assert!(version("20260101000000") > version("9"));
        assert!(Version::parse("1..2").is_none() && Version::parse("").is_none());
        assert!(Version::parse("99999999999999999999999").is_none());
        assert!(version("3").follows(&version("2")) && !version("4").follows(&version("2")));
    }
}
