//! `aegis demo`: the main job, told while it happens. `verify` judges a run; `payments` and `hold` are processes of the demo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use aegis_demo::acts::{DemoEnd, DemoError, DemoOptions, play};
use aegis_demo::hold::hold;
use aegis_demo::orders::{self, OrdersFile};
use aegis_demo::payments::{ServiceOptions, run_process};
use aegis_demo::story::Story;
use aegis_demo::verify::{FactsError, json, judge, read_facts, read_record, table};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::database::DatabaseArguments;
use crate::exit::Exit;
use crate::failure::{Failure, chain};
use crate::output::{Output, line};

/// The orders that come with the program.
const EXAMPLE: &[u8] = include_bytes!("../../../../examples/orders.csv");

const EXIT_CODES: &str = "Exit codes: 0 every promise was kept; 1 one was broken, or the evidence does not show that all were \
    kept; 4 the orders cannot be read; 5 there is no PostgreSQL, or it cannot be used.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub(crate) struct DemoArguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    play: PlayArguments,
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
struct PlayArguments {
    /// Decides whose calls go wrong; the same seed hits the same orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leaves it running at the end, and says how to look around; Ctrl-C ends it.
    #[arg(long)]
    keep: bool,
    /// The story on stderr, and one JSON object on one line on stdout.
    #[arg(long)]
    json: bool,
    /// Fetches pinned PostgreSQL binaries when the machine has none.
    #[arg(long)]
    fetch_postgres: bool,
    /// Another file of orders than the one that comes with the program (CSV).
    #[arg(long, value_name = "FILE")]
    orders: Option<PathBuf>,
    /// The payment service breaks its promise, for seeing that it is found out.
    #[arg(long, hide = true)]
    doubles: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Judges a run from the payment service's record and the database; exit code 1 when a promise was broken, or when the
    /// evidence does not show that it was kept.
    Verify(VerifyArguments),
    /// The payment service of the demo: prints where it listens, ends at SIGTERM.
    #[command(hide = true)]
    Payments(PaymentsArguments),
    /// Runs a command and ends it when standard input ends.
    #[command(hide = true)]
    Hold {
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
struct VerifyArguments {
    /// What the payment service wrote.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// One JSON object on one line, with every broken promise.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PaymentsArguments {
    /// The record to write; it must not exist yet.
    #[arg(long, value_name = "FILE")]
    record: PathBuf,
    /// The run that it belongs to.
    #[arg(long)]
    run: String,
    /// Decides whose calls go wrong.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Breaks the promise of `charge`.
    #[arg(long)]
    doubles: bool,
}

/// Runs the demo, or one of its parts.
pub(crate) async fn run(
    arguments: DemoArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    match arguments.verb {
        None => demo(arguments.play, database, output).await,
        Some(Verb::Verify(verify)) => self::verify(&verify, database, output).await,
        Some(Verb::Payments(payments)) => {
            let mut options = ServiceOptions::new(payments.record, payments.run, payments.seed);
            options.doubles = payments.doubles;
            match run_process(options, false).await {
                Ok(_) => Ok(Exit::Done),
                Err(error) => Err(Failure::new(Exit::Refused, chain(&error))),
            }
        }
        Some(Verb::Hold { command }) => match hold(&command).await {
            Ok(code) => Ok(Exit::Worker(code)),
            Err(error) => Err(Failure::new(
                Exit::Refused,
                format!("{} cannot be run: {error}", command[0].display()),
            )),
        },
    }
}

async fn demo(
    arguments: PlayArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let began = Instant::now();
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Exit::Broken,
            format!("the demo cannot find its own program: {error}"),
        )
    })?;
    let mut options = DemoOptions::new(program, orders(arguments.orders.as_deref())?);
    options.seed = arguments.seed;
    options.keep = arguments.keep;
    options.doubles = arguments.doubles;
    options.fetch_postgres = arguments.fetch_postgres;
    options.database_url = database
        .given()
        .filter(|_| is_asked_for())
        .map(str::to_owned);
    options.json = arguments.json || output == Output::Json;
    let story = Story::new(options.json);
    let DemoEnd { kept, verdict, .. } = play(&options, &story).await?;
    if let Some(Value::Object(mut object)) = verdict {
        object.insert("seed".into(), options.seed.into());
        object.insert("seconds".into(), seconds(began));
        line(&Value::Object(object).to_string());
    }
    Ok(if kept { Exit::Done } else { Exit::Broken })
}

/// Whether the database stands on the command line. One in the environment is somebody's own, and the demo leaves it alone.
fn is_asked_for() -> bool {
    std::env::args_os().any(|word| {
        let word = word.to_string_lossy();
        word == "--database-url" || word.starts_with("--database-url=")
    })
}

fn orders(file: Option<&Path>) -> Result<OrdersFile, Failure> {
    match file {
        Some(path) => orders::read(path),
        None => orders::parse(EXAMPLE),
    }
    .map_err(|error| Failure::new(Exit::Refused, chain(&error)))
}

/// To a tenth, as a number.
fn seconds(began: Instant) -> Value {
    let tenths = (began.elapsed().as_secs_f64() * 10.0).round();
    Value::from(tenths / 10.0)
}

async fn verify(
    arguments: &VerifyArguments,
    database: &DatabaseArguments,
    output: Output,
) -> Result<Exit, Failure> {
    let began = Instant::now();
    let record = read_record(&arguments.record);
    let facts = read_facts(database.config()?, record.run()).await?;
    let verdict = judge(&facts, &record);
    if arguments.json || output == Output::Json {
        let object = json(&verdict, &[("seconds", seconds(began))])
            .map_err(|error| Failure::new(Exit::Broken, error.to_string()))?;
        line(&object.to_string());
    } else {
        line(&table(&verdict));
    }
    Ok(if verdict.exit_code() == 0 {
        Exit::Done
    } else {
        Exit::Broken
    })
}

impl From<FactsError> for Failure {
    fn from(error: FactsError) -> Self {
        match error {
            FactsError::Unreachable(source) => source.into(),
            other => Self::new(Exit::Database, chain(&other)),
        }
    }
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Store(source) => source.into(),
            DemoError::Schema(source) => (*source).into(),
            DemoError::Postgres(_) => Self::new(Exit::Database, chain(&error)),
            other => Self::new(Exit::Broken, chain(&other)),
        }
    }
}
