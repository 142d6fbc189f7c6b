//! The other tool's files as the baseline of the folder of changes.
//!
//! Invariants: fresh databases get what the files made, in their order; every file is named above its statements.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::ledger::Applied;
use crate::change::{CHANGE_FILE, ChangeId, Problem, Problems};
use crate::foreign::{ForeignFile, Tool};

/// The baseline that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedChange {
    /// Its id.
    pub id: ChangeId,
    /// Its folder.
    pub folder: PathBuf,
}

/// Writes the baseline: the first change of a folder that has none.
pub fn write_change(
    root: &Path,
    tool: Tool,
    schema: &str,
    files: &[ForeignFile],
    now: Timestamp,
) -> Result<AdoptedChange, Problems> {
    let of_file = |file: &ForeignFile| {
        let path = file.path.display().to_string();
        let help = "write its value into the file, or into the configuration of the tool above it";
        let told = file
            .notes
            .iter()
            .map(move |(line, said)| Problem::of_file(path.clone(), said.clone(), help).at(*line));
        told.collect::<Vec<_>>()
    };
    Problems::none_of(files.iter().flat_map(of_file).collect())?;
    let id: ChangeId = format!("{}_adopted_{tool}", now.strftime("%Y%m%dT%H%M"))
        .parse()
        .map_err(|what: String| {
            Problem::of_file(root.display().to_string(), what, crate::change::ID_FORM)
        })?;
    let folder = root.join(id.as_str());
    let unwritable = |path: &Path, error: std::io::Error| {
        Problem::of_file(
            path.display().to_string(),
            format!("it cannot be written: {error}"),
            "make the folder writable, or name another one by --dir",
        )
    };
    std::fs::create_dir_all(root).map_err(|error| unwritable(root, error))?;
    std::fs::create_dir(&folder).map_err(|error| unwritable(&folder, error))?;
    let schema = serde_json::Value::from(schema);
    let toml = format!(
        "# What {tool} had applied before. It runs on fresh databases only; others have it recorded by `aegis migrate adopt`.\n\
         format = 1\nid = \"{id}\"\nschema = {schema}\n[baseline]\nfrom = \"{tool}\"\n[expand]\nsql = \"expand.sql\"\n"
    );
    for (name, text) in [(CHANGE_FILE, toml), ("expand.sql", statements(files))] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| unwritable(&path, error))?;
    }
    Ok(AdoptedChange { id, folder })
}

/// All files behind one another.
fn statements(files: &[ForeignFile]) -> String {
    let mut text = String::new();
    for file in files {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let body = file.text.trim();
        let end = if body.ends_with(';') || body.is_empty() {
            ""
        } else {
            "\n;"
        };
        // Into a string: cannot fail.
        writeln!(text, "-- from {}\n{body}{end}\n", name.escape_debug()).ok();
    }
    text
}

/// Rails writes the versions into `structure.sql`; nothing else says whether the file is what the database has.
pub(super) fn rails_differences(files: &[ForeignFile], applied: &[Applied]) -> Vec<String> {
    let mut in_file = BTreeSet::new();
    for file in files {
        in_file.extend(rails_versions(&file.text));
    }
    let in_ledger: BTreeSet<String> = applied
        .iter()
        .filter_map(|row| row.version.clone())
        .collect();
    let never = in_file.difference(&in_ledger);
    let missing = in_ledger.difference(&in_file);
    never
        .map(|version| format!("version {version} of structure.sql was never applied"))
        .chain(missing.map(|version| {
            format!("version {version} was applied, and structure.sql does not have it")
        }))
        .collect()
}

/// The versions in `INSERT INTO "schema_migrations" (version) VALUES ('…'), …;`.
fn rails_versions(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.rsplit_once("INSERT INTO \"schema_migrations\"") else {
        return Vec::new();
    };
    let rest = rest.split(';').next().unwrap_or_default();
    rest.split('\'')
        .skip(1)
        .step_by(2)
        .filter(|version| !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::rails_versions;

    #[test]
    fn the_versions_of_structure_sql_are_read() {
        let text = "CREATE TABLE a (x text DEFAULT 'y');\nINSERT INTO \"schema_migrations\" (version) VALUES\n('20260102'),\n('20260101');\n\n";
        assert_eq!(rails_versions(text), ["20260102", "20260101"]);
        assert!(rails_versions("SELECT 1;").is_empty());
    }
}
