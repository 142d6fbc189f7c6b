//! The command line: nouns, then verbs.

use std::path::PathBuf;

use clap::{ColorChoice, Parser, Subcommand, ValueEnum};

use crate::commands::{
    completion, db, demo, dev, doctor, drill, lane, migrate, operation, task, worker,
};
use crate::database::DatabaseArguments;
use crate::output::Output;

/// Above the options that every command has.
pub(crate) const ALL: &str = "For all commands";

/// Tasks that survive crashes, drains and new versions.
#[derive(Debug, Parser)]
#[command(
    name = "aegis",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) database: DatabaseArguments,
    /// How results are printed.
    #[arg(long, short, global = true, help_heading = ALL, value_enum, default_value_t)]
    pub(crate) output: Output,
    /// When colours are used; `auto` means on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, help_heading = ALL, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
    /// What is logged to stderr, such as `info` or `aegis_worker=debug`.
    #[arg(
        long,
        env = "AEGIS_LOG",
        global = true, help_heading = ALL,
        default_value = "warn",
        value_name = "FILTER"
    )]
    pub(crate) log: String,
    /// How log lines look: for people, or one JSON object a line.
    #[arg(
        long,
        env = "AEGIS_LOG_FORMAT",
        global = true, help_heading = ALL,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) log_format: LogFormat,
    /// The configuration file (TOML); default: ./aegis.toml, then aegis/aegis.toml in the user's configuration folder.
    #[arg(long, env = "AEGIS_CONFIG", hide_env_values = true, global = true, help_heading = ALL, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Prints every setting of the command with its value, its unit and where it came from, and does nothing else.
    #[arg(long, global = true, help_heading = ALL)]
    pub(crate) print_config: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows the main job: orders survive a killed, a frozen and a drained worker, a new version and a rollback.
    Demo(demo::DemoArguments),
    /// A PostgreSQL that keeps its data and a worker with example handlers, for trying things out.
    #[command(after_help = dev::EXAMPLES)]
    Dev(dev::DevArguments),
    /// Runs a worker; lists, shows and drains workers.
    Worker(Box<worker::WorkerArguments>),
    /// Submits, lists, shows, watches and ends tasks.
    Task(task::TaskArguments),
    /// External side effects: lists, shows, takes and resolves them.
    Operation(operation::OperationArguments),
    /// Lanes: what waits where, who reads it, and what is paused.
    Lane(lane::LaneArguments),
    /// Looks at the engine's invariants over a live database: what is wrong, how bad, what to do.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArguments),
    /// Failure experiments on a private PostgreSQL, with counts of what was lost, doubled or wrongly accepted.
    Drill(drill::DrillArguments),
    /// Installs, inspects, adopts and maintains the database.
    Db(db::DbArguments),
    /// Schemas of anybody in phases: lint, seal, run, verify.
    #[command(after_help = migrate::EXIT_CODES)]
    Migrate(Box<migrate::MigrateArguments>),
    /// Prints what a shell needs to complete the command line.
    #[command(after_help = completion::EXAMPLES)]
    Completion(completion::CompletionArguments),
    /// Prints the version of the program and of the schema it needs.
    Version,
}
