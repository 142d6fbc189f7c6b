//! What a drill is played on: the private PostgreSQL, the proxy, the oracle, the workers.
//!
//! Invariant: dropping it ends everything. Must never start a worker that reaches the database beside the proxy.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aegis_devpg::Server;
use aegis_schema::install;
use aegis_store::Config;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::task::spawn_blocking;
use tokio_postgres::NoTls;
use uuid::Uuid;

use super::Options;
use super::pooler::Pooler;
use super::versions::VersionBefore;
use crate::child::{Process, Program};
use crate::error::DrillError;
use crate::facts;
use crate::faketime;
use crate::fault::Fault;
use crate::history::{self, Event, History};
use crate::proxy::Proxy;

/// Enough for the workers, and soon taken.
const CONNECTIONS_MAX: &str = "60";
const EXHAUSTED_FOR: Duration = Duration::from_millis(1500);
/// Bounds the workers of the longest run.
const STARTED_MAX: usize = 100_000;
const SLOTS: usize = 4;

/// Where a worker's executions stop for ever, or its process until it is woken.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stops<'a> {
    Never,
    /// At a cut of their operation.
    At(&'a str),
    /// In the call of its operation, after the last look at the lease.
    InTheWindow,
}

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
    pub(super) started: usize,
    /// The other program, where the drill has one.
    pub(super) version_before: Option<VersionBefore>,
    wanted: usize,
    trouble: Vec<String>,
    lates: AtomicUsize,
    /// Between the pooled worker and the proxy, where it is installed.
    pooler: Option<Pooler>,
    /// Names of workers that went through it.
    pooled: Vec<String>,
    /// The library that moves clocks, where it is installed.
    faketime: Option<PathBuf>,
    /// How often the server refused a connection while it was exhausted.
    refused: Arc<AtomicU64>,
}

impl Stage {
    pub(super) async fn start(options: &Options) -> Result<Self, DrillError> {
        let fetch = options.fetch_postgres;
        let faketime = faketime::library();
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
        install(&Config::from_url(&admin_url)?, 2)
            .await
            .map_err(Box::new)?;
        let admin = facts::connect(&admin_url).await?;
        facts::observe(&admin).await?;
        if let Some(path) = &options.break_with {
            let sql = std::fs::read_to_string(path).map_err(DrillError::file("read", path))?;
            admin.batch_execute(&sql).await?;
        }
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
            workers: Vec::new(),
            leaving: Vec::new(),
            takers: Vec::new(),
            lates: AtomicUsize::new(0),
            pooler: Pooler::start(proxy.port(), server.socket_dir())?,
            pooled: Vec::new(),
            faketime,
            refused: Arc::default(),
            proxy,
            direct_url: server.url("aegis_engine", "postgres"),
            admin_url,
            oracle_url,
            record,
            server: Arc::new(server),
            oracle,
            program,
            started: 0,
            version_before: options.version_before.clone().map(|path| VersionBefore {
                path,
                workers: Vec::new(),
            }),
            wanted: options.workers,
            trouble: Vec::new(),
        })
    }

    /// Starts one more worker, through the proxy; one of them through a pooler before it.
    pub(super) fn start_worker(&mut self) -> Result<(), DrillError> {
        let pooled = |name: &String| self.workers.iter().any(|worker| worker.name == *name);
        let through = self.pooler.is_some() && !self.pooled.iter().any(pooled);
        let before = !through && self.wants_version_before();
        let worker = self.worker_at("default", SLOTS, Stops::Never, (through, before))?;
        if through {
            self.pooled.push(worker.name.clone());
        }
        self.workers.push(worker);
        Ok(())
    }

    /// Starts a worker that is not one of the drill's.
    pub(super) fn worker(
        &mut self,
        queue: &str,
        slots: usize,
        stops: Stops<'_>,
    ) -> Result<Process, DrillError> {
        self.worker_at(queue, slots, stops, (false, false))
    }

    /// Through the pooler, and of the version before?
    fn worker_at(
        &mut self,
        queue: &str,
        slots: usize,
        stops: Stops<'_>,
        (pooled, before): (bool, bool),
    ) -> Result<Process, DrillError> {
        self.started += 1;
        let name = format!("worker-{}", self.started);
        let direct = self.proxy.url("aegis_engine", "postgres");
        let pooler = self.pooler.as_ref().filter(|_| pooled);
        let url = pooler.map_or_else(
            || direct.clone(),
            |pooler| pooler.url("aegis_engine", "postgres"),
        );
        let mut words: Vec<OsString> = [
            "worker".into(),
            "--url".into(),
            url.into(),
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
        match stops {
            Stops::Never => {}
            Stops::At(cut) => words.extend(["--hold-at".into(), cut.into()]),
            Stops::InTheWindow => words.push("--freeze".into()),
        }
        if pooler.is_some() {
            words.extend(["--direct-url".into(), direct.into()]);
        }
        let mut variables = Vec::new();
        if let Some(library) = &self.faketime {
            let clock = self.clock_of(&name);
            faketime::set(&clock, 0)?;
            variables.extend(faketime::variables(library, &clock));
        }
        let mut program = self.program.clone();
        if let Some(version) = self.version_before.as_mut().filter(|_| before) {
            version.workers.push(name.clone());
            program.path.clone_from(&version.path);
        }
        program.start_with(&name, &with_parent(&words), &variables)
    }

    fn clock_of(&self, name: &str) -> PathBuf {
        self.program.folder.join(format!("{name}.clock"))
    }

    /// Does this machine have what the fault needs?
    pub(super) fn can_make(&self, fault: Fault) -> bool {
        match fault {
            Fault::WorkerClocks => self.faketime.is_some(),
            _ => true,
        }
    }

    /// Sets the wall clocks of all workers of now; false when that cannot be done here.
    pub(super) fn set_worker_clocks(&self, offset_s: i64) -> Result<bool, DrillError> {
        if self.faketime.is_none() {
            return Ok(false);
        }
        for worker in &self.workers {
            faketime::set(&self.clock_of(&worker.name), offset_s)?;
        }
        Ok(!self.workers.is_empty())
    }

    /// Is this claim over by the database's word? A database that cannot say so has not ended it.
    pub(super) async fn claim_is_over(&self, task: Uuid, epoch: i64) -> bool {
        match facts::connect(&self.admin_url).await {
            Ok(admin) => facts::still_held(&admin, task, epoch)
                .await
                .is_ok_and(|held| !held),
            Err(_) => false,
        }
    }

    /// How often the server refused a connection while it was exhausted.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How many executions workers behind the pooler began; `None`: there is no pooler.
    pub(super) fn pooled_started(&self) -> Result<Option<u64>, DrillError> {
        if self.pooler.is_none() {
            return Ok(None);
        }
        let mut started = 0;
        for name in &self.pooled {
            let path = self.program.history(name);
            if path.exists() {
                let lines = history::read(&path)?;
                let begun = lines
                    .iter()
                    .filter(|line| matches!(line.event, Event::Started { .. }));
                started += begun.count() as u64;
            }
        }
        Ok(Some(started))
    }

    /// Keeps as many workers as are wanted.
    pub(super) fn replace_ended(&mut self) -> Result<(), DrillError> {
        self.workers.retain_mut(|worker| !worker.ended());
        self.leaving.retain_mut(|worker| !worker.ended());
        if self.oracle.ended() && self.trouble.is_empty() {
            self.trouble.push("the oracle of effects ended".to_owned());
        }
        while self.workers.len() < self.wanted && self.started < STARTED_MAX {
            self.start_worker()?;
        }
        Ok(())
    }

    /// Has everything ended, or does it wait for a person? A database that cannot say so has not.
    pub(super) async fn all_ended(&self) -> bool {
        match facts::connect(&self.admin_url).await {
            Ok(admin) => facts::waiting(&admin).await.is_ok_and(|count| count == 0),
            Err(_) => false,
        }
    }

    /// Process ids of workers that hold tasks, the busiest first; nobody when the database is away.
    pub(super) async fn busy(&self) -> Vec<i32> {
        match facts::connect(&self.admin_url).await {
            Ok(admin) => facts::busy(&admin).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
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

    /// Takes every place at the server and cuts everybody.
    pub(super) fn exhaust(&self) {
        let url = self.direct_url.clone();
        let refused = Arc::clone(&self.refused);
        tokio::spawn(async move {
            let before = refused.load(Ordering::Relaxed);
            let began = Instant::now();
            let mut held = Vec::new();
            // On a busy machine it takes longer until every place is taken.
            while began.elapsed() < EXHAUSTED_FOR
                || (refused.load(Ordering::Relaxed) == before
                    && began.elapsed() < EXHAUSTED_FOR * 8)
            {
                if let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await {
                    tokio::spawn(connection);
                    held.push(client);
                } else {
                    refused.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
        self.proxy.cut_all();
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
