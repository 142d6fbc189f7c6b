//! Where the time of a task goes: server CPU by statement and by process, round trips, WAL by statement and by record type, the
//! client's CPU.
//!
//! Invariants: on a server of its own, because what counts statements costs a little itself; each phase (submit, then claim and
//! complete) is read from the counters at its begin and its end, while all its connections are still there.
//!
//! Never: a row for what this server could not count; it says what is missing.

mod cpu;
mod statements;
mod wal;

use std::time::{Duration, Instant};

use aegis_worker::{TaskContext, Worker, handler_fn};
use anyhow::bail;

use self::cpu::Cpu;
use crate::setting::Setting;
use crate::{Figures, figure, throughput};

/// What one phase cost, per task.
struct Phase {
    name: &'static str,
    seconds: f64,
    cpu: Cpu,
    statements: Option<Vec<statements::Line>>,
    wal_bytes: f64,
    records: Option<Vec<wal::Line>>,
}

/// Runs both phases once, after a warm-up, and prints the tables.
#[expect(clippy::cast_precision_loss, reason = "a count of tasks")]
#[expect(clippy::print_stdout, reason = "the tables are its output")]
pub(crate) async fn measure(
    no_fsync: bool,
    fetch: bool,
    input: &[u8],
    tasks: usize,
) -> anyhow::Result<Figures> {
    let preload = [("shared_preload_libraries", "pg_stat_statements")];
    let setting = match Setting::start_with(no_fsync, fetch, &preload).await {
        Ok(setting) => setting,
        Err(error) => {
            println!("pg_stat_statements is not there, so no statement is counted: {error:#}");
            Setting::start(no_fsync, fetch).await?
        }
    };
    let counts = statements::enable(&setting).await;
    let walinspect = wal::enable(&setting).await;
    throughput::peak(&setting, input, tasks.min(5000)).await?;

    let mut phases = Vec::new();
    let mut probe = Probe::begin(&setting, counts).await?;
    let store = setting.store(2).await?;
    throughput::fill_with(&store, input, tasks).await?;
    phases.push(probe.end("submit", walinspect).await?);
    drop(store);
    setting.tidy_up().await?;

    let noop = handler_fn("bench.noop", |_: TaskContext, _: serde_json::Value| async {
        Ok(())
    });
    let worker = Worker::builder(setting.store(6).await?)
        .name("profile")
        .handler(noop)
        .slots(10)
        .build()?;
    let handle = worker.handle();
    probe = Probe::begin(&setting, counts).await?;
    let running = tokio::spawn(worker.run(std::future::pending()));
    let begin = Instant::now();
    while handle.snapshot().counts.completed < tasks as u64 {
        if running.is_finished() || begin.elapsed() > Duration::from_mins(5) {
            bail!("the worker ended early or took too long");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    phases.push(probe.end("claim and complete", walinspect).await?);
    handle.drain();
    running.await??;

    let tasks = tasks as f64;
    let mut figures = Vec::new();
    for phase in &phases {
        print(phase, tasks);
        let prefix = phase.name.replace(' ', "_");
        let server = phase.cpu.server_us() / tasks;
        figures.push(figure(&format!("profile_{prefix}_server_cpu_us"), server));
        figures.push(figure(
            &format!("profile_{prefix}_client_cpu_us"),
            phase.cpu.client_us / tasks,
        ));
        figures.push(figure(
            &format!("profile_{prefix}_wal_bytes"),
            phase.wal_bytes / tasks,
        ));
        if let Some(lines) = &phase.statements {
            let calls: f64 = lines.iter().map(|line| line.calls).sum();
            figures.push(figure(
                &format!("profile_{prefix}_statements_per_1000"),
                calls * 1000.0 / tasks,
            ));
        }
    }
    Ok(figures)
}

/// The counters at the begin of a phase.
struct Probe<'a> {
    setting: &'a Setting,
    counts: bool,
    cpu: Cpu,
    lsn: String,
    wal_bytes: f64,
    begin: Instant,
}

impl<'a> Probe<'a> {
    async fn begin(setting: &'a Setting, counts: bool) -> anyhow::Result<Self> {
        if counts {
            statements::reset(setting).await?;
        }
        Ok(Self {
            setting,
            counts,
            lsn: wal::position(setting).await?,
            wal_bytes: setting.wal_bytes().await?,
            cpu: Cpu::now(setting).await?,
            begin: Instant::now(),
        })
    }

    async fn end(self, name: &'static str, walinspect: bool) -> anyhow::Result<Phase> {
        let seconds = self.begin.elapsed().as_secs_f64();
        let cpu = Cpu::now(self.setting).await?.since(&self.cpu);
        let wal_bytes = self.setting.wal_bytes().await? - self.wal_bytes;
        let statements = if self.counts {
            Some(statements::read(self.setting).await?)
        } else {
            None
        };
        let records = if walinspect {
            Some(wal::records(self.setting, &self.lsn).await?)
        } else {
            None
        };
        Ok(Phase {
            name,
            seconds,
            cpu,
            statements,
            wal_bytes,
            records,
        })
    }
}

/// Markdown, as it stands in docs/benchmarks.md.
#[expect(clippy::print_stdout, reason = "the tables are its output")]
fn print(phase: &Phase, tasks: f64) {
    println!(
        "\n**{}**: {:.1} µs a task by the clock; server CPU {:.1}, client CPU {:.1}; WAL {:.0} B\n",
        phase.name,
        phase.seconds * 1e6 / tasks,
        phase.cpu.server_us() / tasks,
        phase.cpu.client_us / tasks,
        phase.wal_bytes / tasks
    );
    println!("| server process | CPU, µs a task |\n| --- | --- |");
    for (name, us) in &phase.cpu.server {
        if us / tasks >= 0.05 {
            println!("| {name} | {:.1} |", us / tasks);
        }
    }
    match &phase.statements {
        Some(lines) => {
            println!(
                "\n| statement | calls per 1,000 tasks | rows a call | in the server, µs a task | WAL, B a task |\n| --- | --- | --- | --- | --- |"
            );
            for line in lines.iter().filter(|line| line.us / tasks >= 0.05) {
                println!(
                    "| {} | {:.1} | {:.0} | {:.1} | {:.0} |",
                    line.name,
                    line.calls * 1000.0 / tasks,
                    line.rows / line.calls.max(1.0),
                    line.us / tasks,
                    line.wal_bytes / tasks
                );
            }
        }
        None => println!("\nStatements were not counted: this server has no pg_stat_statements."),
    }
    match &phase.records {
        Some(lines) => {
            println!(
                "\n| WAL record | records a task | B a task | of it full pages |\n| --- | --- | --- | --- |"
            );
            for line in lines.iter().filter(|line| line.bytes / tasks >= 5.0) {
                println!(
                    "| {} | {:.2} | {:.0} | {:.0} |",
                    line.name,
                    line.count / tasks,
                    line.bytes / tasks,
                    line.page_bytes / tasks
                );
            }
        }
        None => println!("\nWAL records were not counted: this server has no pg_walinspect."),
    }
}
