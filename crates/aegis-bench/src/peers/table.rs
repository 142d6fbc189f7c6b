//! The section of the page: tables and sentences, made from the results alone.
//!
//! Invariant: what Aegis is behind in is computed like everything else, so it cannot be forgotten.

mod figures;
mod standing;

use std::fmt::Write as _;

use super::catalog::{PEERS, Toolchain};
use super::late::{Case, Verdict, WAIT_S};
use super::latency::SAMPLES;
use super::results::{Engine, Results};
use super::takeover::CAP;
use figures::{Figure, of_limit, spread};

/// The section, in Markdown.
pub(crate) fn section(results: &Results) -> String {
    let mut out = head(results);
    throughput(&mut out, results);
    roomy(&mut out, results);
    latency(&mut out, results);
    fences(&mut out, results);
    standing::write(&mut out, results);
    settings(&mut out, results);
    out
}

fn head(results: &Results) -> String {
    let setting = &results.setting;
    let ended = results.ended.unwrap_or(results.began);
    let mut out = format!(
        "Run of {} at commit {}, {} minutes. {} ({}, all else its default: fsync and synchronous_commit on), {} cores ({}), \
         {} MiB of memory; server, worker and client on this one machine, over TCP on the loopback. {} jobs, concurrency \
         C = {}, rounds: {}; medians, with the least and the most in brackets.",
        ended.strftime("%Y-%m-%d %H:%M UTC"),
        setting.commit,
        ended.duration_since(results.began).as_secs() / 60,
        results.postgres,
        results.postgres_settings.join(", "),
        setting.cores,
        setting.processor,
        setting.memory_mib,
        setting.jobs,
        setting.concurrency,
        setting.rounds,
    );
    if results.resumed {
        out.push_str(" The run was interrupted and went on later.");
    }
    out.push_str("\n\n");
    for engine in &results.engines {
        if let Some(reason) = &engine.skipped {
            writeln!(out, "**{} is missing: {reason}.**\n", engine.name).ok();
        }
    }
    out
}

/// A table of the engines that have something for it.
fn rows(
    out: &mut String,
    results: &Results,
    head: &[&str],
    row: impl Fn(&Engine) -> Option<Vec<String>>,
) {
    let rows: Vec<Vec<String>> = results.engines.iter().filter_map(row).collect();
    if rows.is_empty() {
        return;
    }
    writeln!(
        out,
        "| {} |\n|{}",
        head.join(" | "),
        " --- |".repeat(head.len())
    )
    .ok();
    for row in rows {
        writeln!(out, "| {} |", row.join(" | ")).ok();
    }
    out.push('\n');
}

fn throughput(out: &mut String, results: &Results) {
    if results
        .engines
        .iter()
        .all(|engine| engine.throughput.is_empty())
    {
        return;
    }
    writeln!(
        out,
        "**A backlog drained** by one worker process at concurrency {}:\n",
        results.setting.concurrency
    )
    .ok();
    let head = [
        "engine",
        "jobs/s",
        "of the limit",
        "enqueued/s",
        "WAL bytes a job",
        "transactions a job",
    ];
    rows(out, results, &head, |engine| {
        let all = &engine.throughput;
        let get = |figure: Figure| spread(&figure.of(engine), figure.digits());
        (!all.is_empty()).then(|| {
            let share = of_limit(&Figure::Jobs.of(engine), &results.limits);
            let (jobs, enqueues) = (get(Figure::Jobs), get(Figure::Enqueues));
            vec![
                name(engine),
                jobs,
                share,
                enqueues,
                get(Figure::Wal),
                get(Figure::Transactions),
            ]
        })
    });
    if results.limits.is_empty() {
        return;
    }
    let limit = |get: fn(&super::limits::Limits) -> f64| {
        spread(&results.limits.iter().map(get).collect::<Vec<_>>(), 0)
    };
    writeln!(
        out,
        "The limit is what pgbench claims and completes bare, 100 rows a statement, one client: {} rows/s, {} WAL bytes a row \
         ({} rows/s with {} clients). Single-row durable commits, one client: {} a second. A write of 8 kB with its flush: {} µs.\n",
        limit(|limits| limits.rows_per_second),
        limit(|limits| limits.wal_bytes_per_row),
        limit(|limits| limits.rows_per_second_concurrent),
        results.setting.concurrency,
        limit(|limits| limits.commits_per_second),
        limit(|limits| limits.flush_us),
    )
    .ok();
}

fn roomy(out: &mut String, results: &Results) {
    if results
        .engines
        .iter()
        .all(|engine| engine.throughput_roomy.is_empty())
    {
        return;
    }
    out.push_str("**The same at a concurrency that suits each**:\n\n");
    let head = [
        "engine",
        "concurrency",
        "jobs/s",
        "of the limit",
        "WAL bytes a job",
        "transactions a job",
    ];
    rows(out, results, &head, |engine| {
        let all = engine.suited();
        let of = |get: fn(&super::throughput::Throughput) -> f64| {
            all.iter().map(get).collect::<Vec<f64>>()
        };
        let c = all.first()?.concurrency.to_string();
        let jobs = of(|drain| drain.jobs_per_second);
        let share = of_limit(&jobs, &results.limits);
        let wal = spread(&of(|drain| drain.wal_bytes_per_job), 0);
        Some(vec![
            name(engine),
            c,
            spread(&jobs, 0),
            share,
            wal,
            spread(&of(|drain| drain.transactions_per_job), 3),
        ])
    });
}

fn latency(out: &mut String, results: &Results) {
    if results
        .engines
        .iter()
        .all(|engine| engine.latency.is_empty())
    {
        return;
    }
    writeln!(
        out,
        "**Start latency**, idle worker, {SAMPLES} jobs a round, one every 50 ms; from the return of the enqueue's call to the \
         handler's first line, in milliseconds (below 0: the handler ran before the caller had its answer):\n"
    )
    .ok();
    rows(
        out,
        results,
        &["engine", "p50", "p99", "p99 from the call's start"],
        |engine| {
            let get = |figure: Figure| spread(&figure.of(engine), figure.digits());
            let whole = Figure::StartFromCallP99;
            (!engine.latency.is_empty()).then(|| {
                vec![
                    name(engine),
                    get(Figure::StartP50),
                    get(Figure::StartP99),
                    get(whole),
                ]
            })
        },
    );
}

fn fences(out: &mut String, results: &Results) {
    if results
        .engines
        .iter()
        .all(|engine| engine.takeover.is_empty() && engine.late.is_empty())
    {
        return;
    }
    out.push_str(
        "**Losing a worker**. *Takeover*: from SIGKILL of the owner to the job's start in another worker, in seconds, at the \
         fastest documented settings. *Late completion*: the owner is frozen (SIGSTOP), the other worker takes the job over, \
         the owner goes on (SIGCONT), ends its handler and reports; the other one has finished by then, or is still in its \
         handler. *Refused*: the stored rows did not change:\n\n",
    );
    let head = [
        "engine",
        "takeover, s",
        "late, other one finished",
        "late, other one still runs",
        "who would notice",
    ];
    rows(out, results, &head, |engine| {
        let took: Vec<f64> = engine
            .takeover
            .iter()
            .filter_map(|takeover| takeover.seconds)
            .collect();
        let takeover = if engine
            .takeover
            .iter()
            .any(|takeover| takeover.seconds.is_none())
        {
            format!("over {}", CAP.as_secs())
        } else if forced(engine) {
            format!("{} by an operator's call", spread(&took, 1))
        } else {
            spread(&took, 1)
        };
        let told = match engine.late.iter().find(|late| late.case == Case::Running) {
            Some(late) if late.owner_exit.is_some() => "the frozen worker's process ends",
            Some(late) if late.told() => "its log says so",
            Some(_) => "nobody: silent",
            None => "",
        };
        (!engine.takeover.is_empty() || !engine.late.is_empty()).then(|| {
            vec![
                name(engine),
                takeover,
                verdict(engine, Case::Done),
                verdict(engine, Case::Running),
                told.to_owned(),
            ]
        })
    });
    for engine in &results.engines {
        let alone = engine.late.iter().find(|late| late.case == Case::Alone);
        if alone.is_some_and(|late| late.verdict() == Verdict::NoTakeover) {
            writeln!(
                out,
                "{}: the takeover of a frozen worker needs a third process that leads the fleet, as in the table; where the frozen \
                 worker was the leader itself, nobody took the job over within {WAIT_S} s.\n",
                engine.name
            )
            .ok();
        }
    }
}

fn verdict(engine: &Engine, case: Case) -> String {
    let Some(late) = engine.late.iter().find(|late| late.case == case) else {
        return String::new();
    };
    let words = match (late.verdict(), case) {
        (Verdict::NoTakeover, _) => "not taken over",
        (Verdict::Refused, _) if late.rows_gone() => "nothing left to change",
        (Verdict::Refused, _) => "refused",
        (Verdict::Accepted, Case::Running) => {
            "**accepted: it ends the other one's live execution**"
        }
        (Verdict::Accepted, _) => "**accepted: the stored result changes**",
    };
    words.to_owned()
}

fn settings(out: &mut String, results: &Results) {
    out.push_str("Versions and settings, each engine at its best documented ones:\n\n");
    for peer in PEERS.iter().filter(|peer| {
        results
            .engines
            .iter()
            .any(|engine| engine.name == peer.name)
    }) {
        let takeover = if peer.forced {
            "Takeover (by an operator)"
        } else {
            "Takeover"
        };
        writeln!(
            out,
            "- **{}** ({}). Throughput: {}. Start latency: {}. {takeover}: {}.",
            peer.name, peer.package, peer.throughput, peer.latency, peer.fast
        )
        .ok();
    }
    out.push('\n');
}

/// Whether its takeover needs an operator.
fn forced(engine: &Engine) -> bool {
    PEERS
        .iter()
        .any(|peer| peer.name == engine.name && peer.forced)
}

/// With its language: two of them have almost the same name.
fn name(engine: &Engine) -> String {
    let peer = PEERS.iter().find(|peer| peer.name == engine.name);
    match peer.map(|peer| peer.toolchain) {
        Some(Toolchain::Own) => format!("**{}**", engine.name),
        Some(Toolchain::Node) => format!("{} (Node)", engine.name),
        Some(Toolchain::Rust) => format!("{} (Rust)", engine.name),
        Some(Toolchain::Go) => format!("{} (Go)", engine.name),
        None => engine.name.clone(),
    }
}

#[cfg(test)]
mod tests;
