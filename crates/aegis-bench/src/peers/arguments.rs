//! The command line of `aegis-bench peers`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use super::catalog::{PEERS, Peer};

/// Runs Aegis and its peers on the same work and prints the table of docs/benchmarks.md.
#[derive(Debug, Clone, Args)]
pub(crate) struct PeersArguments {
    /// Jobs of a round of the throughput item.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub(crate) jobs: u64,
    /// Concurrency of every engine; the throughput item is also run at one that suits each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) concurrency: u32,
    /// Rounds; the median is quoted, with the least and the most.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Only these engines: aegis, graphile-worker, pg-boss, river, graphile_worker, apalis, awa.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Only these items.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) items: Vec<Item>,
    /// Goes on with a run that was interrupted: what its results hold is not measured again.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Where the results are saved; in the cache folder unless said otherwise.
    #[arg(long)]
    pub(crate) results: Option<PathBuf>,
    /// Where peers are installed and built.
    #[arg(long, env = "AEGIS_PEERS_CACHE", default_value = "target/peers")]
    cache: PathBuf,
    /// Where their drivers stand.
    #[arg(long, default_value = "bench/peers")]
    pub(crate) drivers: PathBuf,
    /// Puts the table into the page; only a run of everything may.
    #[arg(long)]
    pub(crate) write_docs: bool,
    /// The page.
    #[arg(long, default_value = "docs/benchmarks.md")]
    pub(crate) page: PathBuf,
    /// Fetches PostgreSQL when there is none.
    #[arg(long)]
    pub(crate) fetch_postgres: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Item {
    /// What the server does bare, by pgbench.
    Limits,
    /// Jobs a second, WAL and transactions a job.
    Throughput,
    /// From the enqueue's return to the handler's start, on an idle worker.
    Latency,
    /// From SIGKILL to the job's start in another worker.
    Takeover,
    /// What a worker's completion does that was frozen and taken over.
    Late,
}

impl PeersArguments {
    /// Whether an item is wanted.
    pub(crate) fn wants(&self, item: Item) -> bool {
        self.items.is_empty() || self.items.contains(&item)
    }

    /// The engines that are wanted, in the order of the table.
    pub(crate) fn peers(&self) -> anyhow::Result<Vec<&'static Peer>> {
        for name in &self.only {
            if !PEERS.iter().any(|peer| peer.name == name) {
                let known: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
                bail!(
                    "--only {name}: there is no such engine; known are {}",
                    known.join(", ")
                );
            }
        }
        let wanted =
            |peer: &&Peer| self.only.is_empty() || self.only.iter().any(|name| name == peer.name);
        Ok(PEERS.iter().filter(wanted).collect())
    }

    /// The cache folder, made when it does not exist, absolute.
    pub(crate) fn cache(&self) -> anyhow::Result<PathBuf> {
        std::fs::create_dir_all(&self.cache)
            .and_then(|()| self.cache.canonicalize())
            .with_context(|| format!("the cache folder {} cannot be made", self.cache.display()))
    }

    /// The file of the results.
    pub(crate) fn results(&self) -> anyhow::Result<PathBuf> {
        match &self.results {
            Some(path) => Ok(path.clone()),
            None => Ok(self.cache()?.join("results.json")),
        }
    }
}
