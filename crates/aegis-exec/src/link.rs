//! The worker's end of one supervisor: orders to it, reports from it.
//!
//! Invariants: closing the orders (by dropping the link, or by this process's death) ends the handler; a supervisor is only
//! killed when it does not answer an order to end, and then what it watched over is looked for by its mark.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use aegis_worker::TaskContext;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::cgroup::Cgroup;
use crate::clock::boot_ns_in;
use crate::frame::{Order, Report};
use crate::options::ExecOptions;
use crate::processes::kill_marked;
use crate::program::Program;
use crate::supervisor::Spec;

/// The variable that every descendant of a handler has in its environment, unless it clears it.
const MARK: &str = "AEGIS_EXECUTION";

/// Says things to a supervisor. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Orders(mpsc::UnboundedSender<Order>);

impl Orders {
    /// Nothing is answered when the supervisor is gone: its reports tell that better.
    pub(crate) fn send(&self, order: Order) {
        self.0.send(order).ok();
    }

    /// The worker is eligible for so long.
    pub(crate) fn alive(&self, left: Duration) {
        self.send(Order::Alive(boot_ns_in(left)));
    }
}

/// A running supervisor.
pub(crate) struct Link {
    pub(crate) orders: Orders,
    reports: BufReader<ChildStdout>,
    frame: Vec<u8>,
    supervisor: Child,
    mark: String,
}

impl Link {
    /// Starts a supervisor with its handler. `about` goes into the handler's environment.
    pub(crate) fn start(
        program: &Program,
        options: &ExecOptions,
        eligible_for: Duration,
        about: &[(&str, String)],
    ) -> std::io::Result<Self> {
        let mark = Uuid::new_v4().to_string();
        let spec = Spec {
            mark: mark.clone(),
            until_ns: boot_ns_in(eligible_for),
            unread_within: options.read_within,
            line_bytes_max: options.line_bytes_max,
            cgroup: options.cgroup,
            command: program.command(),
        };
        let mut command = Command::new(&options.supervisor);
        command.arg0("aegis").args(spec.arguments());
        for name in secrets(std::env::vars_os().map(|(name, _)| name)) {
            command.env_remove(name);
        }
        command
            .env(MARK, &mark)
            .envs(about.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut supervisor = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (supervisor.stdin.take(), supervisor.stdout.take())
        else {
            return Err(std::io::Error::other("the supervisor has no pipes"));
        };
        let (orders, to_write) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, to_write));
        Ok(Self {
            orders: Orders(orders),
            reports: BufReader::with_capacity(64 * 1024, stdout),
            frame: Vec::new(),
            supervisor,
            mark,
        })
    }

    /// The next report; `None` when the supervisor is gone. Nothing is lost when it is not awaited to its end.
    pub(crate) async fn next(&mut self) -> Option<Report> {
        let read = self.reports.read_until(b'\n', &mut self.frame).await;
        if !matches!(read, Ok(count) if count > 0) || self.frame.pop() != Some(b'\n') {
            return None;
        }
        let report = Report::decode(&self.frame);
        self.frame.clear();
        report
    }

    /// After the last report, or without one: makes sure that nothing is left. `heard`: the supervisor said that everything
    /// has ended.
    pub(crate) async fn close(mut self, heard: bool) {
        drop(self.orders);
        if !heard {
            self.supervisor.start_kill().ok();
        }
        self.supervisor.wait().await.ok();
        if heard {
            return;
        }
        let entry = format!("{MARK}={}", self.mark);
        let mark = self.mark;
        let swept = tokio::task::spawn_blocking(move || sweep(&entry, &mark)).await;
        if !matches!(swept, Ok(true)) {
            tracing::error!("processes of a handler whose supervisor is gone could not be ended");
        }
    }
}

/// Ends what a supervisor that is gone had watched over. True: two looks in a row found nothing.
fn sweep(entry: &str, mark: &str) -> bool {
    const LOOKS_MAX: u32 = 200;
    let name = format!("aegis-{mark}");
    let cgroup = Cgroup::find(&name);
    let mut clean = 0;
    for _ in 0..LOOKS_MAX {
        if let Some(cgroup) = &cgroup {
            cgroup.kill();
        }
        clean = if kill_marked(entry) == 0 {
            clean + 1
        } else {
            0
        };
        if clean == 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    clean == 2
}

/// A handler gets none of the worker's own configuration: its database URL is among it.
fn secrets(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    names
        .filter(|name| name.as_encoded_bytes().starts_with(b"AEGIS_"))
        .collect()
}

async fn write(mut to: ChildStdin, mut orders: mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        if to.write_all(&order.encode()).await.is_err() {
            return;
        }
    }
}

/// What a handler finds in its environment.
pub(crate) fn about(ctx: &TaskContext<Value>) -> [(&'static str, String); 3] {
    [
        ("AEGIS_TASK", ctx.task_id().to_string()),
        ("AEGIS_KIND", ctx.kind().to_owned()),
        ("AEGIS_EPOCH", ctx.epoch().to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_configuration_stays_with_it() {
        let names = ["AEGIS_DATABASE_URL", "PATH", "MY_AEGIS_X", "AEGIS_LOG"];
        let removed = secrets(names.iter().map(OsString::from));
        assert_eq!(removed, ["AEGIS_DATABASE_URL", "AEGIS_LOG"]);
    }
}
