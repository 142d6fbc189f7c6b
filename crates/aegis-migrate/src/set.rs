//! A folder of changes with its lock: what there is, what is sealed, and whether both agree.
//!
//! Invariants: a [`Set`] that exists has valid changes, one a version; what of it was sealed is what is executed, and
//! [`Set::sealed`] says whether the files are still what was sealed.
//!
//! Never: a folder or an SQL file that is left out in silence.

mod tenants;

use std::collections::BTreeMap;
use std::path::Path;

use crate::change::{self, Change, ChangeId, Files, Kind, Phase, PhaseOf, Problem, Problems};
use crate::lock::{LOCK_FILE, LockFile, LockLine};

/// All changes of an application, with their lock.
#[derive(Debug, Clone)]
pub struct Set {
    /// The order of execution.
    pub lock: LockFile,
    /// The changes by their ids.
    pub changes: BTreeMap<ChangeId, Change>,
    files: Files,
    /// For another schema than the files say; what was sealed was shown before.
    elsewhere: bool,
}

impl Set {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, Problems> {
        Self::of(Files::read(folder)?)
    }

    /// Of files that were read, or are built in.
    pub fn of(files: Files) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let lock = lock(&files).unwrap_or_else(|refused| {
            problems.extend(refused.all().iter().cloned());
            LockFile::default()
        });
        let mut changes = BTreeMap::new();
        for folder in folders(&files, &mut problems) {
            match change::read(&files, &folder) {
                Ok(change) => {
                    changes.insert(change.id.clone(), change);
                }
                Err(refused) => problems.extend(refused.all().iter().cloned()),
            }
        }
        twins(&changes, &files, &mut problems);
        requires(&changes, &mut problems);
        Problems::none_of(problems)?;
        Ok(Self {
            lock,
            changes,
            files,
            elsewhere: false,
        })
    }

    /// How messages call the folder.
    pub fn root(&self) -> &str {
        self.files.root()
    }

    /// Its files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Whether the files are what was sealed: each line has its change, with its hash.
    pub fn sealed(&self) -> Result<(), Problems> {
        if self.elsewhere {
            return Ok(());
        }
        let path = self.files.name_of(LOCK_FILE);
        let problems = self
            .lock
            .lines
            .iter()
            .filter_map(|line| self.disagrees(line, &path))
            .collect();
        Problems::none_of(problems)
    }

    fn disagrees(&self, line: &LockLine, path: &str) -> Option<Problem> {
        let PhaseOf { id, phase } = &line.at;
        let Some(change) = self.changes.get(id) else {
            let what = format!("{} is sealed, and its folder is missing", line.at);
            let help =
                "put the folder back; `aegis migrate squash --through ID` is how old changes go";
            return Some(
                Problem::of_file(path, what, help)
                    .at(line.line)
                    .kind(Kind::Checksum),
            );
        };
        match change.sha256(*phase) {
            Some(sha256) if sha256 == line.sha256 => None,
            Some(_) => {
                let what = format!(
                    "{} was edited after it was sealed ({})",
                    line.at,
                    places(change, *phase)
                );
                let help = "put the files back as they were and write a new change; when only dev databases have applied it, or its step has failed and was reviewed, `aegis migrate seal --edited ID:PHASE`, and then, in a database that has begun it, `aegis migrate repair accept-checksum ID:PHASE --reason TEXT`";
                Some(
                    Problem::of_file(path, what, help)
                        .at(line.line)
                        .kind(Kind::Checksum),
                )
            }
            None => {
                let what = format!(
                    "{} is sealed, and its change.toml has no {phase} any more",
                    line.at
                );
                Some(
                    Problem::of_file(path, what, "put it back")
                        .at(line.line)
                        .kind(Kind::Checksum),
                )
            }
        }
    }

    /// The same changes for a schema of a database where each schema is a tenant: it stands for the one that the files say.
    ///
    /// # Errors
    /// When the files are not what was sealed, or a change is not for many schemas: names that say which schema they mean, and what
    /// programs of the whole database are told about, would be the same for all of them.
    pub fn in_schema(&self, schema: &str) -> Result<Self, Problems> {
        self.sealed()?;
        Problems::none_of(tenants::problems(self.changes.values()))?;
        let mut set = self.clone();
        for change in set.changes.values_mut() {
            schema.clone_into(&mut change.schema);
        }
        set.elsewhere = true;
        Ok(set)
    }

    /// Phases that no line names, in the order in which they are sealed: a change's expand and migrate together, contracts last.
    pub fn unsealed(&self) -> Vec<PhaseOf> {
        let open = |phases: &'static [Phase]| {
            self.changes.values().flat_map(move |change| {
                phases
                    .iter()
                    .filter(|phase| change.has(**phase))
                    .map(|phase| PhaseOf {
                        id: change.id.clone(),
                        phase: *phase,
                    })
                    .filter(|at| self.lock.line(at).is_none())
            })
        };
        open(&[Phase::Expand, Phase::Migrate])
            .chain(open(&[Phase::Contract]))
            .collect()
    }

    /// SQL files with a byte order mark, or with ends of lines that are not LF, as messages call them. They count as without.
    pub fn other_line_ends(&self) -> Vec<&str> {
        let phases = [Phase::Expand, Phase::Migrate, Phase::Contract];
        let files = self.changes.values().flat_map(|change| {
            phases
                .into_iter()
                .flat_map(move |phase| change.files_of(phase))
        });
        let mut names: Vec<&str> = files
            .filter(|file| file.other_line_ends)
            .map(|file| file.path.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The squash that has replaced a phase; its line counts as applied where all lines that it has replaced are.
    pub fn squash_of(&self, at: &PhaseOf) -> Option<&Change> {
        self.changes.values().find(|change| {
            change
                .squashed
                .as_ref()
                .is_some_and(|lock| lock.line(at).is_some())
        })
    }

    /// The sealed phases with their changes, in the order of execution. Those whose folder is missing are told by
    /// [`Self::sealed`], which every caller asks first.
    pub fn lines(&self) -> impl Iterator<Item = (&LockLine, &Change)> {
        self.lock
            .lines
            .iter()
            .filter_map(|line| Some((line, self.changes.get(&line.at.id)?)))
    }
}

/// The files in which a phase is written, for a message.
fn places(change: &Change, phase: Phase) -> String {
    let mut names = vec![format!("{}/{}", change.path, change::CHANGE_FILE)];
    names.extend(
        change
            .files_of(phase)
            .into_iter()
            .map(|file| file.path.clone()),
    );
    names.join(", ")
}

fn lock(files: &Files) -> Result<LockFile, Problems> {
    let path = files.name_of(LOCK_FILE);
    let Some(bytes) = files.get(LOCK_FILE) else {
        return Ok(LockFile::default());
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::of_file(&path, "it is not UTF-8", "save it as UTF-8"))?;
    LockFile::parse(text, &path)
}

/// The folders of changes; what else stands beside them is named, when somebody may have meant it to run.
fn folders(files: &Files, problems: &mut Vec<Problem>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in files.names() {
        match name.split_once('/') {
            Some((folder, _)) if found.last().is_none_or(|last| last != folder) => {
                let may_run = || {
                    let toml = format!("{folder}/{}", change::CHANGE_FILE);
                    files.get(&toml).is_some() || files.below(folder).any(is_sql)
                };
                if folder.parse::<ChangeId>().is_err() && may_run() {
                    let what = format!("`{folder}` is no id of a change");
                    let path = files.name_of(folder);
                    problems.push(Problem::of_file(path, what, change::ID_FORM));
                }
                // One that is no id is remembered too, so that it is told once.
                found.push(folder.to_owned());
            }
            None if is_sql(name) && name != crate::shadow::SHADOW_FILE => problems.push(Problem::of_file(
                files.name_of(name),
                "an SQL file outside of a change would never run",
                "make a change of it (`aegis migrate new NAME`), or `aegis migrate adopt --from TOOL` for the folder of another tool",
            )),
            _ => {}
        }
    }
    found.retain(|folder| folder.parse::<ChangeId>().is_ok());
    found
}

fn is_sql(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("sql"))
}

/// Two changes of one version.
fn twins(changes: &BTreeMap<ChangeId, Change>, files: &Files, problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<&str, &ChangeId> = BTreeMap::new();
    for id in changes.keys() {
        if let Some(first) = seen.insert(id.version(), id) {
            let what = format!("the version {} is that of {first} too", id.version());
            let help = "rename the one that no database has applied (its folder and its id)";
            problems.push(Problem::of_file(files.name_of(id.as_str()), what, help));
        }
    }
}

/// What a change requires has to be there.
fn requires(changes: &BTreeMap<ChangeId, Change>, problems: &mut Vec<Problem>) {
    for change in changes.values() {
        for at in &change.requires {
            let squashed = |other: &Change| {
                other
                    .squashed
                    .as_ref()
                    .is_some_and(|lock| lock.line(at).is_some())
            };
            if changes.values().any(squashed) {
                continue;
            }
            let there = changes.get(&at.id).map(|other| other.has(at.phase));
            let (what, help) = match there {
                Some(true) if at.id < change.id => continue,
                Some(true) => (
                    format!("{at} is younger than {}", change.id),
                    "a change can require only what is older",
                ),
                Some(false) => (
                    format!("{} has no {}", at.id, at.phase),
                    "require a phase that it has",
                ),
                None => (
                    format!("there is no change {}", at.id),
                    "name a change of this folder, or remove it",
                ),
            };
            let path = format!("{}/{}", change.path, change::CHANGE_FILE);
            let mut problem = Problem::of_file(path, what, help);
            problem.key = Some("requires".to_owned());
            problems.push(problem);
        }
    }
}
