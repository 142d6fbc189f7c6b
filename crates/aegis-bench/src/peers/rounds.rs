//! The order of a run: what a clock measures alone and in rounds over all engines, what waits on timers side by side.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::arguments::{Item, PeersArguments};
use super::catalog::Peer;
use super::lab::Lab;
use super::late::{self, Case, Late};
use super::results::{Engine, Results};
use super::takeover::{self, Takeover};
use super::{latency, limits, tell, throughput};

/// Measures what is wanted and not there yet.
pub(crate) async fn run(
    arguments: &PeersArguments,
    lab: Lab,
    peers: &[&'static Peer],
    results: &mut Results,
) -> anyhow::Result<()> {
    for round in 1..=arguments.rounds as usize {
        if arguments.wants(Item::Limits) && results.limits.len() < round {
            match limits::measure(&lab, arguments.concurrency).await {
                Ok(measured) => {
                    tell(&format!(
                        "limits: {:.0} commits/s, {:.0} rows/s",
                        measured.commits_per_second, measured.rows_per_second
                    ));
                    results.limits.push(measured);
                }
                Err(error) => results.limits_failed = Some(format!("{error:#}")),
            }
            results.save()?;
        }
        if arguments.wants(Item::Throughput) {
            for peer in peers {
                drains(arguments, &lab, peer, round, results).await?;
            }
        }
        if arguments.wants(Item::Latency) {
            for peer in peers {
                if results.of(peer.name).latency.len() < round {
                    let measured = latency::measure(&lab, peer, arguments.concurrency).await;
                    note(results, peer, "latency", measured, |engine, measured| {
                        engine.latency.push(measured);
                    })?;
                }
            }
        }
    }
    let lab = Arc::new(lab);
    if arguments.wants(Item::Takeover) {
        takeovers(arguments.rounds, &lab, peers, results).await?;
    }
    if arguments.wants(Item::Late) {
        lates(&lab, peers, results).await?;
    }
    Ok(())
}

/// Both drains of an engine in a round.
async fn drains(
    arguments: &PeersArguments,
    lab: &Lab,
    peer: &'static Peer,
    round: usize,
    results: &mut Results,
) -> anyhow::Result<()> {
    if results.of(peer.name).throughput.len() < round {
        let measured = throughput::measure(lab, peer, arguments.jobs, arguments.concurrency).await;
        note(results, peer, "throughput", measured, |engine, measured| {
            engine.throughput.push(measured);
        })?;
    }
    if peer.roomy != arguments.concurrency && results.of(peer.name).throughput_roomy.len() < round {
        let measured = throughput::measure(lab, peer, arguments.jobs, peer.roomy).await;
        note(results, peer, "throughput", measured, |engine, measured| {
            engine.throughput_roomy.push(measured);
        })?;
    }
    Ok(())
}

/// All engines side by side, each its rounds one after the other.
async fn takeovers(
    rounds: u32,
    lab: &Arc<Lab>,
    peers: &[&'static Peer],
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut running: JoinSet<(&'static Peer, anyhow::Result<Takeover>)> = JoinSet::new();
    let start = |running: &mut JoinSet<_>, peer: &'static Peer, round: u32| {
        let lab = Arc::clone(lab);
        running.spawn(async move { (peer, takeover::measure(&lab, peer, round).await) });
    };
    let done =
        |results: &mut Results, peer: &Peer| u32::try_from(results.of(peer.name).takeover.len());
    for peer in peers {
        let round = done(results, peer)?;
        if round < rounds {
            start(&mut running, peer, round);
        }
    }
    while let Some(joined) = running.join_next().await {
        let (peer, measured) = joined.context("a takeover")?;
        let go_on = measured
            .as_ref()
            .is_ok_and(|takeover| takeover.seconds.is_some());
        note(results, peer, "takeover", measured, |engine, measured| {
            engine.takeover.push(measured);
        })?;
        let round = done(results, peer)?;
        // Over the cap once is over.
        if go_on && round < rounds {
            start(&mut running, peer, round);
        }
    }
    Ok(())
}

/// All cases of all engines side by side: no figure of theirs hangs on the clock.
async fn lates(
    lab: &Arc<Lab>,
    peers: &[&'static Peer],
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut running: JoinSet<(&'static Peer, anyhow::Result<Late>)> = JoinSet::new();
    for peer in peers.iter().copied() {
        for case in Case::of(peer).iter().copied() {
            if results
                .of(peer.name)
                .late
                .iter()
                .all(|late| late.case != case)
            {
                let lab = Arc::clone(lab);
                running.spawn(async move { (peer, late::measure(&lab, peer, case).await) });
            }
        }
    }
    while let Some(joined) = running.join_next().await {
        let (peer, measured) = joined.context("a late completion")?;
        note(results, peer, "late", measured, |engine, measured| {
            engine.late.push(measured);
            engine.late.sort_by_key(|late| late.case);
        })?;
    }
    Ok(())
}

/// Stores what was measured, or what was said instead, and saves.
fn note<T: std::fmt::Debug>(
    results: &mut Results,
    peer: &Peer,
    item: &str,
    measured: anyhow::Result<T>,
    store: impl FnOnce(&mut Engine, T),
) -> anyhow::Result<()> {
    let engine = results.of(peer.name);
    match measured {
        Ok(measured) => {
            let mut line = format!("{measured:?}");
            line.truncate(
                line.char_indices()
                    .nth(200)
                    .map_or(line.len(), |(at, _)| at),
            );
            tell(&format!("{} {item}: {line}", peer.name));
            store(engine, measured);
        }
        Err(error) => {
            tell(&format!("{} {item} FAILED: {error:#}", peer.name));
            engine.failed.push(format!("{item}: {error:#}"));
        }
    }
    results.save()
}
