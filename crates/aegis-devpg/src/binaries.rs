//! Finds the PostgreSQL binaries on the machine: the newest major from 15 up.
//!
//! What it runs is `postgres -V` and `pg_config --bindir` only; it downloads only when it was allowed to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::probe::{Binaries, probe};
use crate::user::{self, RunAs};
use crate::{Error, fetch};

/// The lowest major version that Aegis runs on.
pub const LOWEST_MAJOR: u32 = 15;

/// Folders where packages put `postgres`; `*` stands for one name.
const USUAL: [&str; 8] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/run/current-system/sw/bin",
];

/// Finds the binaries: `explicit`, else `$AEGIS_PG_BIN`, else the newest major among PATH,
/// `pg_config` and the usual folders, else what an earlier fetch left in the cache.
pub fn find_binaries(explicit: Option<&Path>) -> Result<Binaries, Error> {
    let user = user::choose(None)?;
    find(explicit, None, user.as_ref(), false, LOWEST_MAJOR)
}

/// As [`find_binaries`], for `user`, of major `wanted` when the machine has it, and fetched when
/// `may_fetch` and there are none.
pub(crate) fn find(
    explicit: Option<&Path>,
    wanted: Option<u32>,
    user: Option<&RunAs>,
    may_fetch: bool,
    lowest: u32,
) -> Result<Binaries, Error> {
    match find_installed(explicit, wanted, lowest) {
        Err(none @ Error::NoBinaries { .. }) => match fetch::cached(user) {
            Some(cached) => Ok(cached),
            None if may_fetch => fetch::fetch_for(user),
            None => Err(none),
        },
        found => found,
    }
}

fn find_installed(
    explicit: Option<&Path>,
    wanted: Option<u32>,
    lowest: u32,
) -> Result<Binaries, Error> {
    let named = explicit
        .map(Path::to_path_buf)
        .or_else(|| std::env::var_os("AEGIS_PG_BIN").map(PathBuf::from));
    if let Some(bin) = named {
        return probe(&bin, lowest).map_err(|why| Error::UnusableBinaries { path: bin, why });
    }
    let mut refused = String::new();
    let mut found = Vec::new();
    for bin in candidates() {
        match probe(&bin, lowest) {
            Ok(binaries) => found.push(binaries),
            Err(why) => refused.extend(["; ", &bin.display().to_string(), ": ", &why]),
        }
    }
    // The first of equals wins: PATH before the usual folders.
    found.sort_by_key(|binaries| {
        std::cmp::Reverse((Some(binaries.major) == wanted, binaries.major))
    });
    found.into_iter().next().ok_or_else(|| Error::NoBinaries {
        lowest,
        looked: "PATH, pg_config and the usual folders".to_owned(),
        refused,
    })
}

fn candidates() -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path)
        .map(|folder| folder.join("postgres"))
        .filter(|postgres| postgres.is_file())
        // Distributions link `postgres` alone into PATH: initdb stands beside the real one.
        .filter_map(|postgres| fs::canonicalize(postgres).ok())
        .filter_map(|postgres| postgres.parent().map(Path::to_path_buf));
    let usual = USUAL.iter().flat_map(|pattern| expand(pattern));
    let home = std::env::home_dir().map(|home| home.join(".nix-profile/bin"));
    on_path
        .chain(pg_config())
        .chain(usual)
        .chain(home)
        .filter(|bin| bin.join("postgres").is_file())
        .filter(|bin| seen.insert(fs::canonicalize(bin).unwrap_or_else(|_| bin.clone())))
        .collect()
}

fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config")
        .arg("--bindir")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let bin = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(bin.trim()))
}

/// Expands the one `*` of a pattern over what exists.
fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| PathBuf::from(format!("{parent}/{name}{after}")))
        .collect()
}
