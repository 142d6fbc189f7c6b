//! `aegis operation take` and `resolve`: of one, of several, or by filter.
//!
//! Invariants: who, and the evidence, are kept with each; of several each is answered by itself; by filter only what was
//! listed is decided, and only after `--yes` or a person's yes.

use aegis_model::{ErrorCode, Resolution};
use aegis_store::Store;
use aegis_store::overrides::Decided;
use aegis_store::survey::{OperationFound, OperationId};
use clap::Args;
use serde_json::{Value, json};

use super::list::FilterArguments;
use super::words::{ResolutionWord, StateWord};
use crate::commands::find;
use crate::confirm::confirm;
use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, Progress};

/// Below `aegis operation take --help`.
pub(super) const TAKE_EXAMPLES: &str = "Examples:\n  aegis operation take 01a2298f/charge/O-7/v1\n  \
    aegis operation list --name charge -o name | aegis operation take -\n  aegis operation take --name charge --dry-run";

/// Below `aegis operation resolve --help`.
pub(super) const RESOLVE_EXAMPLES: &str = "Examples:\n  \
    aegis operation resolve 01a2298f/charge/O-7/v1 --as happened --evidence 'bank statement p. 3'\n  \
    aegis operation resolve --name notify --older-than 1h --as did-not-happen --evidence 'provider log, INC-7' --dry-run";

/// Which ones.
#[derive(Debug, Args)]
struct Wanted {
    /// TASK/NAME/KEY/vN, as listed, or the beginning of it; several; or - for standard input, one a line.
    ids: Vec<String>,
    #[command(flatten)]
    filter: FilterArguments,
    /// Says which ones, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// By filter: does it without asking.
    #[arg(long)]
    yes: bool,
    /// By filter: at most so many, the oldest dispatch first.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

#[derive(Debug, Args)]
pub(super) struct TakeArguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Who takes it; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ResolveArguments {
    #[command(flatten)]
    wanted: Wanted,
    /// What was found out.
    #[arg(long, value_enum)]
    r#as: ResolutionWord,
    /// How it was found out: a text, a link, a file's hash.
    #[arg(long)]
    evidence: String,
    /// What the handler gets as the operation's result (JSON); for `happened`.
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
    /// For `did-not-happen`: decides although a request may still arrive. Only with evidence that none is under way.
    #[arg(long)]
    early: bool,
    /// Who decides; default: the user of the shell.
    #[arg(long)]
    actor: Option<String>,
}

/// What is done to each.
enum Decision {
    Take,
    Resolve {
        resolution: Resolution,
        result: Option<String>,
        evidence: String,
        early: bool,
    },
}

/// Takes them.
pub(super) async fn take(
    arguments: TakeArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let actor = find::actor(arguments.actor);
    decide(arguments.wanted, &Decision::Take, &actor, database, output).await
}

/// Resolves them.
pub(super) async fn resolve(
    arguments: ResolveArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    if arguments.evidence.trim().is_empty() {
        return Err(Failure::new(
            Exit::Refused,
            "--evidence is empty; say how it was found out",
        ));
    }
    if let Some(text) = &arguments.result
        && let Err(error) = serde_json::from_str::<Value>(text)
    {
        return Err(Failure::new(
            Exit::Refused,
            format!("--result is not JSON: {error}"),
        ));
    }
    let decision = Decision::Resolve {
        resolution: Resolution::from(arguments.r#as),
        result: arguments.result,
        evidence: arguments.evidence,
        early: arguments.early,
    };
    let actor = find::actor(arguments.actor);
    decide(arguments.wanted, &decision, &actor, database, output).await
}

async fn decide(
    wanted: Wanted,
    decision: &Decision,
    actor: &str,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let by_filter = wanted.filter.is_given();
    if by_filter != wanted.ids.is_empty() {
        let why = if by_filter {
            "give either ids or a filter, not both"
        } else {
            "give an id, or a filter such as --name"
        };
        return Err(Failure::new(Exit::Usage, format!("{why}; see --help")));
    }
    let store = database.connect().await?;
    let (ids, found) = if by_filter {
        let found = by_filter_of(&store, &wanted).await?;
        let ids = found.iter().map(|o| OperationId {
            task: o.task,
            id: o.id.clone(),
        });
        (ids.collect(), found)
    } else {
        (by_id(&store, &wanted.ids).await?, Vec::new())
    };
    if wanted.dry_run {
        list(&ids, &found, output);
        return Ok(Exit::Done);
    }
    if by_filter {
        confirm(
            &format!("{} of {} operations", decision.verb(), ids.len()),
            wanted.yes,
        )?;
    }
    // One is an object and an error of its own, several are a list with an answer each.
    if let [one] = ids.as_slice()
        && !by_filter
    {
        decided(&decision.apply(&store, one, actor).await?, &one.id)?;
        output.one(
            &[(decision.done(), decision.text(one, actor))],
            &decision.document(one, actor),
        );
        return Ok(Exit::Done);
    }
    each(&store, &ids, decision, actor, output).await
}

async fn each(
    store: &Store,
    ids: &[OperationId],
    decision: &Decision,
    actor: &str,
    output: Output,
) -> Result<Exit, Failure> {
    let progress = Progress::new(decision.done(), u64::try_from(ids.len()).ok());
    let (mut rows, mut documents, mut done) = (Vec::new(), Vec::new(), 0_usize);
    let mut broken = None;
    for one in ids {
        let answer = match decision.apply(store, one, actor).await {
            Ok(answer) => answer,
            Err(failure) => {
                broken = Some(failure);
                break;
            }
        };
        let mut document = decision.document(one, actor);
        let refused = decided(&answer, &one.id)
            .err()
            .map(|failure| failure.to_string());
        if refused.is_some() {
            document = json!({ "id": one.id, "refused": refused });
        } else {
            done += 1;
        }
        rows.push(vec![
            one.id.clone(),
            refused.unwrap_or_else(|| decision.done().to_owned()),
        ]);
        documents.push(document);
        progress.more(1);
    }
    drop(progress);
    let refused = rows.len() - done;
    if let Some(failure) = broken {
        if rows.is_empty() {
            return Err(failure);
        }
        output.list(&["id", "outcome"], rows, documents);
        return Err(failure.after(&format!(
            "{done} of {} were {} before this",
            ids.len(),
            decision.done()
        )));
    }
    output.list(&["id", "outcome"], rows, documents);
    Ok(match (done, refused) {
        (_, 0) => Exit::Done,
        (0, _) => Exit::Refused,
        _ => Exit::Partly,
    })
}

async fn by_id(store: &Store, given: &[String]) -> Result<Vec<OperationId>, Failure> {
    let mut ids: Vec<OperationId> = Vec::new();
    for text in find::ids(given)? {
        let id = find::operation(store, &text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

async fn by_filter_of(store: &Store, wanted: &Wanted) -> Result<Vec<OperationFound>, Failure> {
    let states = vec![StateWord::Unknown.number()];
    let filter = wanted
        .filter
        .clone()
        .filter(store, states, wanted.limit)
        .await?;
    Ok(store.operations_by(&filter).await?)
}

fn list(ids: &[OperationId], found: &[OperationFound], output: Output) {
    if found.is_empty() {
        let rows = ids.iter().map(|one| vec![one.id.clone()]).collect();
        output.list(
            &["id"],
            rows,
            ids.iter().map(|one| json!({ "id": one.id })).collect(),
        );
    } else {
        super::list::print(found, output);
    }
}

impl Decision {
    fn verb(&self) -> &'static str {
        match self {
            Self::Take => "taking",
            Self::Resolve { .. } => "resolving",
        }
    }

    fn done(&self) -> &'static str {
        match self {
            Self::Take => "taken",
            Self::Resolve { .. } => "resolved",
        }
    }

    async fn apply(
        &self,
        store: &Store,
        one: &OperationId,
        actor: &str,
    ) -> Result<Decided, Failure> {
        Ok(match self {
            Self::Take => store.take_operation(one.task, &one.id, actor).await?,
            Self::Resolve {
                resolution,
                result,
                evidence,
                early,
            } => {
                let result = result.as_deref().map(str::as_bytes);
                let (task, id) = (one.task, &one.id);
                if *early {
                    store
                        .resolve_operation_early(task, id, *resolution, result, actor, evidence)
                        .await?
                } else {
                    store
                        .resolve_operation(task, id, *resolution, result, actor, evidence)
                        .await?
                }
            }
        })
    }

    fn text(&self, one: &OperationId, actor: &str) -> String {
        match self {
            Self::Take => format!("{} by {actor}", one.id),
            Self::Resolve { resolution, .. } => {
                format!("{} as {} by {actor}", one.id, resolution.word())
            }
        }
    }

    fn document(&self, one: &OperationId, actor: &str) -> Value {
        match self {
            Self::Take => json!({ "id": one.id, "taken_by": actor }),
            Self::Resolve { resolution, .. } => {
                json!({ "id": one.id, "resolution": resolution.word(), "resolved_by": actor })
            }
        }
    }
}

fn decided(answer: &Decided, id: &str) -> Result<(), Failure> {
    match answer {
        Decided::Done => Ok(()),
        Decided::Missing => Err(super::missing(id)),
        Decided::NotUnknown => Err(Failure::new(
            Exit::Refused,
            format!("operation `{id}` is not unknown; see `aegis operation show {id}`"),
        )
        .with_code(ErrorCode::NOT_RESOLVABLE)),
        Decided::Early(until) => Err(Failure::new(
            Exit::Refused,
            format!(
                "operation `{id}` cannot be said not to have happened yet: a request may still arrive until {until}; wait for it, or pass --early with evidence that none is under way"
            ),
        )
        .with_code(ErrorCode::NOT_RESOLVABLE)),
        Decided::TakenBy(who) => Err(Failure::new(
            Exit::Refused,
            format!("operation `{id}` was taken by {who}; ask them, or act as them with --actor"),
        )
        .with_code(ErrorCode::NOT_RESOLVABLE)),
    }
}
