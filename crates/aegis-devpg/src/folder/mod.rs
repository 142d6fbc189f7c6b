//! Where a server's files live: a temporary folder, or a kept one.
//!
//! A temporary folder is only named here: the watchdog makes and removes it. The socket's folder
//! is short enough for a socket, wherever the data are.

mod dev;
mod kept;

pub use dev::{DevFolder, default_dev_folder};
pub use kept::remove_data;

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use crate::user::{self, RunAs};
use crate::{Data, Error};

/// A new cluster takes about 40 MiB; less than this is not worth a start.
const NEEDED_MIB: u64 = 64;
/// `sun_path` less its final NUL, on Linux; other systems have less.
const SOCKET_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// As long as a socket's own name can be.
const SOCKET_NAME: &str = "/.s.PGSQL.65535";

/// The folders of one server.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) kept: bool,
    pub(crate) root: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) user: Option<RunAs>,
    /// Held until the server ends, by being here. None when temporary.
    pub(crate) _lock: Option<File>,
    /// The locked log, for the watchdog to hand down. None when temporary.
    pub(crate) log: Option<File>,
}

impl Place {
    pub(crate) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.root.join("postgres.log")
    }

    /// The major that made the data, when there are some.
    pub(crate) fn major(&self) -> Option<u32> {
        let text = fs::read_to_string(self.data().join("PG_VERSION")).ok()?;
        text.trim().parse().ok()
    }

    pub(crate) fn prepare(data: &Data) -> Result<Self, Error> {
        match data {
            Data::Temporary => Self::temporary(),
            Data::Kept(root) => kept::prepare(root),
        }
    }

    fn temporary() -> Result<Self, Error> {
        let user = user::choose(None)?;
        let base = temporary_base(user.as_ref(), usize::MAX)?;
        room(&base)?;
        let root = base.join(random_name());
        let socket = socket_folder(&root, user.as_ref())?;
        Ok(Self {
            kept: false,
            root,
            socket,
            user,
            _lock: None,
            log: None,
        })
    }
}

fn folder(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::Folder {
        doing,
        path,
        source,
    }
}

fn check_path(root: &Path) -> Result<(), Error> {
    let bytes = root.as_os_str().as_bytes();
    let why = if bytes.contains(&b'\n') {
        "it holds a line break, which PostgreSQL's pid file cannot"
    } else if bytes.len() > 900 {
        "it is longer than 900 bytes, and PostgreSQL's limit is 1023 with its own names"
    } else {
        return Ok(());
    };
    Err(Error::BadPath {
        path: root.to_path_buf(),
        why,
    })
}

fn room(path: &Path) -> Result<(), Error> {
    let stat = statvfs(path)
        .map_err(io::Error::from)
        .map_err(folder("read", path))?;
    #[expect(
        clippy::useless_conversion,
        reason = "these are u32 on macOS and u64 on Linux"
    )]
    let free_mib =
        u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size())) >> 20;
    if free_mib < NEEDED_MIB {
        return Err(Error::NoSpace {
            path: path.to_path_buf(),
            free_mib,
            needed_mib: NEEDED_MIB,
        });
    }
    Ok(())
}

/// A name that no other run takes. mkdir is exclusive: who guesses it can only make a start fail.
fn random_name() -> String {
    let number = RandomState::new().build_hasher().finish();
    format!("aegis-pg-{number:016x}")
}

/// The socket's folder: inside `root` when the path is short enough for a socket, else beside
/// other temporary folders.
fn socket_folder(root: &Path, user: Option<&RunAs>) -> Result<PathBuf, Error> {
    let inside = root.join("socket");
    // A client reads the folder out of a URL, as text.
    if fits(&inside) && inside.to_str().is_some() {
        return Ok(inside);
    }
    let room_for_name = SOCKET_PATH_BYTES - SOCKET_NAME.len() - random_name().len() - 1;
    Ok(temporary_base(user, room_for_name)?.join(random_name()))
}

fn fits(socket: &Path) -> bool {
    socket.as_os_str().len() + SOCKET_NAME.len() <= SOCKET_PATH_BYTES
}

/// The first folder for temporary files that `user` can write in and whose path has at most
/// `bytes_max` bytes.
fn temporary_base(user: Option<&RunAs>, bytes_max: usize) -> Result<PathBuf, Error> {
    let wished = std::env::temp_dir();
    let wished = std::path::absolute(&wished).unwrap_or(wished);
    [wished.clone(), "/tmp".into(), "/var/tmp".into()]
        .into_iter()
        .filter(|base| base.as_os_str().len() <= bytes_max && check_path(base).is_ok())
        .find(|base| {
            ["-w", "-x"]
                .iter()
                .all(|flag| user::passes(user, flag, base))
        })
        .ok_or_else(|| {
            let source = io::Error::from(io::ErrorKind::PermissionDenied);
            folder("make a temporary folder in", &wished)(source)
        })
}
