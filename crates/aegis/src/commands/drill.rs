//! `aegis drill`: failure experiments on a private PostgreSQL. `oracle`, `worker` and `late` are processes of a drill.

use std::path::PathBuf;

use aegis_drill::child::die_with_parent;
use aegis_drill::page::page;
use aegis_drill::report::Report;
use aegis_drill::run::{Options, chaos};
use aegis_drill::worker::{WorkerOptions, work};
use aegis_drill::{DrillError, oracle, zombie};
use clap::{Args, Subcommand, ValueEnum};

use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, line, note};

const EXIT_CODES: &str = "Exit codes: 0 everything held; 1 something was broken, or the run is void; 4 the options make no sense, or the \
    folder cannot be used; 5 there is no PostgreSQL.";

#[derive(Debug, Args)]
pub(crate) struct DrillArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Kills, freezes and cuts off real workers and a private PostgreSQL by a seed, and counts what was lost, doubled or wrongly
    /// accepted; exit code 1 when anything was, or when the run is void.
    #[command(after_help = EXIT_CODES)]
    Chaos(ChaosArguments),
    /// Prints docs/proof.md, made of reports.
    Page {
        /// The reports.
        #[arg(required = true, value_name = "REPORT")]
        reports: Vec<PathBuf>,
    },
    /// The oracle of effects of a drill.
    #[command(hide = true)]
    Oracle {
        #[arg(long)]
        record: PathBuf,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        parent: u32,
    },
    /// A worker of a drill.
    #[command(hide = true)]
    Worker {
        #[arg(long)]
        url: String,
        #[arg(long)]
        direct_url: Option<String>,
        #[arg(long)]
        oracle: String,
        #[arg(long)]
        history: PathBuf,
        #[arg(long)]
        name: String,
        #[arg(long)]
        queue: String,
        #[arg(long)]
        slots: usize,
        #[arg(long)]
        hold_at: Option<String>,
        #[arg(long)]
        in_hand: bool,
        #[arg(long)]
        freeze: bool,
        #[arg(long, default_value_t = 1)]
        protocol: i32,
        #[arg(long)]
        parent: u32,
    },
    /// A process of a drill that freezes with a claim and reports too late.
    #[command(hide = true)]
    Late {
        #[arg(long)]
        url: String,
        #[arg(long)]
        history: PathBuf,
        #[arg(long)]
        queue: String,
        #[arg(long)]
        report: LateReport,
        #[arg(long)]
        parent: u32,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LateReport {
    Complete,
    Fail,
}

#[derive(Debug, Args)]
struct ChaosArguments {
    /// Decides the schedule of faults and how the outside misbehaves.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long faults are made; the end of the work comes on top.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// An empty folder for histories, logs and report.json.
    #[arg(long, value_name = "DIR")]
    report: PathBuf,
    /// Worker processes at once.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=12))]
    workers: u8,
    /// Tasks of each class that stand at each cut of an operation when their process is killed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    cut_tasks: u32,
    /// The aegis of the version before, of which every second worker is then.
    #[arg(long, value_name = "PROGRAM")]
    version_before: Option<PathBuf>,
    /// Fetches pinned PostgreSQL binaries when the machine has none.
    #[arg(long)]
    fetch_postgres: bool,
    /// SQL that breaks the engine in the drill's own database, for seeing that it is found out.
    #[arg(long, hide = true, value_name = "FILE")]
    break_with: Option<PathBuf>,
}

/// Runs a drill, or one of its processes.
pub(crate) async fn run(arguments: DrillArguments, output: Output) -> Result<Exit, Failure> {
    match arguments.verb {
        Verb::Chaos(arguments) => run_chaos(arguments, output).await,
        Verb::Page { reports } => {
            let reports: Result<Vec<Report>, DrillError> =
                reports.iter().map(|path| Report::read(path)).collect();
            line(page(&reports?).trim_end());
            Ok(Exit::Done)
        }
        Verb::Oracle {
            record,
            seed,
            parent,
        } => {
            die_with_parent(parent)?;
            oracle::serve(&record, seed, |url| line(&url)).await?;
            Ok(Exit::Done)
        }
        Verb::Worker {
            url,
            direct_url,
            oracle,
            history,
            name,
            queue,
            slots,
            hold_at,
            in_hand,
            freeze,
            protocol,
            parent,
        } => {
            die_with_parent(parent)?;
            let options = WorkerOptions {
                url,
                direct_url,
                oracle,
                history,
                name,
                queue,
                slots,
                hold_at,
                in_hand,
                freeze,
                protocol,
            };
            Ok(Exit::Worker(work(options).await?.code()))
        }
        Verb::Late {
            url,
            history,
            queue,
            report,
            parent,
        } => {
            die_with_parent(parent)?;
            let report = match report {
                LateReport::Complete => zombie::Report::Complete,
                LateReport::Fail => zombie::Report::Fail,
            };
            zombie::haunt(&url, &history, &queue, report).await?;
            Ok(Exit::Done)
        }
    }
}

async fn run_chaos(arguments: ChaosArguments, output: Output) -> Result<Exit, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Exit::Broken,
            format!("the drill cannot find its own program: {error}"),
        )
    })?;
    let report = chaos(&Options {
        program,
        seed: arguments.seed,
        minutes: arguments.minutes,
        folder: arguments.report,
        workers: usize::from(arguments.workers),
        cut_tasks: arguments.cut_tasks as usize,
        version_before: arguments.version_before,
        fetch_postgres: arguments.fetch_postgres,
        break_with: arguments.break_with,
        commit: option_env!("AEGIS_BUILD_COMMIT")
            .unwrap_or("unknown")
            .to_owned(),
        tell: note,
    })
    .await?;
    if output == Output::Json {
        let text = serde_json::to_string(&report)
            .map_err(|error| Failure::new(Exit::Broken, error.to_string()))?;
        line(&text);
    } else {
        line(&report.to_string());
    }
    Ok(if report.passed() {
        Exit::Done
    } else {
        Exit::Broken
    })
}

impl From<DrillError> for Failure {
    fn from(error: DrillError) -> Self {
        match error {
            DrillError::Store(source) => source.into(),
            DrillError::Schema(source) => (*source).into(),
            DrillError::Postgres(_) | DrillError::Sql(_) => {
                Self::new(Exit::Database, chain(&error))
            }
            DrillError::Minutes(_) | DrillError::NotEmpty(_) | DrillError::File { .. } => {
                Self::new(Exit::Refused, chain(&error))
            }
            other => Self::new(Exit::Broken, chain(&other)),
        }
    }
}
