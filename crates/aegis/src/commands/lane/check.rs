//! `aegis lane check`: may it retire, may we roll back, what is stranded.
//!
//! Invariants: each question is put so that yes is good; the exit code is the answer: 0 yes, 21 no, 22 unknown.

use aegis_store::Store;
use aegis_store::lane_check::{
    Answer, Checked, LaneReason, Leaver, Reads, Reasons, RollBack, TASKS_TOLD, TaskReason,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, line, maybe_at};

pub(super) const EXAMPLES: &str = "Examples:
  aegis lane check stranded
  aegis lane check retire --release 2026-11-29
  aegis lane check roll-back --to 2026-11-22 --from 2026-11-29
  aegis lane check roll-back --reads payments/charge=1..2

Exit codes: 0 yes, 21 no, 22 unknown.";

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// How many tasks are told one by one.
    #[arg(long, global = true, default_value_t = TASKS_TOLD, value_parser = clap::value_parser!(i64).range(0..=1000))]
    tasks: i64,
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// May a release, a build or a worker go: would a stored task, live or parked, lose its last reader?
    Retire(RetireArguments),
    /// May we go back to an older release: is there a stored task that it could not read?
    RollBack(RollBackArguments),
    /// Has every stored task a reader? Those that have none are stranded.
    Stranded,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct RetireArguments {
    /// All workers of this release.
    #[arg(long)]
    release: Option<String>,
    /// All workers of this build.
    #[arg(long)]
    build: Option<String>,
    /// This worker.
    #[arg(long, value_name = "ID")]
    worker: Option<Uuid>,
}

#[derive(Debug, Args)]
struct RollBackArguments {
    /// The older release; what it reads is known when one of its workers has run in the last month.
    #[arg(long, value_name = "RELEASE", required_unless_present = "reads")]
    to: Option<String>,
    /// What it reads, where that is not known: [QUEUE/]KIND=LOWEST..HIGHEST; several times.
    #[arg(long, value_name = "WHAT", value_parser = reads)]
    reads: Vec<Reads>,
    /// The release that would be replaced; without it every other that serves what the older one serves.
    #[arg(long, value_name = "RELEASE")]
    from: Option<String>,
}

/// `queue/kind=1..2`, `kind=1`.
fn reads(text: &str) -> Result<Reads, String> {
    let wrong = || format!("`{text}` is not [QUEUE/]KIND=LOWEST..HIGHEST, such as charge=1..2");
    let (what, range) = text.rsplit_once('=').ok_or_else(wrong)?;
    let (min, max) = range.split_once("..").unwrap_or((range, range));
    let (min, max) = (
        min.parse().map_err(|_| wrong())?,
        max.parse().map_err(|_| wrong())?,
    );
    let (queue, kind) = what.split_once('/').unwrap_or(("default", what));
    if queue.is_empty() || kind.is_empty() || !(1..=max).contains(&min) {
        return Err(wrong());
    }
    Ok(Reads {
        queue: queue.to_owned(),
        kind: kind.to_owned(),
        min,
        max,
    })
}

/// Asks and prints; the exit code is the answer.
pub(super) async fn run(
    arguments: CheckArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let store = database.connect().await?;
    let (question, checked) = ask(&store, arguments.question, arguments.tasks).await?;
    print(&question, &checked, output);
    Ok(match checked.answer {
        Answer::Yes => Exit::Done,
        Answer::No(_) => Exit::Critical,
        Answer::Unknown(_) => Exit::Unknown,
    })
}

async fn ask(store: &Store, question: Question, tasks: i64) -> Result<(String, Checked), Failure> {
    Ok(match question {
        Question::Retire(who) => {
            let leaver = match (who.release, who.build, who.worker) {
                (Some(release), _, _) => Leaver::Release(release),
                (_, Some(build), _) => Leaver::Build(build),
                (_, _, Some(worker)) => Leaver::Worker(worker),
                _ => {
                    return Err(Failure::new(
                        Exit::Usage,
                        "say who would go: --release, --build or --worker",
                    ));
                }
            };
            (
                format!("may {leaver} retire"),
                store.may_retire(&leaver, tasks).await?,
            )
        }
        Question::RollBack(back) => {
            let target = back
                .to
                .as_ref()
                .map_or_else(|| "what was said".to_owned(), |to| format!("release {to}"));
            let back = RollBack {
                to: back.to,
                reads: back.reads,
                from: back.from,
            };
            (
                format!("may we roll back to {target}"),
                store.may_roll_back(&back, tasks).await?,
            )
        }
        Question::Stranded => (
            "has every stored task a reader".to_owned(),
            store.all_read(tasks).await?,
        ),
    })
}

fn print(question: &str, checked: &Checked, output: Output) {
    let none = Reasons {
        lanes: Vec::new(),
        lanes_total: 0,
        tasks: Vec::new(),
        tasks_counted: 0,
        at_least: false,
    };
    let (reasons, why): (&Reasons, &[String]) = match &checked.answer {
        Answer::Yes => (&none, &[]),
        Answer::No(reasons) => (reasons, &[]),
        Answer::Unknown(why) => (&none, why),
    };
    let more = if reasons.at_least { "at least " } else { "" };
    match output {
        Output::Name => {
            for task in &reasons.tasks {
                line(&task.id.to_string());
            }
        }
        Output::Table => {
            let mut fields = vec![(question, checked.answer.word().to_owned()), ("at", at(checked.at))];
            fields.extend(why.iter().map(|text| ("why", text.clone())));
            if !reasons.lanes.is_empty() {
                fields.push(("why", format!("{more}{} tasks in {} lanes would have no reader", reasons.tasks_counted, reasons.lanes_total)));
            }
            fields.extend(checked.remarks.iter().map(|text| ("remark", text.clone())));
            output.one(&fields, &Value::Null);
            if !reasons.lanes.is_empty() {
                line("");
                output.list(&["lane", "tasks", "why", "could read it", "unread since"], reasons.lanes.iter().map(lane_row).collect(), Vec::new());
            }
            if !reasons.tasks.is_empty() {
                line("");
                output.list(&["task", "state", "tenant", "lane", "stored"], reasons.tasks.iter().map(task_row).collect(), Vec::new());
            }
        }
        Output::Json | Output::Yaml => output.one(
            &[],
            &json!({
                "question": question, "answer": checked.answer.word(), "at": checked.at, "why": why, "remarks": checked.remarks,
                "lanes_total": reasons.lanes_total, "tasks_counted": reasons.tasks_counted, "at_least": reasons.at_least,
                "lanes": reasons.lanes.iter().map(lane_json).collect::<Vec<_>>(), "tasks": reasons.tasks,
            }),
        ),
    }
}

fn lane_json(lane: &LaneReason) -> Value {
    let mut value = json!(lane);
    value["why"] = json!(lane.why());
    value
}

fn lane_row(lane: &LaneReason) -> Vec<String> {
    let counts: Vec<String> = lane
        .counts
        .iter()
        .map(|(state, n)| format!("{n} {state}"))
        .collect();
    let counts = match (counts.is_empty(), lane.at_least) {
        (true, _) => "some".to_owned(),
        (false, true) => format!("at least {}", counts.join(", ")),
        (false, false) => counts.join(", "),
    };
    vec![
        lane.name(),
        counts,
        lane.why(),
        lane.readers(),
        maybe_at(lane.unread_since),
    ]
}

fn task_row(task: &TaskReason) -> Vec<String> {
    vec![
        task.id.to_string(),
        task.state.to_owned(),
        task.tenant.clone(),
        task.lane.clone(),
        task.stored(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_release_reads_can_be_said() {
        let one = reads("payments/charge=1..3").unwrap();
        assert_eq!(
            (one.queue.as_str(), one.kind.as_str(), one.min, one.max),
            ("payments", "charge", 1, 3)
        );
        let one = reads("charge=2").unwrap();
        assert_eq!((one.queue.as_str(), one.min, one.max), ("default", 2, 2));
        for bad in [
            "charge",
            "charge=",
            "charge=0..2",
            "charge=3..2",
            "/charge=1",
            "q/=1",
            "charge=1..x",
        ] {
            assert!(
                reads(bad).unwrap_err().contains("KIND=LOWEST..HIGHEST"),
                "{bad}"
            );
        }
    }
}
