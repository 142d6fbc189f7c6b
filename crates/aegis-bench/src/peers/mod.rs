//! `aegis-bench peers`: Aegis and its peers on the same work, on one private PostgreSQL, in one run.
//!
//! Each peer is a driver program that uses it the documented way (`bench/peers/`; Aegis's own is a hidden subcommand here),
//! and everything that is compared is looked at from outside, by the same code for all: time by one clock, WAL and
//! transactions by the server, the jobs' rows by one statement a peer.
//!
//! Invariants: what is measured against a clock runs alone, in rounds over all peers, so that a noisy minute hits each; a
//! result is saved as soon as it is there; a peer that cannot run has its reason in the table.
//!
//! Never: a figure of another run in the table (a resumed run says so), a peer that is absent without a word.

mod aegis_driver;
mod arguments;
mod catalog;
mod clock;
mod driver;
mod install;
mod lab;
mod late;
mod latency;
mod limits;
mod page;
mod results;
mod rounds;
mod table;
mod takeover;
mod throughput;

pub(crate) use aegis_driver::DriverArguments;
pub(crate) use arguments::PeersArguments;

use anyhow::{Context as _, bail};

use catalog::Peer;
use lab::Lab;
use results::Results;

/// What the hidden subcommand runs.
pub(crate) async fn drive(arguments: &DriverArguments) -> anyhow::Result<()> {
    aegis_driver::run(arguments).await
}

/// Installs, measures, saves, and prints the table.
#[expect(clippy::print_stdout, reason = "the table is its output")]
pub(crate) async fn run(arguments: &PeersArguments) -> anyhow::Result<()> {
    let peers = arguments.peers()?;
    let cache = arguments.cache()?;
    let mut results = Results::begin(arguments, &peers)?;
    let programs = install::install(arguments, &cache, &peers).await?;
    let ready: Vec<&'static Peer> = peers
        .into_iter()
        .filter(|peer| match programs.missing(peer) {
            Some(reason) => {
                println!("SKIPPED {}: {reason}", peer.name);
                results.of(peer.name).skipped = Some(reason.to_owned());
                false
            }
            None => true,
        })
        .collect();
    let lab = Lab::start(arguments.fetch_postgres, programs).await?;
    results.describe(&lab)?;
    rounds::run(arguments, lab, &ready, &mut results).await?;
    results.finish()?;
    let section = table::section(&results);
    println!("{section}");
    println!("every single figure: {}", arguments.results()?.display());
    if arguments.write_docs {
        page::write(&arguments.page, &results, &section).with_context(|| {
            format!("the table was not written to {}", arguments.page.display())
        })?;
        println!("written to {}", arguments.page.display());
    }
    let failed = results.failed();
    if !failed.is_empty() {
        bail!(
            "{} could not be measured; what they said stands in the results:\n  {}",
            failed.len(),
            failed.join("\n  ")
        );
    }
    Ok(())
}

/// Progress, on standard error.
#[expect(clippy::print_stderr, reason = "progress of a run of minutes")]
fn tell(line: &str) {
    eprintln!("{} {line}", jiff::Timestamp::now().strftime("%H:%M:%S"));
}
