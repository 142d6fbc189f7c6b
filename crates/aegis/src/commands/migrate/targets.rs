//! Which databases and schemas a verb is about: those of `targets.toml` where it is there and none is named, else the one of the
//! command line. One shape for all verbs that know them: [`TargetArguments`], [`resolve`], [`on_each`].
//!
//! Invariants: every target is named before the first one is touched; each has its own books and its own answer; the exit code is
//! that of the first target, in the file's order, that failed.

use std::sync::Arc;

use aegis_migrate::change::{Files, Problem, Problems};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::set::Set;
use aegis_migrate::targets::{self, Each, Stop, TARGETS_FILE, Target, each};
use clap::Args;
use serde_json::{Value, json};

use super::{Place, connect};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, note};

/// So many names of targets stand in a message.
const NAMES_MAX: usize = 20;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TargetArguments {
    /// Only this database or schema of targets.toml, by the name that results have; once for each.
    #[arg(long = "target", value_name = "NAME")]
    names: Vec<String>,
}

impl TargetArguments {
    /// None is named.
    pub(crate) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The databases, with how many at once.
pub(crate) struct Resolved {
    pub(crate) targets: Vec<Target>,
    pub(crate) parallel: usize,
    /// When no further one is begun.
    pub(crate) stop: Stop,
    /// Whether targets.toml names them.
    pub(crate) is_many: bool,
}

impl Resolved {
    /// For a verb that says what a person has seen in one place.
    pub(crate) fn one(&self, verb: &str) -> Result<&Target, Failure> {
        if let [target] = self.targets.as_slice() {
            return Ok(target);
        }
        let what = format!(
            "`{verb}` is about one database or schema, and {TARGETS_FILE} names {}: name it with --target ({})",
            self.targets.len(),
            names(&self.targets)
        );
        Err(Failure::new(Exit::Usage, what))
    }
}

/// Names every database, before any is touched.
pub(crate) async fn resolve(
    files: &Files,
    place: &Place<'_>,
    only: &TargetArguments,
) -> Result<Resolved, Failure> {
    let file = targets::read(files)?;
    let is_given = place.database.given().is_some();
    match file {
        Some(_) if is_given && !only.names.is_empty() => Err(Failure::new(
            Exit::Usage,
            format!(
                "--target names one of {TARGETS_FILE}, and a database URL is given too: leave out one of both (--database-url, \
                 AEGIS_DATABASE_URL, or database_url in aegis.toml)"
            ),
        )),
        Some(file) if !is_given => {
            let variable = |name: &str| std::env::var(name).ok();
            let found = targets::resolve(&file, variable, |url| async move {
                connect(&url).await.map_err(|failure| failure.to_string())
            });
            Ok(Resolved {
                targets: named(found.await.map_err(Problems::from)?, &only.names)?,
                parallel: file.parallel,
                stop: file.stop,
                is_many: true,
            })
        }
        None if !only.names.is_empty() => {
            let path = files.name_of(TARGETS_FILE);
            let what = "--target is given, and there is no such file";
            let help = "write it (docs/guides/migrate.md, \"Many databases\"), or give the database with --database-url";
            Err(Problems::from(Problem::of_file(path, what, help)).into())
        }
        _ => Ok(Resolved {
            targets: vec![Target {
                name: "database".to_owned(),
                url: place.database.direct()?.to_owned(),
                schema: None,
            }],
            parallel: 1,
            stop: Stop::First,
            is_many: false,
        }),
    }
}

/// Those that are wanted, in the file's order.
fn named(mut targets: Vec<Target>, wanted: &[String]) -> Result<Vec<Target>, Failure> {
    if wanted.is_empty() {
        return Ok(targets);
    }
    let unknown = wanted
        .iter()
        .find(|name| !targets.iter().any(|target| target.name == **name));
    if let Some(name) = unknown {
        let what = format!(
            "{TARGETS_FILE} has no target `{name}`; it names {}",
            names(&targets)
        );
        return Err(Failure::new(Exit::Usage, what));
    }
    targets.retain(|target| wanted.contains(&target.name));
    Ok(targets)
}

/// For a message; of many the first ones.
fn names(targets: &[Target]) -> String {
    let shown = targets.iter().take(NAMES_MAX);
    let mut names = shown.map(|one| one.name.clone()).collect::<Vec<_>>();
    if targets.len() > NAMES_MAX {
        names.push(format!("and {} more", targets.len() - NAMES_MAX));
    }
    names.join(", ")
}

/// One database, or one schema of one.
#[derive(Clone)]
pub(crate) struct Aim {
    /// Where it is.
    pub(crate) url: String,
    /// Its books.
    pub(crate) ledger: LedgerName,
    /// The changes, in its schema.
    pub(crate) set: Arc<Set>,
}

/// What a verb says of one target.
pub(crate) struct Told {
    /// For a person.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// For a program.
    pub(crate) json: Value,
    /// Beside the result, on stderr.
    pub(crate) notes: Vec<String>,
    /// The answer is there, and it is no.
    pub(crate) failure: Option<Failure>,
}

/// How many targets at once, until when.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// It only looks: one that cannot be asked hides no other.
    Looks,
    /// It writes: the stop rule of the file counts.
    Writes,
    /// It writes, and needs much of this machine for each: one after the other.
    WritesInTurn,
}

/// Does `work` on each target and prints what each one said.
pub(crate) async fn on_each<F>(
    set: Set,
    resolved: Resolved,
    manner: Manner,
    output: Output,
    work: impl Fn(Aim) -> F,
) -> Result<Exit, Failure>
where
    F: Future<Output = Result<Told, Failure>> + Send + 'static,
{
    let set = Arc::new(set);
    let aim = |target: &Target| -> Result<Aim, Failure> {
        Ok(Aim {
            url: target.url.clone(),
            ledger: target.ledger(),
            set: match &target.schema {
                Some(schema) => Arc::new(set.in_schema(schema)?),
                None => Arc::clone(&set),
            },
        })
    };
    if let ([target], false) = (resolved.targets.as_slice(), resolved.is_many) {
        let told = work(aim(target)?).await?;
        told.notes.iter().for_each(|words| note(words));
        output.one(&told.fields, &told.json);
        return told.failure.map_or(Ok(Exit::Done), Err);
    }
    // What is refused for one schema is refused for all: before any is touched.
    let aims: Result<Vec<Aim>, Failure> = resolved.targets.iter().map(aim).collect();
    let mut aims = aims?.into_iter();
    let lost = |why: String| Failure::new(Exit::Broken, why);
    let (parallel, stop) = match manner {
        Manner::Looks => (resolved.parallel, Stop::Never),
        Manner::Writes => (resolved.parallel, resolved.stop),
        Manner::WritesInTurn => (1, resolved.stop),
    };
    let begin = |_| {
        // In the order of the targets, each once.
        let begun = aims.next().map(&work);
        async move {
            match begun {
                Some(work) => work.await,
                None => Err(Failure::new(Exit::Broken, "a target was begun twice")),
            }
        }
    };
    let answers = each(&resolved.targets, parallel, stop, begin, lost, |_, _| {}).await;
    print(&resolved.targets, answers, output)
}

fn print(
    targets: &[Target],
    answers: Vec<Each<Told, Failure>>,
    output: Output,
) -> Result<Exit, Failure> {
    let (mut rows, mut documents, mut first) = (Vec::new(), Vec::new(), None);
    let mut columns = vec!["target"];
    for (target, answer) in targets.iter().zip(answers) {
        let name = &target.name;
        let failure = match answer {
            Each::Done(mut told) => {
                for words in &told.notes {
                    note(&format!("{name}: {words}"));
                }
                if columns.len() == 1 {
                    columns.extend(told.fields.iter().map(|(column, _)| *column));
                }
                let cells = told.fields.into_iter().map(|(_, text)| text);
                rows.push(std::iter::once(name.clone()).chain(cells).collect());
                told.json["target"] = Value::from(name.clone());
                documents.push(told.json);
                told.failure
            }
            Each::Failed(failure) => {
                let (code, error) = (failure.exit.code(), failure.to_string());
                documents.push(json!({ "target": name, "exit_code": code, "error": error }));
                Some(failure)
            }
            Each::NotTried => {
                note(&format!("{name}: not tried"));
                documents.push(json!({ "target": name, "outcome": "not_tried" }));
                None
            }
        };
        if let Some(failure) = failure {
            note(&format!("{name}: {failure}"));
            first.get_or_insert(failure.after(&format!("target {name}")));
        }
    }
    output.list(&columns, rows, documents);
    first.map_or(Ok(Exit::Done), Err)
}
