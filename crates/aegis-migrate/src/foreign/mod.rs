//! Folders of migrations of other tools: sqlx, refinery, goose, Flyway, Rails' `structure.sql`, and plain `.sql` files.
//!
//! Invariants: what a tool would run forwards is read, at its own lines (what goes back is blanked out, never cut out), in the
//! tool's own order; a file that the tool would run and that cannot be read as SQL is a problem, not left out.
//!
//! Never: a guess about a file that no rule of the tool names.

mod annotations;
mod name;

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use crate::change::{Problem, Problems, normalised, sha256};

pub use name::Version;

/// Largest file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most files of a folder.
const FILES_MAX: usize = 100_000;

/// Whose folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// sqlx: `VERSION_words.sql`, or pairs of `.up.sql` and `.down.sql`.
    Sqlx,
    /// refinery: `V1__words.sql`, `U2__words.sql`.
    Refinery,
    /// goose: `00001_words.sql` with `-- +goose Up` and `-- +goose Down`.
    Goose,
    /// Flyway: `V1_1__words.sql`, `R__words.sql`.
    Flyway,
    /// Rails: `structure.sql`, which `pg_dump` writes.
    Rails,
    /// Nobody's: `.sql` files in the order of their names.
    Plain,
}

impl Tool {
    /// All.
    pub const ALL: [Self; 6] = [
        Self::Sqlx,
        Self::Refinery,
        Self::Goose,
        Self::Flyway,
        Self::Rails,
        Self::Plain,
    ];

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sqlx => "sqlx",
            Self::Refinery => "refinery",
            Self::Goose => "goose",
            Self::Flyway => "flyway",
            Self::Rails => "rails",
            Self::Plain => "plain",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|tool| tool.word() == text)
            .ok_or_else(|| {
                format!(
                    "`{}` is none of sqlx, refinery, goose, flyway, rails, plain",
                    text.escape_default()
                )
            })
    }
}

/// A file that the tool would run forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFile {
    /// Its version; `None` for what is repeated or has none.
    pub version: Option<Version>,
    /// The words in its name.
    pub description: String,
    /// Where it is.
    pub path: PathBuf,
    /// What is run forwards, with LF; lines that are not are blank.
    pub text: String,
    /// Whether the tool would run it outside of a transaction.
    pub no_transaction: bool,
    /// SHA-256 of its bytes as they are, in hex.
    pub raw_sha256: String,
}

/// Whose folder (or file) this is, by what is in it; `None` where nothing tells.
pub fn detect(path: &Path) -> Result<Option<Tool>, Problems> {
    if path.is_file() {
        return Ok(Some(if name::is_structure(path) {
            Tool::Rails
        } else {
            Tool::Plain
        }));
    }
    let paths = walk(path)?;
    if paths.iter().any(|path| name::is_structure(path)) {
        return Ok(Some(Tool::Rails));
    }
    for path in paths.iter().filter(|path| name::is_sql(path)) {
        if annotations::is_goose(&read_text(path)?.0) {
            return Ok(Some(Tool::Goose));
        }
    }
    let names: Vec<&str> = paths.iter().filter_map(|path| name::of(path)).collect();
    let all = |tool| {
        let mut sql = names
            .iter()
            .filter(|name| name::is_sql(Path::new(name)))
            .peekable();
        sql.peek().is_some()
            && sql.all(|name| !matches!(name::parse(tool, name), name::Parsed::Unknown))
    };
    Ok([Tool::Flyway, Tool::Sqlx]
        .into_iter()
        .find(|tool| all(*tool)))
}

/// What the tool would run forwards, in its order.
pub fn read(path: &Path, tool: Tool) -> Result<Vec<ForeignFile>, Problems> {
    let paths = if path.is_file() {
        vec![path.to_path_buf()]
    } else {
        walk(path)?
    };
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        let Some(file_name) = name::of(&path) else {
            problems.push(Problem::of_file(
                path.display().to_string(),
                "its name is not UTF-8",
                "rename it",
            ));
            continue;
        };
        match name::parse(tool, file_name) {
            name::Parsed::Forward {
                version,
                description,
            } => match one(&path, tool, version, description) {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            },
            name::Parsed::Backward | name::Parsed::Other => {}
            name::Parsed::Unreadable(what) => problems.push(Problem::of_file(
                path.display().to_string(),
                what,
                "only SQL can be read; begin with a dump of the structure (`pg_dump --schema-only`) instead",
            )),
            name::Parsed::Unknown => problems.push(Problem::of_file(
                path.display().to_string(),
                format!("{tool} has no files of such a name"),
                "rename it, move it away, or name another tool",
            )),
        }
    }
    // Those without a version run last, as Flyway's repeatable ones do.
    files.sort_by(|a: &ForeignFile, b| match (&a.version, &b.version) {
        (Some(a_version), Some(b_version)) => {
            a_version.cmp(b_version).then_with(|| a.path.cmp(&b.path))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.path.cmp(&b.path),
    });
    versions(tool, &files, &mut problems);
    if files.is_empty() && problems.is_empty() {
        problems.push(Problem::of_file(
            path.display().to_string(),
            format!("no file of {tool} in it"),
            "name the folder with the migrations",
        ));
    }
    Problems::none_of(problems)?;
    Ok(files)
}

fn one(
    path: &Path,
    tool: Tool,
    version: Option<Version>,
    description: String,
) -> Result<ForeignFile, Problem> {
    let (text, raw_sha256) = read_text(path)?;
    let forward = annotations::forward(tool, &text).map_err(|(line, what, help)| {
        Problem::of_file(path.display().to_string(), what, help).at(line)
    })?;
    Ok(ForeignFile {
        version,
        description,
        path: path.to_path_buf(),
        text: forward.text,
        no_transaction: forward.no_transaction,
        raw_sha256,
    })
}

/// The same version twice, or a hole where the tool has none.
fn versions(tool: Tool, files: &[ForeignFile], problems: &mut Vec<Problem>) {
    for pair in files.windows(2) {
        let [first, second] = pair else { continue };
        let (Some(before), Some(version)) = (&first.version, &second.version) else {
            continue;
        };
        let path = second.path.display().to_string();
        if before == version {
            let what = format!(
                "the version {version} is that of {} too",
                first.path.display()
            );
            problems.push(Problem::of_file(
                path,
                what,
                "rename the one that no database has applied",
            ));
        } else if tool == Tool::Refinery
            && name::is_contiguous(&first.path)
            && name::is_contiguous(&second.path)
            && !version.follows(before)
        {
            let what = format!("versions between {before} and {version} are missing");
            let help = "put the missing files back; only U files of refinery may leave holes";
            problems.push(Problem::of_file(path, what, help));
        }
    }
}

/// The text, with LF and without byte order mark, and the hash of the bytes.
fn read_text(path: &Path) -> Result<(String, String), Problem> {
    use std::io::Read as _;
    let refuse =
        |what: String, help: &str| Problem::of_file(path.display().to_string(), what, help);
    let unreadable =
        |error: std::io::Error| refuse(format!("it cannot be read: {error}"), "make it readable");
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .map_err(unreadable)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(refuse(
            format!("it is larger than {FILE_BYTES_MAX} bytes"),
            "split it",
        ));
    }
    let hash = sha256(&bytes);
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let line = 1 + String::from_utf8_lossy(&bytes[..error.valid_up_to()])
            .matches('\n')
            .count();
        refuse("it is not UTF-8".to_owned(), "save it as UTF-8").at(line)
    })?;
    Ok((normalised(text), hash))
}

/// All files below a folder, sorted; hidden ones are left out.
fn walk(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let unreadable = |error: std::io::Error| {
            Problem::of_file(
                folder.display().to_string(),
                format!("it cannot be read: {error}"),
                "name a folder with migrations, or an .sql file",
            )
        };
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if name::of(&path).is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            if found.len() >= FILES_MAX {
                return Err(Problem::of_file(
                    folder.display().to_string(),
                    format!("more than {FILES_MAX} files"),
                    "name the folder with the migrations",
                ));
            }
            // A link to a folder is not followed: it can lead in a circle.
            if entry.file_type().map_err(unreadable)?.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
