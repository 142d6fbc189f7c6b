//! `aegis migrate contract`: how an old form goes. One file a verb.
//!
//! Invariants: exit code 18 means that something is not shown and nothing was dropped; private keys are read and never kept.

mod close;
mod collect;
mod observe;
mod run;
mod sign;
mod status;

use std::path::{Path, PathBuf};

use aegis_migrate::change::{Change, ChangeId, Problem, Problems};
use aegis_migrate::contract::error::ContractError;
use aegis_migrate::contract::keyring::Keyring;
use aegis_migrate::contract::subject::Subject;
use aegis_migrate::ledger::{self, Ledger};
use aegis_migrate::run::{RunError, contract as runner};
use aegis_migrate::set::Set;
use aegis_model::ErrorCode;
use clap::{Args, Subcommand};
use tokio_postgres::Client;

use super::Place;
use crate::exit::Exit;
use crate::failure::Failure;

/// Below its help.
pub(crate) const AFTER: &str = "In this order: close, observe, attest and approve, run. Each fact of [contract] evidence is shown, attested, excluded or \
    missing; what is missing, too old or inconclusive blocks (exit code 18), and nothing is dropped.";

#[derive(Debug, Args)]
pub(crate) struct ContractArguments {
    /// Who may say what in this environment; without it approvers.toml in the folder of the changes.
    #[arg(
        long,
        env = "AEGIS_MIGRATE_APPROVERS",
        hide_env_values = true,
        global = true,
        value_name = "FILE"
    )]
    approvers: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Shuts the door, when nothing is lacking that the contract needs later: the roles of revoke_from lose the old columns, and older programs are below the schema's floor.
    Close(close::CloseArguments),
    /// Looks every 10 s who still needs the old side, until the `observe` of the change is full; or takes in what was seen elsewhere.
    #[command(after_help = observe::AFTER)]
    Observe(observe::ObserveArguments),
    /// Reads what a cluster listed, and signs what it says of Pods and CronJobs of older programs: a bundle for observe.
    #[command(after_help = collect::AFTER)]
    Collect(collect::CollectArguments),
    /// Answers with your name for what nobody can see, such as that the release before will not come back.
    Attest(sign::AttestArguments),
    /// Signs that the contract may run, for one line of the lock, one ledger and one environment.
    #[command(after_help = sign::APPROVE_AFTER)]
    Approve(sign::ApproveArguments),
    /// Judges every fact again, tightens, then drops the old side in one transaction. The approval is used up.
    #[command(after_help = run::AFTER)]
    Run(run::RunArguments),
    /// Opens the door again and gives back what closing took, as long as nothing was dropped.
    Reopen(close::ReopenArguments),
    /// Shows each fact with its source, its time and its age, and the next step. Before the door is shut, what is in its way. Exit code 18
    /// while something blocks, 21 while the door stands open. What could not be read is `unknown`, with its error on stderr, and blocks;
    /// 20 when the database refused it.
    Status(status::StatusArguments),
}

pub(crate) async fn run(arguments: &ContractArguments, place: &Place<'_>) -> Result<Exit, Failure> {
    let approvers = arguments
        .approvers
        .clone()
        .unwrap_or_else(|| place.dir.join("approvers.toml"));
    match &arguments.verb {
        Verb::Close(close) => close::close(close, place, &approvers).await,
        Verb::Observe(observe) => observe::run(observe, place, &approvers).await,
        Verb::Collect(collect) => collect::run(collect, place, &approvers),
        Verb::Attest(attest) => sign::attest(attest, place, &approvers).await,
        Verb::Approve(approve) => sign::approve(approve, place, &approvers).await,
        Verb::Run(run) => run::run(run, place, &approvers).await,
        Verb::Reopen(reopen) => close::reopen(reopen, place).await,
        Verb::Status(status) => status::run(status, place, &approvers).await,
    }
}

/// The keyring of this environment.
fn keyring(file: &Path) -> Result<Keyring, Failure> {
    let text = read(
        file,
        "it says who may approve, attest and observe; name it by --approvers, or write it: docs/guides/contract.md",
    )?;
    Keyring::read(&text, &file.display().to_string()).map_err(|error| failure(&error.into()))
}

/// A file that somebody hands in.
fn read(file: &Path, help: &str) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        let what = format!("it cannot be read: {error}");
        Problems::from(Problem::of_file(file.display().to_string(), what, help)).into()
    })
}

/// A change of the folder with its contract.
fn subject<'a>(set: &'a Set, id: &ChangeId) -> Result<Subject<'a>, Failure> {
    let change: &Change = set.changes.get(id).ok_or_else(|| no_such(set, id))?;
    Subject::of(change).ok_or_else(|| failure(&ContractError::None(id.to_string())))
}

/// A change that the folder has not.
pub(super) fn no_such(set: &Set, id: &ChangeId) -> Failure {
    let problem = Problem::of_file(
        set.root(),
        format!("it has no change {id}"),
        "name one of `aegis migrate status`",
    );
    Problems::from(problem).into()
}

/// The ledger, with what was applied as it stands in the folder; none where nothing was ever closed.
async fn ledger_of(client: &Client, set: &Set) -> Result<Option<Ledger>, Failure> {
    let found = ledger::find(client).await.map_err(of_run)?;
    if let Some(ledger) = &found {
        set.sealed()?;
        runner::goes_by_what_was_applied(client, set, ledger.dev)
            .await
            .map_err(of_run)?;
    }
    Ok(found)
}

/// An error with its exit code and its page.
fn failure(error: &ContractError) -> Failure {
    let code = error.exit_code();
    let failure = Failure::new(Exit::Migrate(code), error.whole());
    match code {
        11 => failure.with_code(ErrorCode::HISTORY_EDITED),
        18 => failure.with_code(ErrorCode::EVIDENCE),
        21 => failure.with_code(ErrorCode::REQUIRED_FIRST),
        _ => failure,
    }
}

/// An error of the database.
fn of_run(error: impl Into<RunError>) -> Failure {
    failure(&ContractError::Run(error.into()))
}
