//! What can go wrong with a private server, in words that say what to do next.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a private server could not be started, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing usable on the machine.
    #[error(
        "no PostgreSQL {lowest} or newer on this machine (looked in {looked}){refused}. Install one \
         (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; macOS: \
         brew install postgresql@18), or set AEGIS_PG_BIN to the folder that holds postgres and \
         initdb, or let Aegis fetch one with --fetch-postgres"
    )]
    NoBinaries {
        /// The lowest major that would do.
        lowest: u32,
        /// Where it was looked for.
        looked: String,
        /// What was found and why it does not do, empty or starting with `; `.
        refused: String,
    },
    /// The binaries that were asked for do not do.
    #[error("the PostgreSQL binaries in {} cannot be used: {why}", path.display())]
    UnusableBinaries {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Root, and nobody to drop to.
    #[error(
        "PostgreSQL must not run as root, and this machine has neither a user `postgres` nor \
         `nobody` to drop to: make one (useradd --system postgres), or run as an ordinary user"
    )]
    NoOrdinaryUser,
    /// The user that the server runs as cannot get at a path.
    #[error(
        "the user `{user}`, that PostgreSQL runs as since it must not run as root, cannot reach \
         {}: choose a folder that is open to it, or run as an ordinary user", path.display()
    )]
    Closed {
        /// Who.
        user: String,
        /// What.
        path: PathBuf,
    },
    /// A folder could not be made or read.
    #[error("cannot {doing} {}", path.display())]
    Folder {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The folder holds something that is not ours.
    #[error(
        "{} is not empty and was not made by aegis: choose a new or an empty folder", path.display()
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// The folder belongs to another user.
    #[error("{} belongs to the user {owner}: run as that user, or choose another folder", path.display())]
    NotYours {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: String,
    },
    /// A path that PostgreSQL's files cannot hold.
    #[error("the path {} cannot be used for data: {why}", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Too little space for a new cluster.
    #[error(
        "{} has {free_mib} MiB free, and new data need {needed_mib} MiB: free some, or choose another folder",
        path.display()
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// What is free there.
        free_mib: u64,
        /// What is needed.
        needed_mib: u64,
    },
    /// A second start beside a running server.
    #[error("a PostgreSQL already runs on {}{}: use it ({url}), or end it first", path.display(),
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    AlreadyRunning {
        /// The folder.
        path: PathBuf,
        /// The running postmaster, when it is known yet.
        pid: Option<i32>,
        /// How to reach it.
        url: String,
    },
    /// Data of another major than the binaries.
    #[error(
        "the data in {} were made by PostgreSQL {data}, and the binaries here are {binaries}: \
         install PostgreSQL {data}, or start with another folder", path.display()
    )]
    OtherMajor {
        /// The folder.
        path: PathBuf,
        /// The major that made the data.
        data: u32,
        /// The major of the binaries.
        binaries: u32,
    },
    /// The TCP port is in use.
    #[error("port {port} on 127.0.0.1 cannot be listened on: choose another, or 0 for a free one")]
    Port {
        /// The port.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// The watchdog could not be started.
    #[error("cannot start the watchdog of the private PostgreSQL (`sh`)")]
    Watchdog {
        /// Why not.
        source: io::Error,
    },
    /// Making the data failed.
    #[error("PostgreSQL's data could not be made: {step} failed{output}")]
    Init {
        /// Which step.
        step: String,
        /// What was said, empty or starting with `:`.
        output: String,
    },
    /// The server ended during the start, or later by itself.
    #[error("PostgreSQL ended by itself {when} ({status}); the end of its log:\n{log}")]
    Ended {
        /// In which phase.
        when: &'static str,
        /// Its exit status.
        status: String,
        /// The last lines of its log.
        log: String,
    },
    /// A bound was reached.
    #[error("PostgreSQL was not {awaited} within {} s; the end of its log:\n{log}", bound.as_secs())]
    Timeout {
        /// What was waited for.
        awaited: &'static str,
        /// How long.
        bound: Duration,
        /// The last lines of its log.
        log: String,
    },
    /// No pinned binaries for this kind of machine.
    #[error(
        "no prebuilt PostgreSQL is pinned for {platform}: install PostgreSQL 15 or newer with the \
         machine's own packages, or set AEGIS_PG_BIN"
    )]
    NoPin {
        /// Operating system and processor.
        platform: String,
    },
    /// The binaries could not be downloaded.
    #[error(
        "cannot fetch PostgreSQL ({artifact}) from Maven Central{tried}. Install PostgreSQL 15 or newer, \
         or set AEGIS_MAVEN_URL to a mirror that this machine reaches"
    )]
    Download {
        /// What was asked for.
        artifact: String,
        /// Each tool with what it said, starting with `: `.
        tried: String,
    },
    /// What was downloaded is not what is pinned.
    #[error(
        "what was fetched for {artifact} is not what Aegis pins: its SHA-256 is {found} and must be \
         {pinned}. Nothing of it was kept or run: the mirror or the way to it alters files"
    )]
    Checksum {
        /// What was asked for.
        artifact: String,
        /// The hash in the source.
        pinned: String,
        /// The hash of what came.
        found: String,
    },
}
