//! Where a server's files live: a temporary folder, or a kept one with its locks.
//!
//! A kept folder is `aegis-postgres` (the mark that it is ours), `lock` (held by the parent),
//! `postgres.log` (its lock is held by every process of the server, so that it is free only when
//! all are gone), `password`, `socket/` and `data/`. A folder without the mark is taken only when
//! it is empty.
//!
//! Root never follows a link that the ordinary user may have put there.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown,
};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use crate::pidfile::{Holder, PidFile};
use crate::user::{self, RunAs};
use crate::{Data, Error};

/// A new cluster takes about 40 MiB; less than this is not worth a start.
const NEEDED_MIB: u64 = 64;
/// `sun_path` less its final NUL, on Linux; other systems have less.
const SOCKET_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };
/// As long as a socket's own name can be, lock file included.
const SOCKET_NAME: &str = "/.s.PGSQL.65535";
const MARK: &str = "aegis-postgres";
const LOG_BYTES_MAX: u64 = 10 << 20;

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
            Data::Kept(root) => Self::kept(root),
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

    fn kept(path: &Path) -> Result<Self, Error> {
        let root = std::path::absolute(path).map_err(folder("find", path))?;
        check_path(&root)?;
        let owner = fs::metadata(&root).ok().map(|root| root.uid());
        let user = user::choose(owner)?;
        take(&root, user.as_ref())?;
        let data = root.join("data");
        let lock = open(&root.join("lock"), user.as_ref())?;
        lock_parent(&lock, &root, &data)?;
        let log = lock_family(&root, user.as_ref(), &data)?;
        set_stale_aside(&root, &data)?;
        if !data.exists() {
            room(&root)?;
        }
        let socket = socket_folder(&root, user.as_ref())?;
        Ok(Self {
            kept: true,
            root,
            socket,
            user,
            _lock: Some(lock),
            log: Some(log),
        })
    }
}

/// Where `aegis dev` keeps its data, and why there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevFolder {
    /// The folder, for [`Data::Kept`]. It may not exist yet.
    pub path: PathBuf,
    /// Set when it is not the caller's own state folder: one sentence for people.
    pub note: Option<String>,
}

/// The folder for kept development data: `aegis/dev/postgres` in the user's state folder; or,
/// when that is closed to the ordinary user that root drops to, a folder of that user.
pub fn default_dev_folder() -> Result<DevFolder, Error> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|state| state.is_absolute())
        .or_else(|| home.map(|home| home.join(".local/state")));
    let own = state.map(|state| state.join("aegis/dev/postgres"));
    let owner = own.as_ref().and_then(|own| fs::metadata(own).ok());
    let Some(user) = user::choose(owner.map(|own| own.uid()))? else {
        let path = own.unwrap_or_else(|| std::env::temp_dir().join("aegis-dev-postgres"));
        return Ok(DevFolder { path, note: None });
    };
    if let Some(own) = own.filter(|own| user::reaches(&user, own)) {
        return Ok(DevFolder {
            path: own,
            note: None,
        });
    }
    let path = if user.home.is_absolute() && user::passes(Some(&user), "-w", &user.home) {
        user.home.join("aegis/dev/postgres")
    } else {
        PathBuf::from("/var/lib/aegis/dev").join(&user.name)
    };
    let note = format!(
        "PostgreSQL runs as `{}`, which cannot enter the state folder of root: its data are in {}",
        user.name,
        path.display()
    );
    Ok(DevFolder {
        path,
        note: Some(note),
    })
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

/// Makes the folder ours: made when it is not there, taken when it is empty, refused when it
/// holds something else, and in each case open to `user` and nobody else.
fn take(root: &Path, user: Option<&RunAs>) -> Result<(), Error> {
    fs::create_dir_all(root.parent().unwrap_or(root)).map_err(folder("make", root))?;
    match DirBuilder::new().mode(0o700).create(root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(folder("make", root)(error));
        }
        _ => {}
    }
    let owner = fs::metadata(root).map_err(folder("read", root))?.uid();
    if user.is_none() && owner != geteuid().as_raw() {
        return Err(Error::NotYours {
            path: root.to_path_buf(),
            owner: user::name_of(owner),
        });
    }
    let mark = root.join(MARK);
    if !mark.exists() {
        let mut entries = fs::read_dir(root).map_err(folder("read", root))?;
        if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != "lost+found")) {
            return Err(Error::NotOurs {
                path: root.to_path_buf(),
            });
        }
        if let Some(user) = user {
            chown(root, Some(user.uid), Some(user.gid)).map_err(folder("hand over", root))?;
        }
        fs::set_permissions(root, Permissions::from_mode(0o700))
            .map_err(folder("close to others", root))?;
    }
    if let Some(user) = user
        && !user::passes(Some(user), "-x", root)
    {
        return Err(Error::Closed {
            user: user.name.clone(),
            path: root.to_path_buf(),
        });
    }
    open(&mark, user).map(drop)
}

/// Opens a file of the folder for writing, made for `user` when it is not there.
fn open(path: &Path, user: Option<&RunAs>) -> Result<File, Error> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)
        .map_err(folder("write", path))?;
    if let Some(user) = user {
        fchown(&file, Some(user.uid), Some(user.gid)).map_err(folder("hand over", path))?;
    }
    Ok(file)
}

/// The lock of the process that uses the folder. A process that is being started by another
/// thread may hold a copy of it for a moment, so a refusal is not believed at once.
fn lock_parent(lock: &File, root: &Path, data: &Path) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_secs(1);
    while !try_lock(lock, root)? {
        let running = PidFile::read(data).filter(|pid| pid.holder(data) == Holder::Postgres);
        if running.as_ref().is_some_and(|pid| pid.ready) || Instant::now() > deadline {
            return Err(already(root, running));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The lock that the processes of a server share: when its parent was killed, its watchdog may
/// still be ending it.
fn lock_family(root: &Path, user: Option<&RunAs>, data: &Path) -> Result<File, Error> {
    let path = root.join("postgres.log");
    let log = open(&path, user)?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while !try_lock(&log, root)? {
        if Instant::now() > deadline {
            return Err(already(root, PidFile::read(data)));
        }
        thread::sleep(Duration::from_millis(20));
    }
    if log.metadata().is_ok_and(|log| log.len() < LOG_BYTES_MAX) {
        return Ok(log);
    }
    fs::rename(&path, root.join("postgres.log.1")).map_err(folder("rename", &path))?;
    let log = open(&path, user)?;
    if try_lock(&log, root)? {
        return Ok(log);
    }
    Err(already(root, PidFile::read(data)))
}

fn try_lock(file: &File, root: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(folder("lock", root)(error)),
    }
}

fn already(root: &Path, running: Option<PidFile>) -> Error {
    Error::AlreadyRunning {
        path: root.to_path_buf(),
        pid: running.as_ref().map(|pid| pid.pid),
        url: running.map_or_else(
            || "it is still starting".to_owned(),
            |running| running.url(),
        ),
    }
}

/// With both locks held, a pid file tells of a server that was started by other means, or of one
/// that was lost. PostgreSQL itself removes the file of a dead process, but not one whose number
/// another process of the same user has now: that one is renamed, and only when it is proved.
fn set_stale_aside(root: &Path, data: &Path) -> Result<(), Error> {
    let Some(pid) = PidFile::read(data) else {
        return Ok(());
    };
    match pid.holder(data) {
        Holder::Dead => Ok(()),
        Holder::Postgres => Err(already(root, Some(pid))),
        Holder::Other => {
            let file = data.join("postmaster.pid");
            fs::rename(&file, data.join("postmaster.pid.stale")).map_err(folder("rename", &file))
        }
    }
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
