//! What these tests share: queries over a URL, folders, and looking at processes from outside.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tokio_postgres::NoTls;

/// Runs one statement on a connection of its own and gives the first column of the first row.
pub(crate) fn ask(url: &str, sql: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .map_err(|error| format!("{error:?}"))?;
        let connection = tokio::spawn(connection);
        let rows = client
            .simple_query(sql)
            .await
            .map_err(|error| format!("{error:?}"))?;
        drop(client);
        connection.await.unwrap().unwrap();
        let first = rows.into_iter().find_map(|row| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(first.unwrap_or_default())
    })
}

/// Waits until `holds` says so; panics with `what` after `bound_s` seconds.
pub(crate) fn eventually(what: &str, bound_s: u64, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(bound_s);
    while !holds() {
        assert!(Instant::now() < deadline, "not within {bound_s} s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes whose command line or working folder names `path`, as `pid: command line`.
pub(crate) fn processes_of(path: &Path) -> Vec<String> {
    let needle = path.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.parse::<u32>().is_err() || name == std::process::id().to_string() {
            continue;
        }
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let cwd = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if line.contains(needle) || cwd.to_string_lossy().contains(needle) {
            let start = line.len().saturating_sub(200);
            found.push(format!("{name}: {}", line.get(start..).unwrap_or(&line)));
        }
    }
    found
}

/// A folder for temporary folders, open to every user as `/tmp` is. Short, since `/tmp` is.
pub(crate) fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    folder
}

/// The one entry of `folder`, when there is one.
pub(crate) fn only_entry(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).unwrap();
    let first = entries.next()?.unwrap().path();
    Some(first)
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// Whether this is root; if not, says that `test` is skipped.
pub(crate) fn root_or_skip(test: &str, why: &str) -> bool {
    if !geteuid().is_root() {
        skipped(test, why);
    }
    geteuid().is_root()
}

/// `SKIPPED name: reason`, past the harness's capture. (The test kit depends on this crate.)
pub(crate) fn skipped(test: &str, reason: &str) {
    use std::io::Write as _;
    let line = format!("SKIPPED {test}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// A file system of its own, unmounted at the end.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// A tmpfs on `folder`; None, and a word, where this process may not mount.
    pub(crate) fn tmpfs(test: &str, folder: &Path, options: &str) -> Option<Self> {
        if !root_or_skip(test, "mounting needs root") {
            return None;
        }
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder)
            .output()
            .unwrap();
        if !mount.status.success() {
            skipped(test, &String::from_utf8_lossy(&mount.stderr));
            return None;
        }
        Some(Self(folder.to_path_buf()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().ok();
    }
}
