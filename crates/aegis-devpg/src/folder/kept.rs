//! A kept folder: taken or made, locked, and its pid file judged.
//!
//! It is `aegis-postgres` (the mark that it is ours), `lock` (held by the parent), `postgres.log`
//! (its lock is held by every process of the server, so that it is free only when all are gone),
//! `password`, `socket/` and `data/`. A folder without the mark is taken only when it is empty.
//!
//! Root never follows a link that the ordinary user may have put there.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown,
};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

use super::{Place, check_path, folder, room, socket_folder};
use crate::Error;
use crate::pidfile::{Holder, PidFile};
use crate::user::{self, RunAs};

const MARK: &str = "aegis-postgres";
const LOG_BYTES_MAX: u64 = 10 << 20;

/// Removes the data of a kept folder, so that the next start makes new ones. The folder itself, its mark and its log stay.
///
/// # Errors
/// A server or another start uses it, it is not ours, or something of it cannot be removed.
pub fn remove_data(path: &Path) -> Result<(), Error> {
    // Held until the end: nobody starts meanwhile.
    let place = prepare(path)?;
    let password = place.root.join("password");
    match fs::remove_file(&password) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(folder("remove from", &password)(error));
        }
        _ => {}
    }
    let data = place.data();
    match fs::remove_dir_all(&data) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(folder("remove", &data)(error))
        }
        _ => Ok(()),
    }
}

pub(super) fn prepare(path: &Path) -> Result<Place, Error> {
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
    Ok(Place {
        kept: true,
        root,
        socket,
        user,
        _lock: Some(lock),
        log: Some(log),
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
