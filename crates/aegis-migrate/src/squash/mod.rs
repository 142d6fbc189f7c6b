//! `squash`: old changes become one baseline, for fresh databases; what they were stays known by their lines.
//!
//! Invariants: what is squashed is the beginning of the lock, whole; no statement of it changes; the caller has shown that no
//! target is behind, and that the new lock makes the same structure as the old one.
//!
//! Never: a folder that is removed before the new one is on the disk.

mod statements;

use std::path::Path;

use crate::change::{
    CHANGE_FILE, Change, ChangeId, Files, Phase, PhaseOf, Problem, Problems, SQUASHED_FILE,
};
use crate::lock::{LOCK_FILE, LockFile};
use crate::set::Set;

/// What a squash will do.
#[derive(Debug, Clone)]
pub struct Squash {
    /// The baseline.
    pub id: ChangeId,
    /// The changes whose folders go.
    pub gone: Vec<ChangeId>,
    /// The lines that every target must have applied.
    pub lines: LockFile,
    /// The lock as it will be.
    pub lock: LockFile,
    /// The files of the baseline: name and text.
    files: Vec<(&'static str, String)>,
}

/// What squashing everything through a change would do.
pub fn prepare(set: &Set, through: &ChangeId) -> Result<Squash, Problems> {
    set.sealed()?;
    let root = set.root();
    let refuse = |what: String, help: &str| Problem::of_file(root, what, help);
    if !set.changes.contains_key(through) {
        return Err(refuse(
            format!("there is no change {through}"),
            "name one of the folder",
        )
        .into());
    }
    let gone: Vec<&Change> = set
        .changes
        .range(..=through.clone())
        .map(|(_, change)| change)
        .collect();
    prefix(set, through)?;
    let mut problems = Vec::new();
    for at in set.unsealed().into_iter().filter(|at| at.id <= *through) {
        problems.push(refuse(
            format!("{at} is not sealed"),
            "seal and apply it first, or squash through an older change",
        ));
    }
    for change in &gone {
        if change.sync.is_some() && !change.has(Phase::Contract) {
            problems.push(refuse(
                format!(
                    "{} still keeps two sides alike: it has [sync] and no [contract]",
                    change.id
                ),
                "squash through an older change, or finish this one",
            ));
        }
        if (&change.schema, &change.run_as) != (&gone[0].schema, &gone[0].run_as) {
            problems.push(refuse(
                format!(
                    "{} has another schema or run_as than {}",
                    change.id, gone[0].id
                ),
                "squash through an older change: a baseline has one schema and one role",
            ));
        }
    }
    Problems::none_of(problems)?;
    let version = through.version();
    let id: ChangeId = format!("{version}_squashed")
        .parse()
        .map_err(|what: String| refuse(what, crate::change::ID_FORM))?;
    if gone.len() < 2 {
        return Err(refuse(
            format!("{through} is the first change"),
            "there is nothing to squash",
        )
        .into());
    }
    let mut lines = LockFile::default();
    for line in set.lock.lines.iter().filter(|line| line.at.id <= *through) {
        lines.append(line.at.clone(), line.sha256.clone());
    }
    let files = vec![
        (CHANGE_FILE, toml(&id, gone[0])),
        ("expand.sql", statements::all(set, through)),
        (SQUASHED_FILE, lines.text().to_owned()),
    ];
    let lock = lock_after(set, &id, &files, through)?;
    Ok(Squash {
        id,
        gone: gone.into_iter().map(|change| change.id.clone()).collect(),
        lines,
        lock,
        files,
    })
}

/// The lines that go stand before all others: the order of what was executed does not change.
fn prefix(set: &Set, through: &ChangeId) -> Result<(), Problem> {
    let mut younger = None;
    for line in &set.lock.lines {
        if line.at.id > *through {
            younger = younger.or(Some(&line.at));
        } else if let Some(before) = younger {
            return Err(Problem::of_file(
                set.files().name_of(LOCK_FILE),
                format!("{} comes after {before}, which would stay", line.at),
                "squash through that change too, or through an older one",
            )
            .at(line.line));
        }
    }
    Ok(())
}

fn toml(id: &ChangeId, first: &Change) -> String {
    let schema = serde_json::Value::from(first.schema.as_str());
    let run_as = first.run_as.as_deref().map_or_else(String::new, |role| {
        format!("run_as = {}\n", serde_json::Value::from(role))
    });
    format!(
        "# What the changes of {SQUASHED_FILE} made. It runs on fresh databases only; others have applied those changes.\n\
         format = 1\nid = \"{id}\"\nschema = {schema}\n{run_as}[baseline]\nfrom = \"changes\"\n[expand]\nsql = \"expand.sql\"\n"
    )
}

/// The lock with the baseline in the place of the lines that go.
fn lock_after(
    set: &Set,
    id: &ChangeId,
    files: &[(&'static str, String)],
    through: &ChangeId,
) -> Result<LockFile, Problems> {
    let named: Vec<(String, &[u8])> = files
        .iter()
        .map(|(name, text)| (format!("{id}/{name}"), text.as_bytes()))
        .collect();
    let built = Files::embedded(
        set.root(),
        named.iter().map(|(name, bytes)| (name.as_str(), *bytes)),
    );
    let baseline = crate::change::read(&built, id.as_str())?;
    let mut lock = LockFile::default();
    if let Some(sha256) = baseline.sha256(Phase::Expand) {
        let phase = Phase::Expand;
        lock.append(
            PhaseOf {
                id: id.clone(),
                phase,
            },
            sha256,
        );
    }
    for line in set.lock.lines.iter().filter(|line| line.at.id > *through) {
        lock.append(line.at.clone(), line.sha256.clone());
    }
    Ok(lock)
}

impl Squash {
    /// The set as it will be, so that it can be tried before anything is written.
    pub fn set(&self, before: &Set) -> Result<Set, Problems> {
        let goes = |name: &str| {
            name == LOCK_FILE
                || name
                    .split_once('/')
                    .is_some_and(|(folder, _)| self.gone.iter().any(|id| id.as_str() == folder))
        };
        let names: Vec<(String, Vec<u8>)> = self
            .files
            .iter()
            .map(|(name, text)| (format!("{}/{name}", self.id), text.clone().into_bytes()))
            .chain([(
                LOCK_FILE.to_owned(),
                self.lock.text().to_owned().into_bytes(),
            )])
            .collect();
        let stay = before
            .files()
            .names()
            .filter(|name| !goes(name))
            .map(|name| (name, before.files().get(name).unwrap_or_default()));
        let new = names
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        Set::of(Files::embedded(before.root(), stay.chain(new)))
    }

    /// Writes the baseline and the lock, then removes the folders.
    pub fn write(&self, root: &Path) -> Result<(), Problem> {
        let refuse = |path: &Path, what: &str, error: std::io::Error| {
            Problem::of_file(
                path.display().to_string(),
                format!("it cannot be {what}: {error}"),
                "put the folder back with your version control, mend it, and squash again",
            )
        };
        let folder = root.join(self.id.as_str());
        std::fs::create_dir(&folder).map_err(|error| refuse(&folder, "made", error))?;
        for (name, text) in &self.files {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| refuse(&path, "written", error))?;
        }
        crate::seal::write(root, &self.lock)?;
        for id in &self.gone {
            let path = root.join(id.as_str());
            std::fs::remove_dir_all(&path).map_err(|error| refuse(&path, "removed", error))?;
        }
        Ok(())
    }
}
