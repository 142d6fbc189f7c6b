//! What a drill is played on: the private PostgreSQL, the proxy, the oracle, the workers.
//!
//! Invariant: dropping it ends everything. Must never start a worker that reaches the database beside the proxy.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aegis_devpg::Server;
use aegis_store::Config;
use aegis_store::install::install;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_postgres::NoTls;

use super::Options;
use crate::child::{Process, Program};
use crate::error::DrillError;
use crate::facts;
use crate::history::History;
use crate::proxy::Proxy;

/// Enough for the workers, and soon taken.
const CONNECTIONS_MAX: &str = "60";
const EXHAUSTED_FOR: Duration = Duration::from_millis(1500);
/// A worker that ends this often by itself is broken.
const REPLACED_MAX: usize = 1000;
const SLOTS: usize = 4;

pub(super) struct Stage {
    pub(super) program: Program,
    pub(super) proxy: Proxy,
    pub(super) history: History,
    pub(super) workers: Vec<Process>,
    /// Told to end, and not waited for.
    pub(super) leaving: Vec<Process>,
    /// Take over what stood at a cut.
    pub(super) takers: Vec<Process>,
    pub(super) admin_url: String,
    /// Past the proxy: for what must not be cut.
    pub(super) direct_url: String,
    pub(super) oracle_url: String,
    pub(super) record: PathBuf,
    server: Arc<Server>,
    oracle: Process,
    started: usize,
    wanted: usize,
    trouble: Vec<String>,
    lates: AtomicUsize,
}

impl Stage {
    pub(super) async fn start(options: &Options) -> Result<Self, DrillError> {
        let fetch = options.fetch_postgres;
        let server = spawn_blocking(move || {
            Server::start(&aegis_devpg::Options {
                fetch,
                settings: vec![("max_connections".to_owned(), CONNECTIONS_MAX.to_owned())],
                ..aegis_devpg::Options::default()
            })
        })
        .await
        .map_err(|error| DrillError::system("start PostgreSQL")(error.into()))??;
        let admin_url = server.url(server.superuser(), "postgres");
        install(&Config::from_url(&admin_url)?, 2).await?;
        facts::observe(&facts::connect(&admin_url).await?).await?;
        let socket = server
            .socket_dir()
            .join(format!(".s.PGSQL.{}", server.port()));
        let proxy = Proxy::before(socket).await?;
        let program = Program {
            path: options.program.clone(),
            folder: options.folder.clone(),
        };
        let record = options.folder.join("oracle.record");
        let words = [
            "oracle".into(),
            "--record".into(),
            record.clone().into_os_string(),
            "--seed".into(),
            options.seed.to_string().into(),
        ];
        let mut oracle = program.start("oracle", &with_parent(&words))?;
        let oracle_url = oracle.first_line().await?;
        Ok(Self {
            history: History::open(&program.history("supervisor"))?,
            proxy,
            workers: Vec::new(),
            leaving: Vec::new(),
            takers: Vec::new(),
            lates: AtomicUsize::new(0),
            direct_url: server.url("aegis_engine", "postgres"),
            admin_url,
            oracle_url,
            record,
            server: Arc::new(server),
            oracle,
            program,
            started: 0,
            wanted: options.workers,
            trouble: Vec::new(),
        })
    }

    /// Starts one more worker, through the proxy.
    pub(super) fn start_worker(&mut self) -> Result<(), DrillError> {
        let worker = self.worker("default", SLOTS, None)?;
        self.workers.push(worker);
        Ok(())
    }

    /// Starts a worker that is not one of the drill's.
    pub(super) fn worker(
        &mut self,
        queue: &str,
        slots: usize,
        hold_at: Option<&str>,
    ) -> Result<Process, DrillError> {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        let mut words: Vec<OsString> = [
            "worker".into(),
            "--url".into(),
            self.proxy.url("aegis_engine", "postgres").into(),
            "--oracle".into(),
            (&self.oracle_url).into(),
            "--history".into(),
            self.program.history(&name).into_os_string(),
            "--name".into(),
            (&name).into(),
            "--queue".into(),
            queue.into(),
            "--slots".into(),
            slots.to_string().into(),
        ]
        .into();
        if let Some(at) = hold_at {
            words.extend(["--hold-at".into(), at.into()]);
        }
        self.program.start(&name, &with_parent(&words))
    }

    /// Keeps as many workers as are wanted.
    pub(super) fn replace_ended(&mut self) -> Result<(), DrillError> {
        self.workers.retain_mut(|worker| !worker.ended());
        self.leaving.retain_mut(|worker| !worker.ended());
        if self.oracle.ended() && self.trouble.is_empty() {
            self.trouble.push("the oracle of effects ended".to_owned());
        }
        while self.workers.len() < self.wanted && self.started < REPLACED_MAX {
            self.start_worker()?;
        }
        Ok(())
    }

    pub(super) async fn waiting(&mut self) -> Result<i64, DrillError> {
        let admin = facts::connect(&self.admin_url).await?;
        facts::waiting(&admin).await
    }

    pub(super) async fn restart(&self) -> Result<(), DrillError> {
        self.blocking(Server::restart).await
    }

    pub(super) async fn crash(&self) -> Result<(), DrillError> {
        self.blocking(|server| {
            server.crash()?;
            server.restart()
        })
        .await
    }

    pub(super) async fn immediate(&self) -> Result<(), DrillError> {
        self.blocking(|server| {
            if let Some(pid) = server.postmaster_pid() {
                // The server's own watchdog holds it, so the number is still its.
                kill(Pid::from_raw(pid), Signal::SIGQUIT).ok();
            }
            server.restart()
        })
        .await
    }

    async fn blocking(
        &self,
        work: impl FnOnce(&Server) -> Result<(), aegis_devpg::Error> + Send + 'static,
    ) -> Result<(), DrillError> {
        let server = Arc::clone(&self.server);
        spawn_blocking(move || work(&server))
            .await
            .map_err(|error| DrillError::system("restart PostgreSQL")(error.into()))??;
        Ok(())
    }

    /// Takes every place at the server and cuts everybody; gives how often the server refused.
    pub(super) fn exhaust(&self) -> JoinHandle<u64> {
        let url = self.direct_url.clone();
        let all = tokio::spawn(async move {
            let began = Instant::now();
            let (mut held, mut refused) = (Vec::new(), 0);
            while began.elapsed() < EXHAUSTED_FOR {
                if let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await {
                    tokio::spawn(connection);
                    held.push(client);
                } else {
                    refused += 1;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            refused
        });
        self.proxy.cut_all();
        all
    }

    /// Ends the workers in order, and kills what does not end.
    pub(super) async fn end_workers(&mut self, limit: Duration) {
        self.wanted = 0;
        let all: Vec<Process> = self
            .workers
            .drain(..)
            .chain(self.leaving.drain(..))
            .collect();
        for worker in &all {
            worker.signal(Signal::SIGCONT);
            worker.signal(Signal::SIGTERM);
        }
        for worker in all {
            let name = worker.name.clone();
            if worker.wait(limit).await.is_none() {
                tracing::warn!(%name, "a worker did not end in order");
            }
        }
    }

    pub(super) async fn end_takers(&mut self) {
        let takers = std::mem::take(&mut self.takers);
        for taker in &takers {
            taker.signal(Signal::SIGTERM);
        }
        for taker in takers {
            taker.wait(Duration::from_secs(10)).await;
        }
    }

    /// The number of the next late process.
    pub(super) fn next_late(&self) -> usize {
        self.lates.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn trouble_at(&mut self, what: String) {
        self.trouble.push(what);
    }

    pub(super) fn trouble(&self) -> Vec<String> {
        self.trouble.clone()
    }

    pub(super) fn postgres(&self) -> String {
        self.server.version().1.to_owned()
    }

    /// Ends everything.
    pub(super) async fn stop(self) {
        self.oracle.kill().await;
        let server = self.server;
        spawn_blocking(move || drop(server)).await.ok();
    }
}

pub(super) fn with_parent(words: &[OsString]) -> Vec<OsString> {
    let mut all = words.to_vec();
    all.extend(["--parent".into(), std::process::id().to_string().into()]);
    all
}
