//! `--base REF`: what was added since a commit, and whether history was edited. Asks git, which must be there.
//!
//! Invariants: what is not in git yet counts as added; a file that was there and is another one now is told, never judged as new.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::source::Kind;
use super::{Input, Judged, of_file};
use crate::change::{Phase, Problem, Problems};
use crate::lock::{LOCK_FILE, LockFile};

/// A commit to compare with.
#[derive(Debug, Clone)]
pub struct Since {
    reference: String,
}

const PUT_BACK: &str = "put it back as it was and write a new migration";
const OWN_COMMIT: &str =
    "seal the contract in a commit of its own, after the expand has been released";

impl Since {
    /// Any name of a commit.
    pub fn new(reference: impl Into<String>) -> Self {
        Self {
            reference: reference.into(),
        }
    }

    fn git(&self, folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, Problems> {
        let refuse = |why: String| {
            Problem::of_file(
                folder.display().to_string(),
                format!(
                    "git cannot say what was added since {}: {why}",
                    self.reference
                ),
                "name a commit or branch of the repository that the folder is in; a shallow clone has no history",
            )
        };
        let output = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| refuse(error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(refuse(said.trim().to_owned()).into());
        }
        Ok(output.stdout)
    }

    /// The commit itself; a name that begins with a dash is none.
    fn commit(&self, folder: &Path) -> Result<String, Problems> {
        let name = format!("{}^{{commit}}", self.reference);
        let said = self.git(
            folder,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &name,
            ],
        )?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Letter and path of what differs, as the paths were named.
    fn differing(&self, path: &Path) -> Result<Vec<(char, PathBuf)>, Problems> {
        let folder = folder_of(path);
        let commit = self.commit(folder)?;
        let told = self.git(
            folder,
            &[
                "diff",
                "--no-renames",
                "--relative",
                "--name-status",
                "-z",
                &commit,
                "--",
                ".",
            ],
        )?;
        let told = String::from_utf8_lossy(&told).into_owned();
        let mut words = told.split('\0');
        let mut found = Vec::new();
        while let (Some(letter), Some(name)) = (words.next(), words.next()) {
            if let Some(letter) = letter.chars().next() {
                found.push((letter, folder.join(name)));
            }
        }
        let others = self.git(
            folder,
            &[
                "ls-files",
                "--others",
                "--exclude-standard",
                "-z",
                "--",
                ".",
            ],
        )?;
        let others = String::from_utf8_lossy(&others).into_owned();
        let others = others.split('\0').filter(|name| !name.is_empty());
        found.extend(others.map(|name| ('A', folder.join(name))));
        found.retain(|(_, one)| path.is_dir() || one == path);
        Ok(found)
    }

    /// The files that were not there.
    pub(super) fn added(&self, path: &Path) -> Result<BTreeSet<PathBuf>, Problems> {
        let differing = self.differing(path)?.into_iter();
        Ok(differing
            .filter(|(letter, _)| *letter == 'A')
            .map(|(_, path)| path)
            .collect())
    }

    /// The lock as it was; `None` where there was none.
    pub(super) fn lock(&self, folder: &Path) -> Result<Option<LockFile>, Problems> {
        let commit = self.commit(folder)?;
        let listed = self.git(
            folder,
            &["ls-tree", "--name-only", &commit, "--", LOCK_FILE],
        )?;
        if listed.is_empty() {
            return Ok(None);
        }
        let text = self.git(folder, &["show", &format!("{commit}:./{LOCK_FILE}")])?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let path = format!("{LOCK_FILE} of {}", self.reference);
        LockFile::parse(&text, &path).map(Some)
    }

    /// History that is another one now, and contracts that came together with what they end.
    pub(super) fn edited(&self, input: &Input) -> Result<Vec<Judged>, Problems> {
        match input.kind()? {
            Kind::Foreign(tool) => {
                let mut told = Vec::new();
                for (letter, path) in self.differing(&input.path)? {
                    let name = path
                        .file_name()
                        .and_then(|name| name.to_str())
                        .unwrap_or_default();
                    let is_sql = path
                        .extension()
                        .is_some_and(|end| end.eq_ignore_ascii_case("sql"));
                    // Written anew by their tools.
                    let again = name.ends_with("structure.sql") || name.starts_with("R__");
                    let back = crate::foreign::goes_back(tool, &path);
                    if letter == 'A' || !is_sql || again || back {
                        continue;
                    }
                    let what = if letter == 'D' {
                        "was taken away"
                    } else {
                        "was edited"
                    };
                    let said = format!(
                        "{what} since {}, and databases have run it as it was",
                        self.reference
                    );
                    told.push(of_file(
                        &path.display().to_string(),
                        1,
                        "edited-history",
                        &said,
                        PUT_BACK,
                    ));
                }
                Ok(told)
            }
            Kind::Change => Ok(Vec::new()),
            Kind::Set => self.of_lock(&input.path),
        }
    }

    fn of_lock(&self, folder: &Path) -> Result<Vec<Judged>, Problems> {
        let path = folder.join(LOCK_FILE);
        let name = path.display().to_string();
        let now = match std::fs::read_to_string(&path) {
            Ok(text) => LockFile::parse(&text, &name)?,
            Err(_) => LockFile::default(),
        };
        let before = self.lock(folder)?.unwrap_or_default();
        let mut told = Vec::new();
        for old in &before.lines {
            let said = match now.line(&old.at) {
                None => format!(
                    "{} was sealed in {} and is not any more",
                    old.at, self.reference
                ),
                Some(line) if line.sha256 != old.sha256 => {
                    format!(
                        "{} was sealed with another hash in {}",
                        old.at, self.reference
                    )
                }
                Some(_) => continue,
            };
            told.push(of_file(&name, old.line, "edited-history", &said, PUT_BACK));
        }
        let added: Vec<_> = now
            .lines
            .iter()
            .filter(|line| before.line(&line.at).is_none())
            .collect();
        for contract in added.iter().filter(|line| line.at.phase == Phase::Contract) {
            let together = added
                .iter()
                .any(|line| line.at.id == contract.at.id && line.at.phase != Phase::Contract);
            if together {
                let said = format!(
                    "{} was sealed together with what it ends: no release can have run between them",
                    contract.at
                );
                told.push(of_file(
                    &name,
                    contract.line,
                    "contract-own-commit",
                    &said,
                    OWN_COMMIT,
                ));
            }
        }
        Ok(told)
    }
}

fn folder_of(path: &Path) -> &Path {
    if path.is_dir() {
        return path;
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
