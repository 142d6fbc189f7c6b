//! A running private server.

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::binaries;
use crate::folder::Place;
use crate::pidfile::PidFile;
use crate::probe::Binaries;
use crate::url;
use crate::user;
use crate::watchdog::{Phase, Watchdog};
use crate::{Durability, Error, Options};

const SUPERUSER: &str = "postgres";
const SOCKET_PORT: u16 = 5432;
/// How often readiness is looked for in the pid file.
const TICK: Duration = Duration::from_millis(5);
/// The script ends a server that does not obey after 20 s.
const STOP_BOUND: Duration = Duration::from_secs(30);

/// A private PostgreSQL. Dropping it ends the server, and so does the end of this process,
/// however that comes.
#[derive(Debug)]
pub struct Server {
    // Before `place`: the server ends first, then the folder's lock goes.
    watchdog: Mutex<Watchdog>,
    place: Place,
    binaries: Binaries,
    port: u16,
    tcp: bool,
    password: Option<String>,
    start_timeout: Duration,
}

impl Server {
    /// Starts a server and returns when it takes connections.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let mut place = Place::prepare(&options.data)?;
        let binaries = binaries::find(
            options.binaries.as_deref(),
            place.major(),
            place.user.as_ref(),
            options.fetch,
            options.lowest_major,
        )?;
        if let Some(data) = place.major().filter(|&data| data != binaries.major) {
            return Err(Error::OtherMajor {
                path: place.root,
                data,
                binaries: binaries.major,
            });
        }
        let initdb = binaries.bin.join("initdb");
        if let Some(user) = place.user.as_ref()
            && !user::passes(Some(user), "-x", &initdb)
        {
            return Err(Error::Closed {
                user: user.name.clone(),
                path: initdb,
            });
        }
        let port = match options.tcp_port {
            Some(port) => free_port(port)?,
            None => SOCKET_PORT,
        };
        let password = match fs::read_to_string(place.root.join("password")) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(_) if place.data().exists() => None,
            Err(_) => Some(new_password()?),
        };
        let log_start = log_length(&place.log_path());
        let log = place.log.take().map_or_else(Stdio::null, Stdio::from);
        let watchdog = Watchdog::spawn(
            place.user.as_ref(),
            &arguments(&place, &binaries, port, options),
            &variables(options),
            password.as_deref().unwrap_or_default(),
            log,
        )?;
        let server = Self {
            watchdog: Mutex::new(watchdog),
            place,
            binaries,
            port,
            tcp: options.tcp_port.is_some(),
            password,
            start_timeout: options.start_timeout,
        };
        server.await_ready(&mut server.lock(), log_start)?;
        Ok(server)
    }

    /// The URL of `database` for `user`, through the socket; for tokio-postgres and libpq alike.
    pub fn url(&self, user: &str, database: &str) -> String {
        url::socket_url(user, database, &self.place.socket, self.port)
    }

    /// The URL of `database` on 127.0.0.1 for the superuser, with its password; None when the
    /// server does not listen there, or the data were made without a password.
    pub fn tcp_url(&self, database: &str) -> Option<String> {
        let password = self.password.as_deref().filter(|_| self.tcp)?;
        Some(url::tcp_url(SUPERUSER, password, database, self.port))
    }

    /// The name of the superuser.
    pub fn superuser(&self) -> &str {
        SUPERUSER
    }

    /// The folder of the socket: only the server's user, and root, can enter it.
    pub fn socket_dir(&self) -> &Path {
        &self.place.socket
    }

    /// The port: of the socket's name, and of 127.0.0.1 when it listens there.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The postmaster's process id; None when it is not running.
    pub fn postmaster_pid(&self) -> Option<i32> {
        match self.lock().phase() {
            Phase::Running(pid) => Some(pid),
            _ => None,
        }
    }

    /// The major version, and what `postgres -V` says.
    pub fn version(&self) -> (u32, &str) {
        (self.binaries.major, &self.binaries.version)
    }

    /// The folder of `postgres`, where `psql` and `pgbench` stand too when they are installed.
    pub fn binaries(&self) -> &Path {
        &self.binaries.bin
    }

    /// PostgreSQL's data folder.
    pub fn data_dir(&self) -> PathBuf {
        self.place.data()
    }

    /// The server's log.
    pub fn log_path(&self) -> PathBuf {
        self.place.log_path()
    }

    /// The ordinary user that the server runs as, when this process is root.
    pub fn run_as(&self) -> Option<&str> {
        self.place.user.as_ref().map(|user| user.name.as_str())
    }

    /// An error, with the end of its log, when the server has ended by itself.
    pub fn check(&self) -> Result<(), Error> {
        match self.lock().phase() {
            Phase::Ended(status) => Err(self.ended("while running", status)),
            Phase::Gone => Err(self.ended("with its watchdog", "killed".to_owned())),
            Phase::Waking | Phase::Initdb | Phase::Running(_) | Phase::Failed(_) => Ok(()),
        }
    }

    /// Stops the server in order, when it runs, and starts it again on the same data.
    pub fn restart(&self) -> Result<(), Error> {
        let mut watchdog = self.lock();
        self.end_postmaster(&mut watchdog, |_, watchdog| watchdog.order("stop"))?;
        let log_start = log_length(&self.log_path());
        Self::start_again(&mut watchdog);
        self.await_ready(&mut watchdog, log_start)
    }

    /// Stops the server in order; [`Server::restart`] starts it again.
    pub fn halt(&self) -> Result<(), Error> {
        let mut watchdog = self.lock();
        self.end_postmaster(&mut watchdog, |_, watchdog| watchdog.order("stop"))
    }

    /// For tests: ends the postmaster by SIGKILL and waits until it is gone. [`Server::restart`]
    /// starts it again, through crash recovery.
    pub fn crash(&self) -> Result<(), Error> {
        let mut watchdog = self.lock();
        self.end_postmaster(&mut watchdog, |pid, _| {
            // Gone already is what was wanted.
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
        })
    }

    /// Ends the server and returns when it is gone: kept data after a checkpoint, temporary data
    /// removed. The same as dropping it.
    pub fn stop(self) {
        drop(self);
    }

    /// Ends the postmaster by `how`, asked again each second: an order can meet the watchdog
    /// between two waits.
    fn end_postmaster(
        &self,
        watchdog: &mut Watchdog,
        mut how: impl FnMut(i32, &mut Watchdog),
    ) -> Result<(), Error> {
        let deadline = Instant::now() + STOP_BOUND;
        while let Phase::Running(pid) = watchdog.phase() {
            how(pid, watchdog);
            let second = Instant::now() + Duration::from_secs(1);
            watchdog.wait(second, STOP_BOUND, |phase| {
                (!matches!(phase, Phase::Running(_))).then_some(())
            });
            if Instant::now() > deadline {
                return Err(self.late("stopped", STOP_BOUND));
            }
        }
        match watchdog.phase() {
            Phase::Gone => Err(self.ended("with its watchdog", "killed".to_owned())),
            _ => Ok(()),
        }
    }

    /// Orders a start and hears it obeyed, or not, which the caller sees at the phase.
    fn start_again(watchdog: &mut Watchdog) {
        let before = watchdog.phase();
        watchdog.order("start");
        let deadline = Instant::now() + STOP_BOUND;
        watchdog.wait(deadline, STOP_BOUND, |phase| {
            (*phase != before).then_some(())
        });
    }

    fn await_ready(&self, watchdog: &mut Watchdog, log_start: u64) -> Result<(), Error> {
        let deadline = Instant::now() + self.start_timeout;
        loop {
            let data = self.place.data();
            let end = watchdog.wait(deadline, TICK, |phase| match phase {
                Phase::Running(pid) => PidFile::read(&data)
                    .is_some_and(|file| file.pid == *pid && file.ready)
                    .then_some(Ok(())),
                Phase::Waking | Phase::Initdb => None,
                Phase::Ended(_) | Phase::Failed(_) | Phase::Gone => Some(Err(phase.clone())),
            });
            match end {
                Some(Ok(())) => return Ok(()),
                None => return Err(self.late("ready", self.start_timeout)),
                Some(Err(Phase::Failed(step))) => {
                    let output = self.log_tail(log_start);
                    return Err(Error::Init {
                        step,
                        output: if output.is_empty() {
                            output
                        } else {
                            format!(":\n{output}")
                        },
                    });
                }
                Some(Err(Phase::Ended(status))) => {
                    let log = self.log_tail(log_start);
                    // Backends of a postmaster that was killed leave a moment after it.
                    if log.contains("pre-existing shared memory block") && Instant::now() < deadline
                    {
                        std::thread::sleep(Duration::from_millis(100));
                        Self::start_again(watchdog);
                        continue;
                    }
                    return Err(Error::Ended {
                        when: "during its start",
                        status,
                        log,
                    });
                }
                Some(Err(_)) => return Err(self.ended("with its watchdog", "killed".to_owned())),
            }
        }
    }

    fn ended(&self, when: &'static str, status: String) -> Error {
        Error::Ended {
            when,
            status,
            log: self.log_tail(0),
        }
    }

    fn late(&self, awaited: &'static str, bound: Duration) -> Error {
        Error::Timeout {
            awaited,
            bound,
            log: self.log_tail(0),
        }
    }

    /// The last lines of the log, at most 4 KiB, none from before `start`.
    fn log_tail(&self, start: u64) -> String {
        let read = || -> std::io::Result<String> {
            let mut log = fs::File::open(self.log_path())?;
            let from = log.metadata()?.len().saturating_sub(4096).max(start);
            log.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            log.take(4096).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
        };
        read().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Watchdog> {
        self.watchdog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_length(log: &Path) -> u64 {
    fs::metadata(log).map_or(0, |log| log.len())
}

fn arguments(place: &Place, binaries: &Binaries, port: u16, options: &Options) -> Vec<OsString> {
    let kind = if place.kept { "kept" } else { "temporary" };
    let mut arguments: Vec<OsString> = vec![
        kind.into(),
        place.root.clone().into(),
        place.socket.clone().into(),
        binaries.bin.join("initdb").into(),
        binaries.bin.join("postgres").into(),
    ];
    let mut set = |name: &str, value: &str| {
        arguments.push("-c".into());
        arguments.push(format!("{name}={value}").into());
    };
    let listen = options.tcp_port.map_or("", |_| "127.0.0.1");
    set("listen_addresses", listen);
    set("port", &port.to_string());
    // Quoted: the value is a list. The folder was made so that it is text.
    let socket = place.socket.to_string_lossy().replace('"', "\"\"");
    set("unix_socket_directories", &format!("\"{socket}\""));
    set("unix_socket_permissions", "0700");
    set("max_connections", "200");
    set("timezone", "UTC");
    set("log_timezone", "UTC");
    set("logging_collector", "off");
    set("log_destination", "stderr");
    if options.durability == Durability::Fast {
        set("fsync", "off");
        set("full_page_writes", "off");
    }
    for (name, value) in &options.settings {
        set(name, value);
    }
    arguments
}

fn variables(options: &Options) -> Vec<(String, OsString)> {
    let standby_of = options.standby_of.clone().unwrap_or_default();
    let preload = options.preload.clone().unwrap_or_default();
    let mut variables = options.variables.clone();
    variables.push(("AEGIS_STANDBY_OF".to_owned(), standby_of.into()));
    variables.push(("AEGIS_PRELOAD".to_owned(), preload.into()));
    variables
}

/// The port itself when it can be listened on, a free one for 0. PostgreSQL takes it a moment
/// later; who comes between makes the start fail with its own words.
fn free_port(port: u16) -> Result<u16, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| Error::Port { port, source })
}

/// 128 bits from the system, in hex.
fn new_password() -> Result<String, Error> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    fs::File::open(path)
        .and_then(|mut random| random.read_exact(&mut bytes))
        .map_err(|source| Error::Folder {
            doing: "read",
            path: path.to_path_buf(),
            source,
        })?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
