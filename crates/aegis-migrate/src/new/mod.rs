//! `new`: the folder of a change, with everything that may stand in it.
//!
//! Invariants: an existing folder is never written into; two changes never get one version.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::change::{CHANGE_FILE, ChangeId, Problem, Problems};

const TEMPLATE: &str = include_str!("change.toml");
const SQL: &str = "\
-- Statements that the previous version lives with, each short. `aegis migrate lint` says where each may run.
";

/// What was made.
#[derive(Debug)]
pub struct Made {
    /// The change.
    pub id: ChangeId,
    /// Its folder.
    pub folder: PathBuf,
}

/// Makes the folder of a change.
///
/// `root` is made when it does not exist; `schema` of the newest change is taken when none is given, else `public`.
pub fn make(
    root: &Path,
    words: &str,
    schema: Option<&str>,
    now: Timestamp,
) -> Result<Made, Problems> {
    let shown = root.display().to_string();
    let words = words.replace(['-', ' '], "_").to_lowercase();
    // A name that is none makes no folder.
    free(&words, &[], now)
        .map_err(|what| Problem::of_file(&shown, what, crate::change::ID_FORM))?;
    std::fs::create_dir_all(root).map_err(|error| unwritable(&shown, &error))?;
    let there = ids(root)?;
    let id = free(&words, &there, now)
        .map_err(|what| Problem::of_file(&shown, what, crate::change::ID_FORM))?;
    let schema = match schema {
        Some(schema) => schema.to_owned(),
        None => schema_of_newest(root, &there).unwrap_or_else(|| "public".to_owned()),
    };
    let folder = root.join(id.as_str());
    std::fs::create_dir(&folder)
        .map_err(|error| unwritable(&folder.display().to_string(), &error))?;
    let text = TEMPLATE
        .replace("{id}", id.as_str())
        .replace("\"{schema}\"", &quoted(&schema));
    for (name, text) in [(CHANGE_FILE, text.as_str()), ("expand.sql", SQL)] {
        let path = folder.join(name);
        std::fs::write(&path, text)
            .map_err(|error| unwritable(&path.display().to_string(), &error))?;
    }
    Ok(Made { id, folder })
}

fn unwritable(path: &str, error: &std::io::Error) -> Problem {
    Problem::of_file(
        path,
        format!("it cannot be written: {error}"),
        "make the folder writable, or name another one by --dir",
    )
}

/// The ids of the folders that are there.
fn ids(root: &Path) -> Result<Vec<ChangeId>, Problem> {
    let shown = root.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(|error| unwritable(&shown, &error))? {
        let name = entry
            .map_err(|error| unwritable(&shown, &error))?
            .file_name();
        found.extend(name.to_str().and_then(|name| name.parse().ok()));
    }
    found.sort();
    Ok(found)
}

/// An id of this minute, or of a later second where the minute is taken.
fn free(words: &str, there: &[ChangeId], now: Timestamp) -> Result<ChangeId, String> {
    let minute: ChangeId = format!("{}_{words}", now.strftime("%Y%m%dT%H%M")).parse()?;
    if there.iter().all(|id| id.version() != minute.version()) {
        return Ok(minute);
    }
    let taken = |id: &ChangeId| there.iter().any(|other| other.version() == id.version());
    for seconds in 0..3600 {
        let at = now + jiff::SignedDuration::from_secs(seconds);
        let id: ChangeId = format!("{}_{words}", at.strftime("%Y%m%dT%H%M%S")).parse()?;
        if !taken(&id) {
            return Ok(id);
        }
    }
    Err("3600 changes of this hour are there already".to_owned())
}

fn schema_of_newest(root: &Path, there: &[ChangeId]) -> Option<String> {
    let newest = root.join(there.last()?.as_str());
    crate::change::load(&newest)
        .ok()
        .map(|change| change.schema)
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
