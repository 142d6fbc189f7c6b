//! What a caller can ask of a private server. Plain data, no checks here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Where the data live and how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// In a folder of its own, removed at the end, however the parent ends.
    #[default]
    Temporary,
    /// In this folder, made when it does not exist, kept between starts. One server at a time.
    Kept(PathBuf),
}

/// What a crash of the machine may cost. A crash of a process costs nothing in either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// PostgreSQL's own defaults.
    #[default]
    Durable,
    /// `fsync` and `full_page_writes` off: for tests. A commit still waits until its WAL is written, if not to the disk.
    Fast,
}

/// How to start a [`Server`](crate::Server).
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the data live.
    pub data: Data,
    /// What a crash of the machine may cost.
    pub durability: Durability,
    /// Listen on 127.0.0.1 too, at this port; 0 takes a free one. None: the socket only.
    /// TCP asks for a password, see [`Server::tcp_url`](crate::Server::tcp_url).
    pub tcp_port: Option<u16>,
    /// The folder with `postgres` and `initdb`. None: the newest major on the machine.
    pub binaries: Option<PathBuf>,
    /// The lowest major that is taken: what Aegis runs on, unless the server is there to be looked at.
    pub lowest_major: u32,
    /// Settings as in `postgresql.conf`; they win over the ones of this crate.
    pub settings: Vec<(String, String)>,
    /// Fetch pinned binaries when the machine has none.
    pub fetch: bool,
    /// How long initdb, or the copy, and then the start, may take.
    pub start_timeout: Duration,
    /// New data are not initdb's: they are copied by `pg_basebackup` from the server with this URL, and follow it as a hot
    /// standby until they are promoted.
    pub standby_of: Option<String>,
    /// A library that is preloaded into the server, and into nothing else.
    pub preload: Option<PathBuf>,
    /// Variables in the server's environment.
    pub variables: Vec<(String, OsString)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: Data::Temporary,
            durability: Durability::Durable,
            tcp_port: None,
            binaries: None,
            lowest_major: crate::LOWEST_MAJOR,
            settings: Vec::new(),
            fetch: false,
            start_timeout: Duration::from_mins(2),
            standby_of: None,
            preload: None,
            variables: Vec::new(),
        }
    }
}

impl Options {
    /// A throw-away server that does not wait for the disk: for tests.
    pub fn for_tests() -> Self {
        Self {
            durability: Durability::Fast,
            ..Self::default()
        }
    }
}
