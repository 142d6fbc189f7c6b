//! `cargo xtask`: reads the command line and hands over to the library.
//!
//! Exit codes: 0 nothing to say, 1 something is wrong and was said, 2 the command line itself.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{say, sql};

#[derive(Parser)]
#[command(about = "Checks and generators of this repository.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the typed functions of the statements in `sql/`.
    Sql(sql::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Sql(args) => sql::run(&args),
    };
    match outcome {
        Ok(clean) => ExitCode::from(u8::from(!clean)),
        Err(error) => {
            say!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
