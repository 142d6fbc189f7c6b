//! Who the server runs as. Never root: root drops to an ordinary user.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{Uid, User, geteuid};

use crate::Error;

/// An ordinary user that root drops to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunAs {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: PathBuf,
}

impl RunAs {
    fn of(user: User) -> Self {
        Self {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            home: user.dir,
        }
    }
}

/// Whom to drop to: nobody when this process is an ordinary user's already; else the owner of
/// `folder` when that is an ordinary user, else `postgres`, else `nobody`.
pub(crate) fn choose(folder_owner: Option<u32>) -> Result<Option<RunAs>, Error> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let owner = folder_owner
        .filter(|&uid| uid != 0)
        .and_then(|uid| User::from_uid(Uid::from_raw(uid)).ok().flatten());
    owner
        .into_iter()
        .chain(["postgres", "nobody"].into_iter().filter_map(by_name))
        .find(|user| !user.uid.is_root() && user.gid.as_raw() != 0)
        .map(|user| Some(RunAs::of(user)))
        .ok_or(Error::NoOrdinaryUser)
}

fn by_name(name: &str) -> Option<User> {
    User::from_name(name).ok().flatten()
}

/// The name of a user for people, its number when it has none.
pub(crate) fn name_of(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid))
        .ok()
        .flatten()
        .map_or_else(|| uid.to_string(), |user| user.name)
}

/// A command that runs as `user`, with that user's groups only, in `/`, with a small environment.
pub(crate) fn command(program: impl AsRef<OsStr>, user: Option<&RunAs>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env_clear().env("LC_ALL", "C");
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/bin:/bin");
    command.env("PATH", path);
    if let Some(libraries) = std::env::var_os("LD_LIBRARY_PATH") {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    if let Some(user) = user {
        // With a uid and no groups, std drops root's supplementary groups too.
        command.uid(user.uid).gid(user.gid).env("HOME", &user.home);
    }
    command
}

/// Whether `user` passes `test FLAG path`: asked of the system, since modes alone do not tell.
pub(crate) fn passes(user: Option<&RunAs>, flag: &str, path: &Path) -> bool {
    command("sh", user)
        .args(["-c", "test \"$1\" \"$2\"", "sh", flag])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Whether `user` can enter the nearest folder of `path` that exists.
pub(crate) fn reaches(user: &RunAs, path: &Path) -> bool {
    path.ancestors()
        .find(|ancestor| ancestor.exists())
        .is_some_and(|ancestor| passes(Some(user), "-x", ancestor))
}
