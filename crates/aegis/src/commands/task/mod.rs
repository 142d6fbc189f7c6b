//! `aegis task`: one file a verb; what changes tasks shares `change`.

mod change;
mod events;
mod filter;
mod list;
mod rows;
mod show;
mod stream;
mod submit;
mod timeline;
mod told;
mod wait;
mod watch;

use aegis_store::change::Change;
use clap::{Args, Subcommand};
use jiff::Timestamp;

use self::change::ChangeArguments;
use self::wait::WaitArguments;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Submits a task, or one for each line of a file.
    #[command(after_help = submit::EXAMPLES)]
    Submit(Box<submit::SubmitArguments>),
    /// Lists tasks, the newest first.
    List(list::ListArguments),
    /// Shows one task's life: what it was asked, and on one time line who ran it, what was saved, called, refused and decided.
    Show {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Prints a task's state whenever it changes, until it has ended.
    Watch(watch::WatchArguments),
    /// Prints what happened to a task.
    Events(events::EventsArguments),
    /// Asks for the end of tasks. A running one is told, and ended for it when it does not stop.
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(ChangeAndWait),
    /// Ends the back-off after a failed attempt: ready now. The failure stays counted, nothing else is charged.
    #[command(after_help = RETRY_EXAMPLES)]
    Retry(ChangeAndWait),
    /// Sends failed or quarantined tasks again, with new counters.
    Redrive(ChangeAndWait),
    /// Gives failed or quarantined tasks up for good.
    Discard(ChangeArguments),
    /// Starts what waits for its time now, for whatever reason it waits.
    RunNow(ChangeAndWait),
    /// Gives tasks that wait another time.
    Reschedule {
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        time: Time,
    },
    /// Gives tasks another place in line.
    #[command(visible_alias = "reprioritize")]
    Reprioritise {
        #[command(flatten)]
        change: ChangeArguments,
        /// 0 first, 9 last; a level is a head start of a minute.
        #[arg(long, value_parser = clap::value_parser!(i16).range(0..=9))]
        priority: i16,
    },
    /// Replaces the payload of ended tasks for ever: input, labels, checkpoint, steps, requests, results, error texts. What
    /// happened, when and by whom stays.
    Erase(ChangeArguments),
}

#[derive(Debug, Args)]
struct ChangeAndWait {
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    wait: WaitArguments,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Time {
    /// At this moment (RFC 3339).
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// So long from now by the database's clock, such as 90s, 2h or 7d.
    #[arg(long, value_name = "DURATION", value_parser = filter::duration_ms)]
    r#in: Option<i64>,
}

const CANCEL_EXAMPLES: &str = "Examples:
  aegis task cancel 01a2298f --reason 'wrong file'
  aegis task cancel --kind resize --label batch=7 --older-than 1h --reason 'batch 7 is void' --dry-run";

const RETRY_EXAMPLES: &str = "Examples:
  aegis task retry 01a2298f --reason 'the service is back' --wait
  aegis task list --kind pay --state scheduled -o name | aegis task retry - --reason 'the service is back'";

pub(crate) async fn run(
    arguments: TaskArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let simple = WaitArguments::default();
    let (change, verb, wait) = match arguments.verb {
        Verb::Submit(submit) => return submit::run(*submit, database, output).await,
        Verb::List(list) => {
            list::run(list, &database.connect().await?, output).await?;
            return Ok(Exit::Done);
        }
        Verb::Show { id } => {
            show::run(&database.connect().await?, &id, output).await?;
            return Ok(Exit::Done);
        }
        Verb::Watch(watch) => return watch::run(watch, &database.connect().await?, output).await,
        Verb::Events(events) => {
            return events::run(events, &database.connect().await?, output).await;
        }
        Verb::Cancel(both) => (both.change, Change::Cancel, both.wait),
        Verb::Retry(both) => (both.change, Change::Retry, both.wait),
        Verb::Redrive(both) => (both.change, Change::Redrive, both.wait),
        Verb::Discard(change) => (change, Change::Discard, simple),
        Verb::RunNow(both) => (both.change, Change::RunNow, both.wait),
        Verb::Reschedule { change, time } => {
            let store = database.connect().await?;
            let run_at = match (time.at, time.r#in) {
                (Some(at), _) => at,
                (None, in_ms) => store.moment(in_ms.unwrap_or_default()).await?,
            };
            let verb = Change::Reschedule { run_at };
            return change::run(change, verb, simple, &store, output).await;
        }
        Verb::Reprioritise { change, priority } => {
            (change, Change::Reprioritise { priority }, simple)
        }
        Verb::Erase(change) => (change, Change::Erase, simple),
    };
    change::run(change, verb, wait, &database.connect().await?, output).await
}
