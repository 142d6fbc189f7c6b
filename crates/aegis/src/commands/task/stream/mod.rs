//! `aegis task submit --from FILE`: one task for each line of JSON, however many there are.
//!
//! Invariants: memory does not grow with the number of lines: batches are bounded in tasks and bytes, one is in flight while
//! the next is read. What was submitted is told line by line, in order. At a bad line everything before it has been submitted
//! and nothing from it on, unless bad lines are skipped.

mod line;
mod read;
mod send;

use std::fmt::Write as _;
use std::time::Duration;

use aegis_model::ErrorCode;
use aegis_model::limits::SUBMIT_BATCH_MAX;
use aegis_store::{NewTask, Store};
use clap::Args;
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use self::read::Item;
use self::send::{Failed, Sent};
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Progress, note, raw};

/// A batch is sent when its inputs have so many bytes.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// A batch is sent when no line has come for so long: a slow producer's tasks do not wait for company.
const IDLE: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
#[command(next_help_heading = "Many tasks")]
pub(super) struct StreamArguments {
    /// One task for each line of JSON in FILE; - for standard input.
    #[arg(
        long,
        visible_alias = "jsonl",
        value_name = "FILE",
        conflicts_with = "input"
    )]
    from: Option<String>,
    /// Goes on behind bad lines: each is told, and the exit code is 8. Otherwise it stops at the first.
    #[arg(long, requires = "from")]
    skip_bad: bool,
    /// Begins at this line, the first is 1: to go on where a run before stopped.
    #[arg(long, requires = "from", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    from_line: u64,
    /// So many tasks in a transaction.
    #[arg(long, requires = "from", default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=SUBMIT_BATCH_MAX as i64), value_name = "N")]
    batch: u16,
    /// Checks every line and submits nothing.
    #[arg(long, requires = "from")]
    dry_run: bool,
}

impl StreamArguments {
    /// Is it a file of tasks that was asked for?
    pub(super) fn is_given(&self) -> bool {
        self.from.is_some()
    }
}

/// What has been done so far.
#[derive(Debug, Default)]
struct Done {
    new: u64,
    known: u64,
    bad: u64,
}

pub(super) async fn run(
    arguments: StreamArguments,
    template: NewTask,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let path = arguments.from.clone().unwrap_or_default();
    let cannot = |error: std::io::Error| {
        Failure::new(
            Exit::Refused,
            format!("--from {path} cannot be read: {error}"),
        )
    };
    let source = read::open(&path).map_err(cannot)?;
    let store = if arguments.dry_run {
        None
    } else {
        Some(database.connect().await?)
    };
    let lines = read::tasks(source, arguments.from_line, template).map_err(cannot)?;
    match store {
        Some(store) => submit(lines, &arguments, store, output).await,
        None => check(lines, output).await,
    }
}

/// `--dry-run`: every bad line, and a number.
async fn check(mut lines: Receiver<Item>, output: Output) -> Result<Exit, Failure> {
    let (mut good, mut bad) = (0_u64, 0_u64);
    let progress = Progress::new("checking", None);
    while let Some(item) = lines.recv().await {
        match item {
            Item::Task(..) => good += 1,
            Item::Bad(number, problem) => {
                bad += 1;
                note(&format!("line {number}: {problem}"));
            }
            Item::Broken(number, error) => return Err(broken(number, &error)),
        }
        progress.more(1);
    }
    drop(progress);
    output.one(
        &[
            ("good lines", good.to_string()),
            ("bad lines", bad.to_string()),
        ],
        &json!({ "good": good, "bad": bad }),
    );
    Ok(if bad == 0 { Exit::Done } else { Exit::Refused })
}

fn broken(number: u64, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Refused,
        format!("the file cannot be read from line {number} on: {error}"),
    )
}

/// Why a batch is the last one.
enum Stop {
    Bad(u64, String),
    Broken(u64, std::io::Error),
}

async fn submit(
    mut lines: Receiver<Item>,
    arguments: &StreamArguments,
    store: Store,
    output: Output,
) -> Result<Exit, Failure> {
    let mut done = Done::default();
    let progress = Progress::new("submitting", None);
    let mut flying: Option<JoinHandle<Sent>> = None;
    let mut stop = None;
    let mut ended = false;
    while !ended && stop.is_none() {
        let mut batch = Vec::new();
        let mut bad = Vec::new();
        let waits = flying.is_some();
        ended = collect(
            &mut lines, arguments, waits, &mut batch, &mut bad, &mut stop,
        )
        .await;
        // What was found bad while reading is told when everything before it has its answer.
        settle(&mut flying, &mut done, &progress, output).await?;
        for (number, problem) in bad {
            refuse(number, &problem, &mut done, output);
        }
        if !batch.is_empty() {
            flying = Some(tokio::spawn(send::send(
                store.clone(),
                batch,
                arguments.skip_bad,
            )));
        }
        if !arguments.skip_bad && done.bad > 0 {
            break;
        }
    }
    let refused_before = done.bad;
    settle(&mut flying, &mut done, &progress, output).await?;
    drop(progress);
    if let (Some(stop), true) = (stop, done.bad == refused_before) {
        let (number, why) = match &stop {
            Stop::Bad(number, problem) => {
                refuse(*number, problem, &mut done, output);
                (*number, "it is refused".to_owned())
            }
            Stop::Broken(number, error) => (*number, format!("it cannot be read: {error}")),
        };
        return Err(stopped(number, &why, &done));
    }
    if output == Output::Table {
        output.one(
            &[
                ("submitted", done.new.to_string()),
                ("known", done.known.to_string()),
                ("refused", done.bad.to_string()),
            ],
            &json!(null),
        );
    }
    Ok(match done.bad {
        0 => Exit::Done,
        _ if arguments.skip_bad || done.new + done.known > 0 => Exit::Partly,
        _ => Exit::Refused,
    })
}

/// Fills a batch. True: there are no more lines. `waits`: one is in flight, whose answers must not wait for the next line.
async fn collect(
    lines: &mut Receiver<Item>,
    arguments: &StreamArguments,
    waits: bool,
    batch: &mut Vec<(u64, NewTask)>,
    bad: &mut Vec<(u64, String)>,
    stop: &mut Option<Stop>,
) -> bool {
    let mut bytes = 0;
    while batch.len() < usize::from(arguments.batch) && bytes < BATCH_BYTES {
        let item = if batch.is_empty() && bad.is_empty() && !waits {
            lines.recv().await
        } else {
            match tokio::time::timeout(IDLE, lines.recv()).await {
                Ok(item) => item,
                Err(_) => return false,
            }
        };
        match item {
            None => return true,
            Some(Item::Task(number, task)) => {
                bytes += task.input.len();
                batch.push((number, *task));
            }
            Some(Item::Bad(number, problem)) if arguments.skip_bad => {
                bad.push((number, problem));
            }
            Some(Item::Bad(number, problem)) => {
                *stop = Some(Stop::Bad(number, problem));
                return true;
            }
            Some(Item::Broken(number, error)) => {
                *stop = Some(Stop::Broken(number, error));
                return true;
            }
        }
    }
    false
}

/// Waits for the batch in flight and tells what became of its lines.
async fn settle(
    flying: &mut Option<JoinHandle<Sent>>,
    done: &mut Done,
    progress: &Progress,
    output: Output,
) -> Result<(), Failure> {
    let Some(handle) = flying.take() else {
        return Ok(());
    };
    let sent = handle.await.map_err(|error| {
        Failure::new(
            Exit::Broken,
            format!("the batch in flight ended by itself: {error}"),
        )
    })?;
    progress.more(sent.answers.len() as u64);
    let mut text = String::new();
    for (number, answer) in &sent.answers {
        if answer.is_new {
            done.new += 1;
        } else {
            done.known += 1;
        }
        let object = || json!({ "line": number, "id": answer.task, "new": answer.is_new });
        let written = match output {
            Output::Table => Ok(()),
            Output::Name => writeln!(text, "{}", answer.task),
            Output::Json => writeln!(text, "{}", object()),
            Output::Yaml => writeln!(text, "- {}", object()),
        };
        debug_assert!(written.is_ok(), "a text can always grow");
    }
    raw(text.as_bytes());
    for (number, problem) in sent.bad {
        refuse(number, &problem, done, output);
    }
    match sent.failed {
        Some(failed) => Err(gave_up(failed, done)),
        None => Ok(()),
    }
}

fn refuse(number: u64, problem: &str, done: &mut Done, output: Output) {
    done.bad += 1;
    note(&format!("line {number}: {problem}"));
    let object = json!({ "line": number, "error": problem });
    match output {
        Output::Json => raw(format!("{object}\n").as_bytes()),
        Output::Yaml => raw(format!("- {object}\n").as_bytes()),
        Output::Table | Output::Name => {}
    }
}

fn stopped(number: u64, why: &str, done: &Done) -> Failure {
    let before = done.new + done.known;
    let exit = if before == 0 {
        Exit::Refused
    } else {
        Exit::Partly
    };
    Failure::new(
        exit,
        format!(
            "stopped at line {number}: {why}; what stands before it was submitted ({before} tasks), nothing from it on: mend it and go on with --from-line {number}, or pass --skip-bad"
        ),
    )
    .with_code(ErrorCode::BAD_SUBMIT)
}

fn gave_up(failed: Failed, done: &Done) -> Failure {
    let (first, last) = failed.lines;
    let before = done.new + done.known;
    let told = if failed.in_doubt {
        format!(
            "{before} tasks were submitted; whether lines {first} to {last} were is not known: look with `aegis task list`, then go on with --from-line {first}, or {}; lines with keys may simply be sent again",
            last + 1
        )
    } else {
        format!(
            "{before} tasks were submitted, nothing from line {first} on; go on with --from-line {first}"
        )
    };
    Failure::from(failed.error).after(&told)
}
