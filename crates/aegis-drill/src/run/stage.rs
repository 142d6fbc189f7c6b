//! What a drill is played on: the private PostgreSQL, the proxy, the oracle, the workers.
//!
//! Invariant: dropping it ends everything. Must never start a worker that reaches the database beside the proxy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
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
use super::clock::{self, Clocks};
use super::disk::FullDisk;
use super::pooler::Pooler;
use super::reaper;
use super::versions::VersionBefore;
use crate::child::{Process, Program};
use crate::error::DrillError;
use crate::facts;
use crate::faketime;
use crate::fault::Fault;
use crate::history::{self, Event, History};
use crate::proxy::Proxy;
use crate::tail::Tail;

/// Connections: enough for the workers, and soon taken. The log is small, so that a full disk is met soon.
const SETTINGS: [(&str, &str); 3] = [
    ("max_connections", "60"),
    ("min_wal_size", "32MB"),
    ("max_wal_size", "192MB"),
];
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
    /// Before its operation is dispatched: it only keeps its task.
    InHand,
    /// In the call of its operation, after the last look at the lease.
    InTheWindow,
    /// Before its operation is dispatched, with a checkpoint of protocol 2.
    WithNewer,
    /// Never, and it reads and writes protocol 2 too.
    NeverNewer,
}

pub(super) struct Stage {
    pub(super) program: Program,
    /// Cuts what it is told to.
    pub(super) proxy: Proxy,
    /// Before the same server, and cuts nothing: for what must not be cut.
    pub(super) calm: Proxy,
    pub(super) history: History,
    pub(super) workers: Vec<Process>,
    /// Does housekeeping and nothing else.
    pub(super) reaper: Option<Process>,
    /// Told to end, and not waited for.
    pub(super) leaving: Vec<Process>,
    /// Take over what stood at a cut.
    pub(super) takers: Vec<Process>,
    pub(super) admin_url: String,
    /// Through the calm proxy.
    pub(super) direct_url: String,
    pub(super) oracle_url: String,
    pub(super) record: PathBuf,
    pub(super) server: Arc<Server>,
    /// Killed, and kept for its folder, in which the pooler's settings are.
    pub(super) first: Option<Arc<Server>>,
    pub(super) servers: ServerOptions,
    /// What was lost with each promotion.
    pub(super) tails: Vec<Tail>,
    /// What a database whose clock was moved said of it.
    pub(super) clocks: Clocks,
    /// What happened when the log had no room.
    pub(super) disk: FullDisk,
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
    pub(super) faketime: Option<PathBuf>,
    /// How often the server refused a connection while it was exhausted.
    refused: Arc<AtomicU64>,
    began: Instant,
    hears: fn(&str),
    /// How many tasks had not ended when it was looked last, for the submitter.
    pub(super) backlog: Arc<AtomicI64>,
}

impl Stage {
    /// Tells people what is under way, with the seconds since the start.
    pub(super) fn tell(&self, what: &str) {
        (self.hears)(&format!("{:>4} s  {what}", self.began.elapsed().as_secs()));
    }

    pub(super) async fn start(options: &Options) -> Result<Self, DrillError> {
        let faketime = faketime::library();
        let servers = ServerOptions {
            fetch: options.fetch_postgres,
            faketime: faketime.clone(),
        };
        let server = servers.start(None).await?;
        clock::set(&server, faketime.is_some(), 0)?;
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
        let proxy = Proxy::before(socket(&server)).await?;
        let calm = Proxy::before(socket(&server)).await?;
        let disk = FullDisk::try_here(&options.folder)?;
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
            reaper: None,
            leaving: Vec::new(),
            takers: Vec::new(),
            lates: AtomicUsize::new(0),
            pooler: Pooler::start(proxy.port(), server.socket_dir())?,
            pooled: Vec::new(),
            faketime,
            refused: Arc::default(),
            began: Instant::now(),
            hears: options.tell,
            backlog: Arc::default(),
            proxy,
            direct_url: calm.url("aegis_engine", "postgres"),
            calm,
            admin_url,
            oracle_url,
            record,
            server: Arc::new(server),
            first: None,
            servers,
            tails: Vec::new(),
            clocks: Clocks::default(),
            disk,
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
        let kind = if queue == reaper::QUEUE {
            reaper::NAME
        } else {
            "worker-"
        };
        let name = format!("{kind}{}", self.started);
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
            Stops::InHand => words.extend(["--hold-at", "before", "--in-hand"].map(OsString::from)),
            Stops::InTheWindow => words.push("--freeze".into()),
            Stops::WithNewer => {
                words.extend(["--hold-at", "before", "--protocol", "2"].map(OsString::from));
            }
            Stops::NeverNewer => words.extend(["--protocol", "2"].map(OsString::from)),
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
            Fault::WorkerClocks | Fault::DatabaseClock => self.faketime.is_some(),
            Fault::Promotion => self.server.binaries().join("pg_basebackup").exists(),
            Fault::DiskFull => self.disk.can(),
            _ => true,
        }
    }

    /// Sets the wall clocks of all workers of now; false when that cannot be done here.
    pub(super) fn set_worker_clocks(&self, offset_s: i64) -> Result<bool, DrillError> {
        if self.faketime.is_none() {
            return Ok(false);
        }
        for worker in &self.workers {
            faketime::set(&self.clock_of(&worker.name), offset_s * 1000)?;
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

    /// Does this worker reach the database through the pooler?
    pub(super) fn is_pooled(&self, name: &String) -> bool {
        self.pooled.contains(name)
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
        if self.wanted > 0 {
            self.replace_reaper()?;
        }
        Ok(())
    }

    /// Looks how much waits, so that a slow machine is not given more than it can do.
    pub(super) async fn look_at_backlog(&self) {
        if let Ok(admin) = facts::connect(&self.admin_url).await
            && let Ok(count) = facts::waiting(&admin).await
        {
            self.backlog.store(count, Ordering::Relaxed);
        }
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

    pub(super) async fn blocking(
        &self,
        work: impl FnOnce(&Server) -> Result<(), aegis_devpg::Error> + Send + 'static,
    ) -> Result<(), DrillError> {
        self.blocking_with(move |server| Ok(work(server)?)).await
    }

    /// Work on the server that takes its time.
    pub(super) async fn blocking_with(
        &self,
        work: impl FnOnce(&Server) -> Result<(), DrillError> + Send + 'static,
    ) -> Result<(), DrillError> {
        let server = Arc::clone(&self.server);
        spawn_blocking(move || work(&server))
            .await
            .map_err(|error| DrillError::system("wait for PostgreSQL")(error.into()))?
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
            .chain(self.reaper.take())
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
        let all = (self.disk, self.server, self.first);
        spawn_blocking(move || drop(all)).await.ok();
    }
}

/// How each server of a drill is started.
#[derive(Debug, Clone)]
pub(super) struct ServerOptions {
    fetch: bool,
    faketime: Option<PathBuf>,
}

impl ServerOptions {
    /// Starts one: of its own, or a standby of the server with this URL.
    pub(super) async fn start(&self, standby_of: Option<String>) -> Result<Server, DrillError> {
        let variables = self.faketime.iter().flat_map(|library| {
            // Beside its data, so that it is found from there, and copied with them.
            faketime::variables(library, Path::new(clock::FILE))
        });
        let set = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let options = aegis_devpg::Options {
            fetch: self.fetch,
            settings: SETTINGS.into_iter().map(set).collect(),
            standby_of,
            preload: self.faketime.clone(),
            variables: variables
                .filter(|(name, _)| *name != "LD_PRELOAD")
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..aegis_devpg::Options::default()
        };
        let started = spawn_blocking(move || Server::start(&options))
            .await
            .map_err(|error| DrillError::system("start PostgreSQL")(error.into()))??;
        Ok(started)
    }
}

/// Where a server is reached.
pub(super) fn socket(server: &Server) -> PathBuf {
    let name = format!(".s.PGSQL.{}", server.port());
    server.socket_dir().join(name)
}

pub(super) fn with_parent(words: &[OsString]) -> Vec<OsString> {
    let mut all = words.to_vec();
    all.extend(["--parent".into(), std::process::id().to_string().into()]);
    all
}
