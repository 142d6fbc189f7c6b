//! `aegis operation`: the ledger of side effects, and reconciliation by people.

use aegis_model::{Class, ErrorCode, OperationState, Resolution};
use aegis_store::overrides::Decided;
use aegis_store::view::OperationSummary;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::commands::find;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, at, maybe_at, payload};

#[derive(Debug, Args)]
pub(crate) struct OperationArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists operations; without --state those that are unknown and wait for a person.
    List {
        /// Of these states.
        #[arg(long, value_enum, value_delimiter = ',', default_values_t = [StateWord::Unknown])]
        state: Vec<StateWord>,
        /// Of this task (an id, or its beginning).
        #[arg(long)]
        task: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=100_000))]
        limit: i64,
    },
    /// Shows one: what was going to be called, when, by which epoch and release, and what is known since.
    Show {
        /// TASK/NAME/KEY/vN, as listed.
        id: String,
    },
    /// Takes an unknown operation, so that two people do not look into the same one.
    Take {
        /// TASK/NAME/KEY/vN, as listed.
        id: String,
        /// Who takes it; default: the user of the shell.
        #[arg(long)]
        actor: Option<String>,
    },
    /// Decides an unknown operation, with evidence.
    Resolve {
        /// TASK/NAME/KEY/vN, as listed.
        id: String,
        /// What was found out.
        #[arg(long, value_enum)]
        r#as: ResolutionWord,
        /// How it was found out: a text, a link, a file's hash.
        #[arg(long)]
        evidence: String,
        /// What the handler gets as the operation's result (JSON); for `happened`.
        #[arg(long, value_name = "JSON")]
        result: Option<String>,
        /// Who decides; default: the user of the shell.
        #[arg(long)]
        actor: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateWord {
    Intended,
    Dispatched,
    Succeeded,
    Failed,
    Unknown,
    Resolved,
}

impl StateWord {
    fn number(self) -> i16 {
        match self {
            Self::Intended => OperationState::Intended,
            Self::Dispatched => OperationState::Dispatched,
            Self::Succeeded => OperationState::Succeeded,
            Self::Failed => OperationState::Failed,
            Self::Unknown => OperationState::Unknown,
            Self::Resolved => OperationState::Resolved,
        }
        .number()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ResolutionWord {
    /// It happened.
    Happened,
    /// It did not: the handler dispatches it again under the same id.
    DidNotHappen,
    /// It happened and was undone.
    Compensated,
    /// Nobody will find out: the task fails.
    GiveUp,
}

impl From<ResolutionWord> for Resolution {
    fn from(word: ResolutionWord) -> Self {
        match word {
            ResolutionWord::Happened => Self::Happened,
            ResolutionWord::DidNotHappen => Self::DidNotHappen,
            ResolutionWord::Compensated => Self::Compensated,
            ResolutionWord::GiveUp => Self::GiveUp,
        }
    }
}

fn state_word(number: i16) -> &'static str {
    OperationState::from_number(number).map_or("other", OperationState::word)
}

fn class_word(number: i16) -> &'static str {
    Class::from_number(number).map_or("other", Class::word)
}

fn resolution_word(number: Option<i16>) -> Option<&'static str> {
    Some(Resolution::from_number(number?).map_or("other", Resolution::word))
}

pub(crate) async fn run(
    arguments: OperationArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let store = database.connect().await?;
    match arguments.verb {
        Verb::List { state, task, limit } => {
            let task = match task {
                Some(prefix) => Some(find::task(&store, &prefix).await?),
                None => None,
            };
            let states: Vec<i16> = state.into_iter().map(StateWord::number).collect();
            let found = store.operations(&states, task, limit).await?;
            let rows = found.iter().map(row).collect();
            output.list(
                &[
                    "id",
                    "class",
                    "state",
                    "dispatched",
                    "times",
                    "epoch",
                    "taken by",
                    "note",
                ],
                rows,
                found.iter().map(summary).collect(),
            );
        }
        Verb::Show { id } => {
            let (task, id) = find::operation(&id)?;
            let found = store
                .operation(task, id)
                .await?
                .ok_or_else(|| missing(id))?;
            let request = found.request.as_deref().map(payload);
            let result = found.result.as_deref().map(payload);
            let text =
                |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
            output.one(
                &[
                    ("id", found.id.clone()),
                    ("task", found.task.to_string()),
                    ("tenant", found.tenant.clone()),
                    ("class", class_word(found.class).to_owned()),
                    ("state", state_word(found.state).to_owned()),
                    ("dispatched", format!("{} times, first {}, last {}", found.dispatches, maybe_at(found.first_dispatched_at), maybe_at(found.dispatched_at))),
                    ("by", format!("epoch {}, worker {}, release {}", found.epoch, found.worker.map(|w| w.to_string()).unwrap_or_default(), found.release.clone().unwrap_or_default())),
                    ("timeout", format!("{} ms, then {} ms quiet", found.timeout_ms, found.quiet_ms)),
                    ("key valid until", maybe_at(found.key_valid_until)),
                    ("quiet until", maybe_at(found.quiet_until)),
                    ("request", text(&request)),
                    ("fingerprint", found.fingerprint.clone()),
                    ("result", text(&result)),
                    ("note", found.note.clone().unwrap_or_default()),
                    ("taken", format!("{} {}", found.taken_by.clone().unwrap_or_default(), maybe_at(found.taken_at))),
                    ("resolved", format!("{} {} {}", resolution_word(found.resolution).unwrap_or_default(), found.resolved_by.clone().unwrap_or_default(), maybe_at(found.resolved_at))),
                    ("evidence", found.evidence.clone().unwrap_or_default()),
                ],
                &json!({
                    "id": found.id, "task": found.task, "tenant": found.tenant, "class": class_word(found.class), "state": state_word(found.state),
                    "dispatches": found.dispatches, "epoch": found.epoch, "worker": found.worker, "release": found.release,
                    "first_dispatched_at": found.first_dispatched_at.map(|t| t.to_string()), "dispatched_at": found.dispatched_at.map(|t| t.to_string()),
                    "key_valid_until": found.key_valid_until.map(|t| t.to_string()), "quiet_until": found.quiet_until.map(|t| t.to_string()),
                    "finished_at": found.finished_at.map(|t| t.to_string()), "fingerprint": found.fingerprint, "request": request, "result": result,
                    "note": found.note, "taken_by": found.taken_by, "resolution": resolution_word(found.resolution), "resolved_by": found.resolved_by,
                    "resolved_at": found.resolved_at.map(|t| t.to_string()), "evidence": found.evidence,
                }),
            );
        }
        Verb::Take { id, actor } => {
            let (task, id) = find::operation(&id)?;
            let actor = find::actor(actor);
            decided(&store.take_operation(task, id, &actor).await?, id)?;
            output.one(
                &[("taken", format!("{id} by {actor}"))],
                &json!({ "id": id, "taken_by": actor }),
            );
        }
        Verb::Resolve {
            id,
            r#as,
            evidence,
            result,
            actor,
        } => {
            let (task, id) = find::operation(&id)?;
            let actor = find::actor(actor);
            if evidence.trim().is_empty() {
                return Err(Failure::new(
                    Exit::Refused,
                    "--evidence is empty; say how it was found out",
                ));
            }
            if let Some(text) = &result
                && let Err(error) = serde_json::from_str::<Value>(text)
            {
                return Err(Failure::new(
                    Exit::Refused,
                    format!("--result is not JSON: {error}"),
                ));
            }
            let resolution = Resolution::from(r#as);
            let answer = store
                .resolve_operation(
                    task,
                    id,
                    resolution,
                    result.as_deref().map(str::as_bytes),
                    &actor,
                    &evidence,
                )
                .await?;
            decided(&answer, id)?;
            output.one(
                &[(
                    "resolved",
                    format!("{id} as {} by {actor}", resolution.word()),
                )],
                &json!({ "id": id, "resolution": resolution.word(), "resolved_by": actor }),
            );
        }
    }
    Ok(Exit::Done)
}

fn row(o: &OperationSummary) -> Vec<String> {
    vec![
        o.id.clone(),
        class_word(o.class).to_owned(),
        state_word(o.state).to_owned(),
        maybe_at(o.dispatched_at),
        o.dispatches.to_string(),
        o.epoch.to_string(),
        o.taken_by.clone().unwrap_or_default(),
        o.evidence
            .clone()
            .or_else(|| o.note.clone())
            .unwrap_or_default(),
    ]
}

fn summary(o: &OperationSummary) -> Value {
    json!({
        "id": o.id, "task": o.task, "tenant": o.tenant, "name": o.name, "key": o.key, "class": class_word(o.class), "state": state_word(o.state),
        "dispatches": o.dispatches, "epoch": o.epoch, "release": o.release, "dispatched_at": o.dispatched_at.map(at), "note": o.note,
        "taken_by": o.taken_by, "resolution": resolution_word(o.resolution), "resolved_by": o.resolved_by, "evidence": o.evidence,
    })
}

fn missing(id: &str) -> Failure {
    Failure::new(
        Exit::NotFound,
        format!("there is no operation `{id}`; see `aegis operation list`"),
    )
    .with_code(ErrorCode::NOT_FOUND)
}

fn decided(answer: &Decided, id: &str) -> Result<(), Failure> {
    match answer {
        Decided::Done => Ok(()),
        Decided::Missing => Err(missing(id)),
        Decided::NotUnknown => Err(Failure::new(
            Exit::Refused,
            format!("operation `{id}` is not unknown; see `aegis operation show {id}`"),
        )
        .with_code(ErrorCode::NOT_RESOLVABLE)),
        Decided::TakenBy(who) => Err(Failure::new(
            Exit::Refused,
            format!("operation `{id}` was taken by {who}; ask them, or act as them with --actor"),
        )
        .with_code(ErrorCode::NOT_RESOLVABLE)),
    }
}
