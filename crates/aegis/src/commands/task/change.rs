//! `aegis task cancel|retry|run-now|reschedule|reprioritise|redrive|discard|erase`: by ids, or by filter.
//!
//! Invariants: nothing is changed before every id is known to stand for one task; a filter changes nothing before somebody
//! has seen how many it finds, or said `--yes`; each task that is left alone is told with the reason.

use std::collections::BTreeMap;
use std::io::BufRead;

use aegis_model::{ErrorCode, State};
use aegis_store::Store;
use aegis_store::change::{By, Change, Changed, PAGE_TASKS, Skip};
use clap::Args;
use serde_json::{Value, json};
use uuid::Uuid;

use super::filter::FilterArguments;
use super::list::standing;
use super::rows::Rows;
use super::told;
use super::wait::{self, WaitArguments};
use crate::commands::find;
use crate::confirm::confirm;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Progress, note};

const COLUMNS: &[&str] = &["id", "state", "answer"];

#[derive(Debug, Clone, Args)]
pub(super) struct ChangeArguments {
    /// Ids of tasks, or their beginnings; - reads them from standard input, one a line.
    #[arg(value_name = "ID", conflicts_with_all = ["state", "queue", "kind", "tenant", "label", "older_than", "newer_than", "limit"])]
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// At most so many of those that the filter finds, the newest; 0: all.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..), help_heading = "Which tasks")]
    limit: i64,
    /// Why; kept with each task.
    #[arg(long)]
    reason: String,
    /// Who; default: the user of the shell. Kept with each task.
    #[arg(long)]
    actor: Option<String>,
    /// Lists what would change, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Does not ask before a change by filter.
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(
    arguments: ChangeArguments,
    change: Change,
    waiting: WaitArguments,
    store: &Store,
    output: Output,
) -> Result<Exit, Failure> {
    let by = By {
        actor: find::actor(arguments.actor.clone()),
        reason: arguments.reason.clone(),
    };
    let waiting = waiting.wait.then_some(waiting);
    if arguments.ids.is_empty() {
        return by_filter(&arguments, change, waiting, &by, store, output).await;
    }
    let ids = resolve(store, &arguments.ids).await?;
    let all = by_ids(store, ids, change, &by, arguments.dry_run).await?;
    let changed: Vec<Uuid> = done(&all).collect();
    if let ([only], [given]) = (all.as_slice(), arguments.ids.as_slice()) {
        if let Some(skip) = only.answer.skip() {
            return Err(refused(only, skip, given, change));
        }
        if waiting.is_none() || arguments.dry_run {
            output.one(
                &[
                    ("task", only.task.to_string()),
                    (
                        "state",
                        only.state
                            .map_or_else(String::new, |state| standing(state, only.parked)),
                    ),
                    (change.word(), told::answer(&only.answer, change)),
                ],
                &document(only, change),
            );
        }
    } else if waiting.is_none() || arguments.dry_run {
        let mut rows = Rows::new(output, COLUMNS);
        for one in all
            .iter()
            .filter(|one| output != Output::Name || one.answer.skip().is_none())
        {
            push(&mut rows, one, change);
        }
        rows.finish();
    }
    let left_alone = all.len() - changed.len();
    if left_alone > 0 {
        note(&format!(
            "{} of {} tasks were left alone: {}",
            left_alone,
            all.len(),
            reasons(&counts(&all), change)
        ));
    }
    if changed.is_empty() && !all.is_empty() {
        let missing = all
            .iter()
            .all(|one| one.answer.skip() == Some(&Skip::Missing));
        return Ok(if missing {
            Exit::NotFound
        } else {
            Exit::Refused
        });
    }
    if let Some(waiting) = waiting.filter(|_| !arguments.dry_run) {
        let ended = wait::all(store, &changed, waiting.timeout(), wanted(change), output).await?;
        if ended != Exit::Done {
            return Ok(ended);
        }
    }
    Ok(if left_alone > 0 {
        Exit::Partly
    } else {
        Exit::Done
    })
}

/// Page by page, so that an error can tell what was done before it.
async fn by_ids(
    store: &Store,
    mut ids: Vec<Uuid>,
    change: Change,
    by: &By,
    dry: bool,
) -> Result<Vec<Changed>, Failure> {
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        // Who and why are looked at all the same.
        return Ok(store.change(&[], change, by, dry).await?);
    }
    let mut all = Vec::with_capacity(ids.len());
    for page in ids.chunks(PAGE_TASKS) {
        match store.change(page, change, by, dry).await {
            Ok(page) => all.extend(page),
            Err(error) => {
                let changed = done(&all).count();
                return Err(if dry || changed == 0 {
                    error.into()
                } else {
                    broken_off(error.into(), changed as u64, change)
                });
            }
        }
    }
    Ok(all)
}

fn broken_off(failure: Failure, changed: u64, change: Change) -> Failure {
    failure.after(&format!(
        "{changed} tasks were {} before this; run it again to go on",
        told::done(change)
    ))
}

/// How a task should end that was waited for.
fn wanted(change: Change) -> State {
    match change {
        Change::Cancel => State::Cancelled,
        _ => State::Succeeded,
    }
}

async fn by_filter(
    arguments: &ChangeArguments,
    change: Change,
    waiting: Option<WaitArguments>,
    by: &By,
    store: &Store,
    output: Output,
) -> Result<Exit, Failure> {
    let mut filter = arguments.filter.filter();
    if filter.is_everything() {
        return Err(Failure::new(
            Exit::Usage,
            "no task was named; give ids, - for ids on standard input, or a filter such as --state, --queue or --older-than",
        ));
    }
    filter.limit = arguments.limit;
    if !arguments.dry_run && !arguments.yes {
        let progress = Progress::new("looking", None);
        let mut sweep = store.sweep(&filter, change, by, true).await?;
        let mut count = 0_u64;
        while let Some(page) = sweep.page(store).await? {
            progress.more(page.len() as u64);
            count += done(&page).count() as u64;
        }
        drop(progress);
        if count == 0 {
            note("nothing found that could be changed");
            return Ok(Exit::Done);
        }
        confirm(
            &format!("{count} tasks would be {}", told::done(change)),
            false,
        )?;
    }
    let mut sweep = store.sweep(&filter, change, by, arguments.dry_run).await?;
    let progress = Progress::new(change.word(), None);
    let mut rows = Rows::new(output, COLUMNS);
    let mut answers: BTreeMap<&'static str, (u64, Option<Skip>)> = BTreeMap::new();
    let mut to_wait_for = Vec::new();
    let mut changed = 0_u64;
    loop {
        let page = match sweep.page(store).await {
            Ok(Some(page)) => page,
            Ok(None) => break,
            Err(error) => {
                // The answers so far are whole, also as a document.
                rows.finish();
                return Err(broken_off(error.into(), changed, change));
            }
        };
        progress.more(page.len() as u64);
        changed += done(&page).count() as u64;
        for (word, (count, skip)) in counts(&page) {
            let entry = answers.entry(word).or_insert((0, skip));
            entry.0 += count;
        }
        if waiting.is_some() {
            to_wait_for.extend(done(&page));
        }
        for one in &page {
            let skipped = one.answer.skip().is_some();
            let shown = match output {
                // For people what was done is a number; what was not needs a look.
                Output::Table => skipped || arguments.dry_run,
                Output::Name => !skipped,
                _ => true,
            };
            if shown && (waiting.is_none() || arguments.dry_run) {
                push(&mut rows, one, change);
            }
        }
    }
    drop(progress);
    let left_alone: u64 = answers
        .values()
        .filter(|(_, skip)| skip.is_some())
        .map(|(count, _)| count)
        .sum();
    if output != Output::Table || left_alone > 0 || arguments.dry_run {
        rows.finish();
    }
    let would = if arguments.dry_run { "would be " } else { "" };
    let mut said = format!("{changed} {would}{}", told::done(change));
    if left_alone > 0 {
        said = format!(
            "{said}; {left_alone} left alone: {}",
            reasons(&answers, change)
        );
    }
    note(&said);
    if let Some(waiting) = waiting.filter(|_| !arguments.dry_run && !to_wait_for.is_empty()) {
        return wait::all(
            store,
            &to_wait_for,
            waiting.timeout(),
            wanted(change),
            output,
        )
        .await;
    }
    Ok(Exit::Done)
}

/// Every id that was given, each once, before anything is changed.
async fn resolve(store: &Store, given: &[String]) -> Result<Vec<Uuid>, Failure> {
    let mut words = Vec::new();
    for word in given {
        if word != "-" {
            words.push(word.clone());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|error| {
                Failure::new(
                    Exit::Refused,
                    format!(
                        "the ids on standard input cannot be read: {error}; nothing was changed"
                    ),
                )
            })?;
            if let Some(id) = line.split_whitespace().next() {
                words.push(id.to_owned());
            }
        }
    }
    let mut ids = Vec::with_capacity(words.len());
    for word in &words {
        // A whole id needs no search; the change itself says when there is no such task.
        ids.push(match Uuid::parse_str(word) {
            Ok(id) => id,
            Err(_) => find::task(store, word).await?,
        });
    }
    Ok(ids)
}

fn done(all: &[Changed]) -> impl Iterator<Item = Uuid> {
    all.iter()
        .filter(|one| one.answer.skip().is_none())
        .map(|one| one.task)
}

fn counts(all: &[Changed]) -> BTreeMap<&'static str, (u64, Option<Skip>)> {
    let mut counts = BTreeMap::new();
    for one in all {
        let entry = counts
            .entry(one.answer.word())
            .or_insert_with(|| (0, one.answer.skip().cloned()));
        entry.0 += 1;
    }
    counts
}

fn reasons(answers: &BTreeMap<&'static str, (u64, Option<Skip>)>, change: Change) -> String {
    let each: Vec<String> = answers
        .values()
        .filter_map(|(count, skip)| {
            let why = told::skip(skip.as_ref()?, change);
            Some(format!("{count} ({why})"))
        })
        .collect();
    each.join(", ")
}

fn push(rows: &mut Rows, one: &Changed, change: Change) {
    rows.push(
        || {
            vec![
                one.task.to_string(),
                one.state
                    .map_or_else(String::new, |state| standing(state, one.parked)),
                told::answer(&one.answer, change),
            ]
        },
        || document(one, change),
    );
}

fn document(one: &Changed, change: Change) -> Value {
    let mut object = json!({
        "id": one.task, "state": one.state.map(State::word), "parked": one.parked,
        "changed": one.answer.skip().is_none(), "answer": one.answer.word(),
    });
    if let Some(skip) = one.answer.skip() {
        object["why"] = json!(told::skip(skip, change));
    }
    object
}

fn refused(one: &Changed, skip: &Skip, given: &str, change: Change) -> Failure {
    let id = one.task;
    if *skip == Skip::Missing {
        return Failure::new(Exit::NotFound, format!("there is no task `{given}`"))
            .with_code(ErrorCode::NOT_FOUND);
    }
    let state = one.state.map_or_else(String::new, |state| {
        format!(" is {}", standing(state, one.parked))
    });
    Failure::new(
        Exit::Refused,
        format!(
            "task {id}{state}: {}; see `aegis task show {id}`",
            told::skip(skip, change)
        ),
    )
}
