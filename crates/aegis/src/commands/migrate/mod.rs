//! `aegis migrate`: one file a verb.
//!
//! Invariants: the exit codes are those of [`EXIT_CODES`], in `--help` and in `docs/guides/migrate.md`; what a program reads is
//! on stdout.

mod abandon;
mod adopt;
mod backfill;
mod baseline;
mod by;
mod contract;
mod dev;
mod lint;
mod many;
mod new;
pub(crate) mod on_target;
mod plan;
mod reason;
mod reconcile;
mod repair;
mod run;
mod seal;
mod snapshot;
mod squash;
mod status;
mod switch;
mod targets;
mod under_way;
mod verify;

use std::path::PathBuf;

use aegis_migrate::adopt::AdoptError;
use aegis_migrate::baseline::BaselineError;
use aegis_migrate::change::{Kind, Problems};
use aegis_migrate::dev::DevError;
use aegis_migrate::run::RunError;
use aegis_migrate::set::Set;
use aegis_migrate::shadow::ShadowError;
use aegis_model::ErrorCode;
use aegis_store::{Config, StoreError, install};
use clap::{Args, Subcommand};
use tokio_postgres::Client;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, note};

/// Below the verbs.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
   0  ok; `outcome` says applied, nothing or ahead
   2  usage: the command line, the folder or a file makes no sense
   3  lint: a statement may not run where it stands
  10  busy: another run holds the mutex, which is named
  11  checksum: history was edited
  12  structure: the database is not what was applied
  13  class: a statement may not run in this phase
  14  lock budget: the locks could not be had in the tries allowed
  15  unknown: what a killed step has left could not be told
  16  fenced: another run has taken over
  17  target: a pooler, a standby, the wrong database, or no connection
  18  evidence: a contract could not be shown to be safe
  19  ahead refused: the database is newer than this folder
  20  SQL error
  21  requires: something that must come before is not applied
  22  interrupted";

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// The folder of the changes, with migrations.lock.
    #[arg(
        long,
        env = "AEGIS_MIGRATE_DIR",
        hide_env_values = true,
        global = true,
        default_value = "migrations",
        value_name = "FOLDER"
    )]
    dir: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Takes the expand of a change back, before any release used it.
    #[command(after_help = abandon::AFTER)]
    Abandon(abandon::AbandonArguments),
    /// Takes a database over from sqlx, Flyway, refinery, goose or Rails: its ledger is kept, and shut.
    #[command(after_help = adopt::AFTER)]
    Adopt(adopt::AdoptArguments),
    /// Shows the jobs that move rows, pauses, resumes, cancels and retries them.
    #[command(after_help = backfill::AFTER)]
    Backfill(backfill::BackfillArguments),
    /// Records lines of the lock as applied, for a database whose structure is shown to be what they make.
    Baseline(baseline::BaselineArguments),
    /// How an old form goes, weeks later: its door is shut, it is watched, it is approved, it is dropped.
    #[command(after_help = contract::AFTER)]
    Contract(contract::ContractArguments),
    /// Applies the folder to your own database, also what is not sealed; after an edit everything is made again.
    #[command(after_help = dev::AFTER)]
    Dev(dev::DevArguments),
    /// Says of each statement what it locks and where it may run: changes, folders of other tools, single files.
    #[command(after_help = lint::AFTER)]
    Lint(lint::LintArguments),
    /// Makes the folder of a change, with every key explained.
    New(new::NewArguments),
    /// Shows what each phase would do: every statement with its class, its locks and the size of what it locks.
    Plan(plan::PlanArguments),
    /// Counts the rows of a change that are not right, in one state of the database, and keeps the result as evidence.
    #[command(after_help = reconcile::AFTER)]
    Reconcile(reconcile::ReconcileArguments),
    /// Says of the ledger what a person knows, when it is shown: an edited line, work that was done by hand, a step to begin anew.
    #[command(after_help = repair::AFTER)]
    Repair(repair::RepairArguments),
    /// Applies what is open of a phase, each step with its verdict in the ledger of the database.
    #[command(after_help = run::AFTER)]
    Run(run::RunArguments),
    /// Replays everything on a private PostgreSQL, then appends what is new to migrations.lock and writes schema.MAJOR.json.
    #[command(after_help = seal::AFTER)]
    Seal(seal::SealArguments),
    /// Shows each line of the lock and how it stands in a database. Exit code 11 when history was edited.
    Status(status::StatusArguments),
    /// Ends with 0 when a phase is applied, and with 21 and the command that applies it when not: for init containers.
    Check(status::CheckArguments),
    /// Makes one baseline of old changes; refused while a database is behind.
    Squash(squash::SquashArguments),
    /// Shows or moves which side of a change applications read and write. Exit code 18 when the new side is not shown to be filled.
    #[command(after_help = switch::AFTER)]
    Switch(switch::SwitchArguments),
    /// Writes structure, sizes and rates of a database into a file, without a row of its data, for lint and plan.
    Snapshot(snapshot::SnapshotArguments),
    /// Ends the session that holds the mutex of a database's ledger.
    Unlock(run::UnlockArguments),
    /// Compares a database with what the applied steps made, and with what the lock makes; writes nothing.
    #[command(after_help = verify::AFTER)]
    Verify(verify::VerifyArguments),
}

/// What every verb works on.
pub(crate) struct Place<'a> {
    /// The folder of the changes.
    pub(crate) dir: PathBuf,
    /// The database.
    pub(crate) database: &'a DatabaseArguments,
    /// How results are printed.
    pub(crate) output: Output,
}

pub(crate) async fn run(
    arguments: MigrateArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let place = Place {
        dir: arguments.dir,
        database,
        output,
    };
    match arguments.verb {
        Verb::Abandon(abandon) => abandon::run(abandon, &place).await,
        Verb::Adopt(adopt) => adopt::run(adopt, &place).await,
        Verb::Backfill(backfill) => backfill::run(&backfill, &place).await,
        Verb::Baseline(baseline) => baseline::run(baseline, &place).await,
        Verb::Contract(contract) => contract::run(&contract, &place).await,
        Verb::Dev(dev) => dev::run(&dev, &place).await,
        Verb::Lint(lint) => lint::run(&lint, &place).await,
        Verb::New(new) => new::run(&new, &place),
        Verb::Plan(plan) => plan::run(&plan, &place).await,
        Verb::Reconcile(reconcile) => reconcile::run(&reconcile, &place).await,
        Verb::Repair(repair) => repair::run(repair, &place).await,
        Verb::Run(run) => run::run(&run, &place).await,
        Verb::Seal(seal) => seal::run(&seal, &place).await,
        Verb::Status(status) => status::status(&status, &place).await,
        Verb::Check(check) => status::check(check, &place).await,
        Verb::Squash(squash) => squash::run(&squash, &place).await,
        Verb::Switch(switch) => switch::run(&switch, &place).await,
        Verb::Snapshot(snapshot) => snapshot::run(&snapshot, &place).await,
        Verb::Unlock(unlock) => run::unlock(&unlock, &place).await,
        Verb::Verify(verify) => verify::run(&verify, &place).await,
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        let failure = Self::new(Exit::Migrate(problems.exit_code()), problems.to_string());
        let code = match problems.kind() {
            Kind::Structure | Kind::Class => return failure,
            Kind::Format => ErrorCode::BAD_CHANGE,
            Kind::Checksum => ErrorCode::HISTORY_EDITED,
            Kind::Requires => ErrorCode::REQUIRED_FIRST,
        };
        failure.with_code(code)
    }
}

impl From<AdoptError> for Failure {
    fn from(error: AdoptError) -> Self {
        match error {
            AdoptError::Folder(problems) => problems.into(),
            error => Self::new(Exit::Migrate(error.exit_code()), chain(&error))
                .with_code(ErrorCode::NOT_ADOPTABLE),
        }
    }
}

impl From<DevError> for Failure {
    fn from(error: DevError) -> Self {
        match error {
            DevError::Shadow(error) => error.into(),
            DevError::Baseline(error) => error.into(),
            error => Self::new(Exit::Migrate(error.exit_code()), chain(&error)),
        }
    }
}

impl From<BaselineError> for Failure {
    fn from(error: BaselineError) -> Self {
        let failure = Self::new(Exit::Migrate(error.exit_code()), chain(&error));
        match error {
            BaselineError::Edited { .. } => failure.with_code(ErrorCode::HISTORY_EDITED),
            _ => failure,
        }
    }
}

impl From<ShadowError> for Failure {
    fn from(error: ShadowError) -> Self {
        Self::new(Exit::Migrate(error.exit_code()), chain(&error)).with_code(ErrorCode::REPLAY)
    }
}

/// A checkout that is not as it was committed counts the same here. Whoever looks at the bytes should know.
pub(crate) fn tell_of_line_ends(set: &Set) {
    let files = set.other_line_ends();
    let Some(first) = files.first() else {
        return;
    };
    let more = match files.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    note(&format!(
        "{first}{more}: line ends are CRLF, or a byte order mark is there; it counts, and is run, as with LF and without;          `*.sql text eol=lf` in .gitattributes keeps every checkout alike"
    ));
}

/// A connection by the binary's own rules of TLS, for who only reads.
pub(crate) async fn connect(url: &str) -> Result<Client, Failure> {
    let refuse = |error: StoreError| Failure::new(Exit::Migrate(17), chain(&error));
    let config = Config::from_url(url)
        .map_err(refuse)?
        .with_application_name("aegis migrate");
    install::connect_direct(&config).await.map_err(refuse)
}

/// [`connect`] for a verb that writes and holds no mutex: first it is shown that this is the server itself and no pooler, and a
/// primary that takes writes. The settings of a run do not stay.
pub(crate) async fn connect_to_write(url: &str) -> Result<Client, Failure> {
    let refuse = |error: RunError| on_target::failure(&error);
    let config = on_target::config(url).map_err(refuse)?;
    let session = on_target::session(&config, "aegis migrate")
        .await
        .map_err(refuse)?;
    session
        .client
        .batch_execute("RESET ALL")
        .await
        .map_err(|error| refuse(error.into()))?;
    Ok(session.client)
}
