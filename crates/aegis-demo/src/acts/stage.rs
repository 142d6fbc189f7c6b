//! What stands on the stage: the database, the payment service, the workers, and the voice that tells of them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use aegis_devpg::Server;
use aegis_store::Store;
use tempfile::TempDir;

use super::look::{Look, until};
use super::process::{Process, Program};
use super::{DEMO, DemoError, DemoOptions};
use crate::hold::Word;
use crate::run::{KIND, Run};
use crate::story::{Actor, Story};

/// The lease of the demo's workers: short, so that a takeover can be waited for.
pub(super) const LEASE: Duration = Duration::from_secs(3);
/// Orders at once, by worker.
pub(super) const SLOTS: usize = 4;
/// How long a worker takes over each of an order's five stages, so that there is something to interrupt.
const PACE: Duration = Duration::from_millis(160);
/// How long a worker may go on with what it executes after SIGTERM, before it hands back: short on purpose.
const DRAIN_S: &str = "0.3";

/// A worker process.
#[derive(Debug)]
pub(super) struct Worker {
    /// Its name in the database.
    pub(super) name: String,
    /// Its name in the story.
    pub(super) actor: Actor,
    pub(super) process: Process,
    /// While this file exists, it keeps finished results in hand.
    pub(super) hold: PathBuf,
}

/// Everything that the acts share.
pub(super) struct Stage<'a> {
    pub(super) story: &'a Story,
    pub(super) options: &'a DemoOptions,
    pub(super) run: Run,
    pub(super) store: Store,
    pub(super) look: Look,
    pub(super) program: Program,
    pub(super) payments: Process,
    pub(super) payments_url: String,
    pub(super) record: PathBuf,
    pub(super) workers: Vec<Worker>,
    pub(super) started_workers: usize,
    /// Kept last: the processes end first, then the database, then the folder goes.
    pub(super) _server: Option<Server>,
    pub(super) folder: Option<TempDir>,
}

impl Stage<'_> {
    pub(super) fn tell(&self, actor: &Actor, text: impl std::fmt::Display) {
        self.story.tell(actor, text);
    }

    /// Starts workers of a version and waits until they accept work.
    pub(super) async fn start_workers(
        &mut self,
        number: usize,
        version: u8,
    ) -> Result<Vec<Worker>, DemoError> {
        let mut started = Vec::new();
        for _ in 0..number {
            started.push(self.start_worker(version).await?);
        }
        for worker in &started {
            let accepts = until(Duration::from_secs(15), async || {
                Ok(self.look.accepts(&worker.name).await?.then_some(()))
            });
            if accepts.await?.is_none() {
                return Err(self
                    .program
                    .not_started(&worker.name, "it has not registered within 15 s"));
            }
        }
        Ok(started)
    }

    async fn start_worker(&mut self, version: u8) -> Result<Worker, DemoError> {
        self.started_workers += 1;
        let number = self.started_workers;
        let name = format!("worker-{number}");
        let hold = self.program.folder.join(format!("{name}.hold"));
        let lease_ms = LEASE.as_millis().to_string();
        let pace_ms = PACE.as_millis().to_string();
        let (version_text, slots) = (version.to_string(), SLOTS.to_string());
        let release = format!("demo-v{version}");
        let mut arguments: Vec<OsString> = [
            "worker",
            "--handlers",
            KIND,
            "--version",
            &version_text,
            "--payments-url",
            &self.payments_url,
            "--queue",
            &self.run.queue,
            "--name",
            &name,
            "--release",
            &release,
            "--slots",
            &slots,
            "--lease-ttl-ms",
            &lease_ms,
            "--pace-ms",
            &pace_ms,
            "--allow-private-addresses",
            "--stop-acquiring-s",
            "1",
            "--drain-s",
            DRAIN_S,
            "--cancel-s",
            "2",
            "--exit-margin-s",
            "2",
            "--grace-period-s",
            "10",
            "--hold-results",
        ]
        .map(OsString::from)
        .to_vec();
        arguments.push(hold.clone().into_os_string());
        Ok(Worker {
            process: Process::start(&self.program, &name, &arguments).await?,
            actor: Actor::Worker(format!("worker {number} (v{version})")),
            name,
            hold,
        })
    }

    /// Sends SIGTERM to all of these and waits until they have ended; answers how many executions they handed back.
    pub(super) async fn drain(&self, mut workers: Vec<Worker>) -> Result<i64, DemoError> {
        for worker in &mut workers {
            worker.process.send(Word::Term).await?;
        }
        let mut handed_back = 0;
        for worker in &mut workers {
            let code = worker.process.ended(Duration::from_secs(12)).await;
            let handed = self.look.ends(&worker.name, "drain").await?;
            handed_back += handed;
            let how = match code {
                Some(0) => "ends: nothing was left to do".to_owned(),
                Some(10) => format!(
                    "ends: hands {} back, uncharged; whoever is next goes on from the checkpoint",
                    super::count(handed, "order", "orders")
                ),
                Some(code) => {
                    format!("ends with exit code {code}; its orders are left to its lease")
                }
                None => {
                    worker.process.send(Word::Kill).await?;
                    "does not end within 12 s and is killed".to_owned()
                }
            };
            self.tell(&worker.actor, how);
        }
        Ok(handed_back)
    }

    /// Where the tasks stand, in one line.
    pub(super) async fn tell_progress(&self) -> Result<(), DemoError> {
        let now = self.look.progress().await?;
        self.tell(
            &DEMO,
            format!(
                "{} of {} orders are through, {} in work, {} waiting, {} for a person to look at",
                now.ended(),
                now.all(),
                now.running,
                now.waiting,
                now.reconciling
            ),
        );
        Ok(())
    }

    /// Leaves the folder of the run where it is, since somebody will want to look into it.
    pub(super) fn keep_logs(&mut self) {
        if let Some(folder) = self.folder.take() {
            let path = folder.keep();
            self.tell(
                &DEMO,
                format!("what the processes logged is kept in {}", path.display()),
            );
        }
    }
}
