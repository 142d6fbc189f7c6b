//! Folders of migrations of other tools, and plain `.sql` files.
//!
//! Invariants: what a tool would run forwards is read, at its own lines (what goes back is blanked out, never cut out), in the
//! tool's own order; a file that the tool would run and that cannot be read as SQL is a problem, not left out.
//!
//! Never: a guess about a file that no rule of the tool names.

mod annotations;
mod evidence;
mod liquibase;
mod name;
mod placeholder;
mod rows;
mod tool;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::change::{Problem, Problems, normalised, sha256};

use annotations::Beside;

pub use evidence::by_text;
pub use name::Version;
pub use tool::{Tool, Wrapping};

/// Largest file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What to do about a migration in another language.
const NOT_SQL: &str =
    "only SQL can be read; begin with a dump of the structure (`pg_dump --schema-only`) instead";
/// Most files of a folder.
const FILES_MAX: usize = 100_000;

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
    /// How many of its statements run in one transaction.
    pub wrapping: Wrapping,
    /// What was put in place of what is only known when it runs: line and words.
    pub notes: Vec<(usize, String)>,
    /// SHA-256 of its bytes as they are, in hex.
    pub raw_sha256: String,
}

/// Whose folder (or file) this is, by what is in it; `None` where nothing tells.
pub fn detect(path: &Path) -> Result<Option<Tool>, Problems> {
    if path.is_file() {
        return detect_file(path);
    }
    let paths = walk(path)?;
    let by_place = evidence::by_place(path, &paths);
    // Atlas keeps its sum beside files of other tools' formats too.
    if by_place.is_some() && by_place != Some(Tool::Atlas) {
        return Ok(by_place);
    }
    for path in paths.iter().filter(|path| name::is_sql(path)) {
        // What cannot be read is told when all are.
        let text = read_text(path).unwrap_or_default().0;
        if let Some(tool) = evidence::by_text(&text) {
            return Ok(Some(tool));
        }
    }
    if by_place.is_some() {
        return Ok(by_place);
    }
    let names: Vec<&str> = paths.iter().filter_map(|path| name::of(path)).collect();
    Ok(evidence::by_names(path, &names))
}

/// Of a file that is named alone.
fn detect_file(path: &Path) -> Result<Option<Tool>, Problems> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let alone = [path.to_path_buf()];
    if let Some(tool) = evidence::by_text(&read_text(path)?.0) {
        return Ok(Some(tool));
    }
    // Those of Prisma, Diesel and Sqitch stand in folders of their own.
    let above = folder.join("..");
    let by_place =
        evidence::by_place(folder, &alone).or_else(|| evidence::by_place(&above, &alone));
    Ok(by_place
        .or_else(|| evidence::by_names(folder, &[name::of(path).unwrap_or_default()]))
        .or(Some(Tool::Plain)))
}

/// Whether the tool would run a file only to go back.
pub(crate) fn goes_back(tool: Tool, path: &Path) -> bool {
    name::parse(tool, path) == name::Parsed::Backward
}

/// What the tool would run forwards, in its order.
///
/// # Errors
/// A file of it cannot be read, or its order is not sure.
pub fn read(path: &Path, tool: Tool) -> Result<Vec<ForeignFile>, Problems> {
    let (files, problems) = read_each(path, tool)?;
    Problems::none_of(problems)?;
    Ok(files)
}

/// The same, with what is wrong beside what could be read: one file must not hide the others.
///
/// # Errors
/// Nothing of it can be read.
pub fn read_each(path: &Path, tool: Tool) -> Result<(Vec<ForeignFile>, Vec<Problem>), Problems> {
    let paths = if path.is_file() {
        vec![path.to_path_buf()]
    } else {
        walk(path)?
    };
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        if name::of(&path).is_none() {
            problems.push(Problem::of_file(
                path.display().to_string(),
                "its name is not UTF-8",
                "rename it",
            ));
            continue;
        }
        match name::parse(tool, &path) {
            name::Parsed::Forward {
                version,
                description,
            } => match one(&path, tool, version.as_ref(), &description) {
                Ok(parts) => files.extend(parts),
                Err(problem) => problems.push(problem),
            },
            name::Parsed::Backward | name::Parsed::Other => {}
            name::Parsed::Changelog if !has_changes(&path) => {}
            name::Parsed::Changelog => problems.push(Problem::of_file(
                path.display().to_string(),
                "a changelog with changes that are no SQL",
                NOT_SQL,
            )),
            name::Parsed::Unreadable(what) => {
                problems.push(Problem::of_file(path.display().to_string(), what, NOT_SQL));
            }
            name::Parsed::Unknown => problems.push(Problem::of_file(
                path.display().to_string(),
                format!("{tool} has no files of such a name"),
                "rename it, move it away, or name another tool",
            )),
        }
    }
    let plan = if tool == Tool::Sqitch {
        sqitch_plan(path)
    } else {
        Vec::new()
    };
    let planned = |file: &ForeignFile| {
        let at = plan.iter().position(|name| *name == file.description);
        at.unwrap_or(plan.len())
    };
    // Those without a version run last, as Flyway's repeatable ones do. Parts of one file stay in its order.
    files.sort_by(|a: &ForeignFile, b| match (&a.version, &b.version) {
        (Some(a_version), Some(b_version)) => {
            a_version.cmp(b_version).then_with(|| a.path.cmp(&b.path))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => (planned(a), &a.path).cmp(&(planned(b), &b.path)),
    });
    versions(tool, &files, &mut problems);
    if files.is_empty() {
        if problems.is_empty() {
            problems.push(Problem::of_file(
                path.display().to_string(),
                format!("no file of {tool} in it"),
                "name the folder with the migrations",
            ));
        }
        Problems::none_of(problems)?;
        return Ok((files, Vec::new()));
    }
    Ok((files, problems))
}

/// One file that is there alone, from its name and its bytes: its parts that the tool runs forwards. None where the tool does not run
/// a file of this name forwards. What would stand beside it, and fill its placeholders, says nothing.
///
/// # Errors
/// It is not UTF-8, or not what the tool reads.
pub fn alone(tool: Tool, path: &Path, bytes: &[u8]) -> Result<Vec<ForeignFile>, Problem> {
    match name::parse(tool, path) {
        name::Parsed::Forward {
            version,
            description,
        } => {
            let (text, hash) = text_of(path, bytes)?;
            let file = Read {
                path,
                text: &text,
                raw_sha256: hash,
            };
            parts(
                tool,
                &file,
                &Beside::default(),
                version.as_ref(),
                &description,
            )
        }
        _ => Ok(Vec::new()),
    }
}

/// A file that was read.
struct Read<'a> {
    path: &'a Path,
    text: &'a str,
    raw_sha256: String,
}

fn one(
    path: &Path,
    tool: Tool,
    version: Option<&Version>,
    description: &str,
) -> Result<Vec<ForeignFile>, Problem> {
    let (text, raw_sha256) = read_text(path)?;
    let beside = Beside::of(tool, path, &text);
    let file = Read {
        path,
        text: &text,
        raw_sha256,
    };
    parts(tool, &file, &beside, version, description)
}

fn parts(
    tool: Tool,
    file: &Read<'_>,
    beside: &Beside,
    version: Option<&Version>,
    description: &str,
) -> Result<Vec<ForeignFile>, Problem> {
    let path = file.path;
    let parts = annotations::forward(tool, beside, file.text).map_err(|(line, what, help)| {
        Problem::of_file(path.display().to_string(), what, help).at(line)
    })?;
    let of_part = |part: annotations::Forward| ForeignFile {
        version: version.cloned(),
        description: part.name.unwrap_or_else(|| description.to_owned()),
        path: path.to_path_buf(),
        text: part.text,
        wrapping: part.wrapping,
        notes: part.notes,
        raw_sha256: file.raw_sha256.clone(),
    };
    let parts = annotations::without_templates(parts);
    Ok(parts.into_iter().map(of_part).collect())
}

/// Whether a changelog of Liquibase has changes of its own, beside naming files.
fn has_changes(path: &Path) -> bool {
    read_text(path).is_ok_and(|(text, _)| text.to_ascii_lowercase().contains("changeset"))
}

/// The names of Sqitch's changes in the order of its plan.
fn sqitch_plan(folder: &Path) -> Vec<String> {
    let texts = [folder.join("sqitch.plan"), folder.join("../sqitch.plan")];
    let text = texts
        .iter()
        .find_map(|path| read_text(path).ok())
        .unwrap_or_default()
        .0;
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['%', '#', '@', '-']))
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| name.replace('_', " "))
        .collect()
}

/// The same version twice, which is told of each of its files, or a hole where the tool has none.
fn versions(tool: Tool, files: &[ForeignFile], problems: &mut Vec<Problem>) {
    for same in files.chunk_by(|a, b| a.version.is_some() && a.version == b.version) {
        for file in same {
            let other = same.iter().find(|other| other.path != file.path);
            let (Some(version), Some(other)) = (&file.version, other) else {
                continue;
            };
            let what = format!(
                "the version {version} is that of {} too",
                other.path.display()
            );
            problems.push(Problem::of_file(
                file.path.display().to_string(),
                what,
                "rename the one that no database has applied",
            ));
        }
    }
    for pair in files.windows(2) {
        let [first, second] = pair else { continue };
        let (Some(before), Some(version)) = (&first.version, &second.version) else {
            continue;
        };
        if tool == Tool::Refinery
            && before != version
            && name::is_contiguous(&first.path)
            && name::is_contiguous(&second.path)
            && !version.follows(before)
        {
            let what = format!("versions between {before} and {version} are missing");
            let help = "put the missing files back; only U files of refinery may leave holes";
            problems.push(Problem::of_file(
                second.path.display().to_string(),
                what,
                help,
            ));
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
    text_of(path, &bytes)
}

fn text_of(path: &Path, bytes: &[u8]) -> Result<(String, String), Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + String::from_utf8_lossy(&bytes[..error.valid_up_to()])
            .matches('\n')
            .count();
        let file = path.display().to_string();
        Problem::of_file(file, "it is not UTF-8", "save it as UTF-8").at(line)
    })?;
    Ok((normalised(text), sha256(bytes)))
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
