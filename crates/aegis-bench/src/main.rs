//! `make bench`: the figures of the issue, as ratios to what the same server does bare, in the same run.
//!
//! Invariants: one private server for all figures; each ratio's two sides are measured in turns, several rounds, and the
//! median is quoted; the last line of standard output is one JSON object.
//!
//! Never: a figure that was not measured in this run.

mod bare;
mod half_peak;
mod idle;
mod lane_check;
mod latency;
mod migrate;
mod peers;
mod profile;
mod setting;
mod submit;
mod takeover;
mod throughput;

use clap::{Parser, Subcommand};
use serde_json::{Map, Value, json};

use crate::setting::Setting;

/// Measures the engine against what its PostgreSQL can do bare.
#[derive(Debug, Parser)]
struct Arguments {
    /// Tasks in a round of the throughput figure.
    #[arg(long, default_value_t = 20_000)]
    tasks: usize,
    /// Rounds; the median is quoted.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Commits do not wait for the disk, on either side.
    #[arg(long)]
    no_fsync: bool,
    /// Only one part. The profile prints its tables too.
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Size of the inputs of throughput, submit and profile.
    #[arg(long, default_value_t = 26, value_parser = clap::value_parser!(u32).range(26..=200_000))]
    input_bytes: u32,
    /// Rows of the backfill.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1_000_000..=1_000_000_000))]
    rows: u32,
    /// Fetches PostgreSQL when there is none.
    #[arg(long)]
    fetch_postgres: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// A worker process of the benchmark's own, to be killed.
    #[command(hide = true)]
    Worker {
        /// Where the database is.
        url: String,
        /// Its lease, in milliseconds.
        ttl_ms: u64,
    },
    /// A backfill in a process of its own, to be killed.
    #[command(hide = true)]
    Backfill {
        /// Where the database is.
        url: String,
    },
    /// Aegis and its peers on the same work, on one private PostgreSQL.
    Peers(peers::PeersArguments),
    /// Aegis's own driver among its peers.
    #[command(hide = true)]
    Driver(peers::DriverArguments),
}

#[expect(clippy::print_stdout, reason = "the figures are its output")]
fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::ERROR)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match arguments.role {
        Some(Role::Worker { url, ttl_ms }) => {
            return runtime.block_on(takeover::worker_process(&url, ttl_ms));
        }
        Some(Role::Backfill { url }) => {
            return runtime.block_on(migrate::backfill_process(&url));
        }
        Some(Role::Peers(arguments)) => return runtime.block_on(peers::run(&arguments)),
        Some(Role::Driver(arguments)) => return runtime.block_on(peers::drive(&arguments)),
        None => {}
    }
    runtime.block_on(async {
        let setting = Setting::start(arguments.no_fsync, arguments.fetch_postgres).await?;
        println!(
            "PostgreSQL {}, fsync {}, {} cores",
            setting.version(),
            if arguments.no_fsync { "off" } else { "on" },
            cores()
        );
        let mut figures = Map::new();
        let input = input(arguments.input_bytes);
        for part in PARTS {
            if arguments.only.as_deref().is_some_and(|only| only != part) {
                continue;
            }
            let measured = match part {
                "throughput" => {
                    throughput::measure(&setting, &input, arguments.tasks, arguments.rounds).await?
                }
                "submit" => submit::measure(&setting, &input, arguments.rounds).await?,
                "latency" => latency::measure(&setting).await?,
                "half-peak" => half_peak::measure(&setting, &input, arguments.tasks).await?,
                "profile" => {
                    profile::measure(
                        arguments.no_fsync,
                        arguments.fetch_postgres,
                        &input,
                        arguments.tasks,
                    )
                    .await?
                }
                "idle" => idle::measure(&setting).await?,
                "migrate" => migrate::measure(&setting, arguments.rounds, arguments.rows).await?,
                "lane-check" => lane_check::measure(&setting).await?,
                _ => takeover::measure(&setting).await?,
            };
            for (name, value) in measured {
                println!("{name:28} {value}");
                figures.insert(name, value);
            }
        }
        println!("{}", Value::Object(figures));
        anyhow::Ok(())
    })
}

/// The parts, in the order in which they are measured.
const PARTS: [&str; 9] = [
    "throughput",
    "submit",
    "latency",
    "half-peak",
    "idle",
    "takeover",
    "lane-check",
    "migrate",
    "profile",
];

/// A small order, as long as it is asked for.
fn input(bytes: u32) -> Vec<u8> {
    let (begin, end) = ("{\"n\":1,\"order\":\"", "\"}");
    let length = (bytes as usize).saturating_sub(begin.len() + end.len());
    let order: String = ('a'..='h').cycle().take(length).collect();
    format!("{begin}{order}{end}").into_bytes()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Named figures of one part.
type Figures = Vec<(String, Value)>;

fn figure(name: &str, value: f64) -> (String, Value) {
    // Four digits are more than the noise lets one see.
    (
        name.to_owned(),
        json!((value * 10_000.0).round() / 10_000.0),
    )
}

/// The median of what was measured; 0 for nothing.
fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which `share` of them lie.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a small list"
)]
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = ((values.len() as f64 - 1.0) * share).round().max(0.0) as usize;
    values.get(at).copied().unwrap_or_default()
}
