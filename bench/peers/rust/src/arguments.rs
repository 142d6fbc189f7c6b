//! `DRIVER COMMAND JSON`, as every driver is started.

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// What a driver is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Makes the peer's schema.
    Setup,
    /// Puts `n` no-op jobs in by the peer's bulk call, `chunk` a call.
    Enqueue,
    /// Puts `n` jobs in, one every `ms`.
    Feed,
    /// Puts one long job in.
    Hold,
    /// Works until a line comes on standard input.
    Worker,
    /// As `Worker`, of another queue: it holds what only one process of the fleet can hold.
    Leader,
}

/// The JSON; what is not said has a default.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Arguments {
    /// How many jobs.
    pub n: u64,
    /// Concurrency.
    pub c: usize,
    /// Jobs a bulk call.
    pub chunk: u64,
    /// Between two jobs of `feed`.
    pub ms: u64,
    /// How long the long job works.
    pub hold_ms: u64,
    /// The worker's name.
    pub name: String,
    /// `throughput`, `latency` or `fast`: which of the peer's settings.
    pub mode: String,
    /// Whether the peer's warnings go to standard error.
    pub log: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            n: 0,
            c: 10,
            chunk: 1000,
            ms: 50,
            hold_ms: 0,
            name: "w".to_owned(),
            mode: String::new(),
            log: false,
        }
    }
}

impl Arguments {
    /// Reads the command line and `DATABASE_URL`.
    ///
    /// # Errors
    /// What is missing or unknown.
    pub fn read() -> anyhow::Result<(Command, Self, String)> {
        let mut words = std::env::args().skip(1);
        let command = match words.next().as_deref() {
            Some("setup") => Command::Setup,
            Some("enqueue") => Command::Enqueue,
            Some("feed") => Command::Feed,
            Some("hold") => Command::Hold,
            Some("worker") => Command::Worker,
            Some("leader") => Command::Leader,
            other => {
                bail!("unknown command {other:?}: setup, enqueue, feed, hold, worker or leader")
            }
        };
        let json = words.next().unwrap_or_else(|| "{}".to_owned());
        let arguments: Self =
            serde_json::from_str(&json).with_context(|| format!("the arguments {json}"))?;
        let url = std::env::var("DATABASE_URL").context("DATABASE_URL")?;
        if arguments.log {
            tracing_subscriber::fmt()
                .with_env_filter(tracing_subscriber::EnvFilter::new("warn"))
                .with_writer(std::io::stderr)
                .init();
        }
        Ok((command, arguments, url))
    }

    /// The bulk calls: ranges of job numbers.
    pub fn chunks(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        let (n, chunk) = (self.n, self.chunk.max(1));
        (0..n.div_ceil(chunk)).map(move |i| i * chunk..((i + 1) * chunk).min(n))
    }
}
