//! `seal`: what was written becomes what is executed, a line of the lock for each phase.
//!
//! Invariants: lines that are there keep their places and their hashes, but for those that a person names because only dev
//! databases have applied them; the file is replaced whole or not at all.

use std::path::Path;

use crate::change::{Kind, PhaseOf, Problem, Problems};
use crate::lock::{LOCK_FILE, LockFile};
use crate::set::Set;

/// A lock that is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The file as it will be.
    pub lock: LockFile,
    /// Lines that are new.
    pub added: Vec<PhaseOf>,
    /// Lines that have another hash.
    pub edited: Vec<PhaseOf>,
}

impl Seal {
    /// Whether the file stays as it is.
    pub fn is_nothing(&self) -> bool {
        self.added.is_empty() && self.edited.is_empty()
    }
}

/// What sealing would write. `edited` are the phases whose lines may change.
pub fn prepare(set: &Set, edited: &[PhaseOf]) -> Result<Seal, Problems> {
    let mut lock = set.lock.clone();
    let mut changed = Vec::new();
    let mut problems = Vec::new();
    for at in edited {
        let path = set.files().name_of(LOCK_FILE);
        let sha256 = set
            .changes
            .get(&at.id)
            .and_then(|change| change.sha256(at.phase));
        match (set.lock.line(at), sha256) {
            (Some(line), Some(sha256)) if line.sha256 != sha256 => {
                lock.replace(at, &sha256);
                changed.push(at.clone());
            }
            (Some(_), Some(_)) => {}
            (None, _) => problems.push(Problem::of_file(
                path,
                format!("{at} is not sealed"),
                "leave out --edited: what is not sealed may be edited as you like",
            )),
            (Some(_), None) => problems.push(
                Problem::of_file(
                    path,
                    format!(
                        "{at} is sealed, and its change.toml has no {} any more",
                        at.phase
                    ),
                    "put it back",
                )
                .kind(Kind::Checksum),
            ),
        }
    }
    Problems::none_of(problems)?;
    let mut other = set.clone();
    other.lock = lock;
    other.sealed()?;
    let added = other.unsealed();
    for at in &added {
        if let Some(sha256) = set
            .changes
            .get(&at.id)
            .and_then(|change| change.sha256(at.phase))
        {
            other.lock.append(at.clone(), sha256);
        }
    }
    Ok(Seal {
        lock: other.lock,
        added,
        edited: changed,
    })
}

/// Writes the lock of a folder, whole.
pub fn write(root: &Path, lock: &LockFile) -> Result<(), Problem> {
    write_file(&root.join(LOCK_FILE), lock.text())
}

/// Writes a file beside the one that it replaces, then puts it in its place.
pub fn write_file(path: &Path, text: &str) -> Result<(), Problem> {
    use std::io::Write as _;
    let unwritable = |error: std::io::Error| {
        Problem::of_file(
            path.display().to_string(),
            format!("it cannot be written: {error}"),
            "make the folder writable; nothing was changed",
        )
    };
    let beside = path.with_extension("new");
    let written = std::fs::File::create(&beside)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        // What was begun is of no use to anybody.
        std::fs::remove_file(&beside).ok();
        unwritable(error)
    })
}
