//! Prints the folder of the pinned PostgreSQL binaries, fetched when this machine has not got them: what `scripts/test-pg18`
//! hands to the tests as `AEGIS_PG_BIN`. It says why and ends with 1 when they cannot be had; it starts nothing.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that a script asks"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match aegis_devpg::fetch_binaries() {
        Ok(binaries) => {
            println!("{}", binaries.bin.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("fetch PostgreSQL: {error}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                eprintln!("    {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}
