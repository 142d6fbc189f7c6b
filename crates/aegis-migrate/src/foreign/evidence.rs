//! Whose folder it is: what the files say, what stands beside them, and which library the program around them names.
//!
//! Invariants: what a file says of itself counts before names, and names before what stands in folders above; where nothing tells,
//! nobody is guessed.

use std::path::{Path, PathBuf};

use super::{Tool, annotations, name};

/// How far above a folder a program's own files may stand.
const ABOVE_MAX: usize = 5;
/// Largest file that is looked into.
const LOOK_BYTES_MAX: u64 = 1 << 20;

/// By what stands beside the files, or is their name alone.
pub(super) fn by_place(folder: &Path, paths: &[PathBuf]) -> Option<Tool> {
    let beside = |file: &str| folder.join(file).is_file();
    let any = |file: &str| paths.iter().any(|path| name::of(path) == Some(file));
    if paths.iter().any(|path| name::is_structure(path)) {
        return Some(Tool::Rails);
    }
    if beside("atlas.sum") {
        return Some(Tool::Atlas);
    }
    let plan = [Some(folder), folder.parent()]
        .into_iter()
        .flatten()
        .any(|at| at.join("sqitch.plan").is_file());
    if plan {
        return Some(Tool::Sqitch);
    }
    if any("migration.sql") {
        return Some(Tool::Prisma);
    }
    if any("up.sql") {
        return Some(Tool::Diesel);
    }
    let above = folder.parent().and_then(name::of);
    (above == Some("supabase")).then_some(Tool::Supabase)
}

/// By what a file says of itself.
pub fn by_text(text: &str) -> Option<Tool> {
    if annotations::is_goose(text) {
        return Some(Tool::Goose);
    }
    for line in text.lines() {
        let Some(said) = line.trim().strip_prefix("--") else {
            continue;
        };
        let said = said.trim().to_ascii_lowercase();
        if said.starts_with("liquibase formatted sql") {
            return Some(Tool::Liquibase);
        }
        if said.starts_with("migrate:up") {
            return Some(Tool::Dbmate);
        }
        if said == "up migration" || said == "down migration" {
            return Some(Tool::NodePgMigrate);
        }
        if said.starts_with("atlas:txmode") {
            return Some(Tool::Atlas);
        }
    }
    text.starts_with("-- no-transaction").then_some(Tool::Sqlx)
}

/// By their names, and by the program around them where names fit several tools.
pub(super) fn by_names(folder: &Path, names: &[&str]) -> Option<Tool> {
    let sql = || names.iter().filter(|name| name::is_sql(Path::new(name)));
    let all = |tool| {
        sql().next().is_some()
            && sql()
                .all(|name| !matches!(name::parse(tool, Path::new(name)), name::Parsed::Unknown))
    };
    let around = Around::of(folder);
    if all(Tool::Flyway) || all(Tool::Refinery) {
        let written_in_rust = names.iter().any(|name| {
            matches!(
                name::parse(Tool::Refinery, Path::new(name)),
                name::Parsed::Unreadable(_)
            )
        });
        let refinery =
            written_in_rust || around.names("Cargo.toml", "refinery") || !all(Tool::Flyway);
        return Some(if refinery && all(Tool::Refinery) {
            Tool::Refinery
        } else {
            Tool::Flyway
        });
    }
    if !all(Tool::Sqlx) {
        return None;
    }
    let known = [
        (Tool::Sqlx, "Cargo.toml", "sqlx"),
        (Tool::GolangMigrate, "go.mod", "golang-migrate"),
        (Tool::NodePgMigrate, "package.json", "node-pg-migrate"),
    ];
    if let Some((tool, ..)) = known
        .into_iter()
        .find(|(_, file, word)| around.names(file, word))
    {
        return Some(tool);
    }
    if all(Tool::GolangMigrate) {
        return Some(Tool::GolangMigrate);
    }
    // Pairs beside files without a way back are sqlx's alone.
    let paired = |name: &str| name.to_ascii_lowercase().ends_with(".up.sql");
    if sql().any(|name| paired(name)) {
        return Some(Tool::Sqlx);
    }
    // As `sqlx migrate add` names them; short numbers are anybody's.
    sql()
        .all(|name| name.bytes().take_while(u8::is_ascii_digit).count() == 14)
        .then_some(Tool::Sqlx)
}

/// The folders above, up to the repository's.
pub(super) struct Around {
    folders: Vec<PathBuf>,
}

impl Around {
    pub(super) fn of(folder: &Path) -> Self {
        let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let mut folders = Vec::new();
        for at in whole.ancestors().take(ABOVE_MAX) {
            folders.push(at.to_path_buf());
            if at.join(".git").exists() {
                break;
            }
        }
        Self { folders }
    }

    /// Whether a file of this name has the word.
    fn names(&self, file: &str, word: &str) -> bool {
        self.texts(&[file]).any(|text| text.contains(word))
    }

    /// The files of these names, the nearest first.
    pub(super) fn texts(&self, files: &[&str]) -> impl Iterator<Item = String> {
        let paths: Vec<PathBuf> = self
            .folders
            .iter()
            .flat_map(|folder| files.iter().map(|file| folder.join(file)))
            .collect();
        paths.into_iter().filter_map(|path| {
            let small = std::fs::metadata(&path)
                .is_ok_and(|about| about.is_file() && about.len() <= LOOK_BYTES_MAX);
            small.then(|| std::fs::read_to_string(path).ok()).flatten()
        })
    }
}
