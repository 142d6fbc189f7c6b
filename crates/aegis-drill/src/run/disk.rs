//! A full disk: the write-ahead log on a small file system of its own, and a file that takes all the room.
//!
//! Invariants: the log is moved only while the server is stopped in order; the file system goes with the drill however that
//! ends, because its shell waits for the end of a pipe from it; without the right to mount nothing is touched.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use aegis_devpg::Server;
use nix::unistd::geteuid;

use super::breaking::Drill;
use super::stage::Stage;
use crate::error::DrillError;
use crate::facts;

const SCRIPT: &str =
    r#"mount -t tmpfs -o "$2" tmpfs "$1" && echo mounted; cat >/dev/null; umount -l "$1""#;
/// Room for the log beside what is there: some segments.
const ROOM: u64 = 48 << 20;
const BALLAST: &str = "drill.ballast";
const LOOK: Duration = Duration::from_millis(50);
const REFUSED_WITHIN: Duration = Duration::from_secs(20);
/// How long nobody gets anywhere.
const FULL_FOR: Duration = Duration::from_millis(1500);
const STARTS_MAX: usize = 3;

/// Whether a disk can be filled here, and what came of it.
#[derive(Debug, Default)]
pub(super) struct FullDisk {
    can: bool,
    /// Lines of the server's log that say so.
    pub(super) refused: u64,
}

impl FullDisk {
    /// Tries to mount something below this folder.
    pub(super) fn try_here(folder: &Path) -> Result<Self, DrillError> {
        if !geteuid().is_root() {
            return Ok(Self::default());
        }
        let probe = folder.join("probe");
        fs::create_dir(&probe).map_err(DrillError::file("make", &probe))?;
        let can = Mounted::on(&probe, "size=1m").is_some();
        fs::remove_dir(&probe).map_err(DrillError::file("remove", &probe))?;
        Ok(Self { can, refused: 0 })
    }

    pub(super) fn can(&self) -> bool {
        self.can
    }
}

/// A file system of its own, until it is dropped.
struct Mounted {
    shell: Child,
    held: Option<ChildStdin>,
}

impl Mounted {
    /// `None` where that is not allowed.
    fn on(folder: &Path, options: &str) -> Option<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "aegis-drill"])
            .arg(folder)
            .arg(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .ok()?;
        let held = shell.stdin.take();
        let said = shell.stdout.take();
        let mounted = Self { shell, held };
        let mut line = String::new();
        BufReader::new(said?).read_line(&mut line).ok()?;
        (line == "mounted\n").then_some(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.held = None;
        self.shell.wait().ok();
    }
}

impl Drill {
    /// False where nothing can be mounted.
    pub(super) async fn fill_the_disk(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        if !stage.disk.can() {
            return Ok(false);
        }
        let (told, tells) = tokio::sync::oneshot::channel();
        stage
            .blocking_with(move |server| {
                let mounted = move_to_memory(server)?;
                fill(&server.data_dir().join("pg_wal").join(BALLAST))?;
                told.send(mounted).ok();
                Ok(())
            })
            .await?;
        let log = stage.server.log_path();
        let before = refusals(&log);
        let deadline = Instant::now() + REFUSED_WITHIN;
        while refusals(&log) == before && Instant::now() < deadline {
            if let Ok(admin) = facts::connect(&stage.admin_url).await {
                facts::fill_log(&admin).await.ok();
            }
            self.go_on_for(stage, LOOK).await?;
        }
        self.go_on_for(stage, FULL_FOR).await?;
        stage.disk.refused += refusals(&log) - before;
        let mounted = tells.await.ok();
        stage
            .blocking_with(move |server| {
                let ballast = server.data_dir().join("pg_wal").join(BALLAST);
                fs::remove_file(&ballast).map_err(DrillError::file("remove", &ballast))?;
                start_again(server)?;
                move_back(server, mounted)
            })
            .await?;
        Ok(true)
    }
}

/// How often the server said that there is no room.
fn refusals(log: &Path) -> u64 {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.matches("No space left on device").count() as u64
}

/// A server that met a full disk in its recovery has ended, or is about to.
fn start_again(server: &Server) -> Result<(), DrillError> {
    let mut started = server.restart();
    for _ in 1..STARTS_MAX {
        if started.is_ok() {
            break;
        }
        started = server.restart();
    }
    Ok(started?)
}

fn move_to_memory(server: &Server) -> Result<Mounted, DrillError> {
    server.halt()?;
    let (log, aside) = places(server);
    let owner = fs::metadata(&log).map_err(DrillError::file("look at", &log))?;
    fs::rename(&log, &aside).map_err(DrillError::file("move", &log))?;
    fs::create_dir(&log).map_err(DrillError::file("make", &log))?;
    let options = format!(
        "size={},mode=0700,uid={},gid={}",
        size(&aside)? + ROOM,
        owner.uid(),
        owner.gid()
    );
    let mounted = Mounted::on(&log, &options).ok_or_else(|| DrillError::Child {
        name: "the mount".to_owned(),
        why: "it was possible before".to_owned(),
    })?;
    copy(&aside, &log)?;
    server.restart()?;
    Ok(mounted)
}

fn move_back(server: &Server, mounted: Option<Mounted>) -> Result<(), DrillError> {
    server.halt()?;
    let (log, aside) = places(server);
    fs::remove_dir_all(&aside).map_err(DrillError::file("remove", &aside))?;
    copy(&log, &aside)?;
    drop(mounted);
    fs::remove_dir(&log).map_err(DrillError::file("remove", &log))?;
    fs::rename(&aside, &log).map_err(DrillError::file("move", &aside))?;
    Ok(server.restart()?)
}

/// The log, and where it waits meanwhile: on the same file system, in the folder that goes with the server.
fn places(server: &Server) -> (PathBuf, PathBuf) {
    let data = server.data_dir();
    (data.join("pg_wal"), data.with_file_name("pg_wal.aside"))
}

fn size(folder: &Path) -> Result<u64, DrillError> {
    let mut all = 0;
    for entry in fs::read_dir(folder).map_err(DrillError::file("read", folder))? {
        let entry = entry.map_err(DrillError::file("read", folder))?;
        all += entry.metadata().map_or(0, |one| one.len());
    }
    Ok(all)
}

/// With owners and modes.
fn copy(from: &Path, to: &Path) -> Result<(), DrillError> {
    let copied = Command::new("cp")
        .args(["-a", "-T"])
        .args([from, to])
        .stdin(Stdio::null())
        .status()
        .map_err(DrillError::file("copy", from))?;
    if copied.success() {
        return Ok(());
    }
    Err(DrillError::Child {
        name: "cp".to_owned(),
        why: format!("{} was not copied", from.display()),
    })
}

/// Takes all the room there is.
fn fill(path: &Path) -> Result<(), DrillError> {
    let mut file = fs::File::create(path).map_err(DrillError::file("make", path))?;
    let zeros = vec![0; 64 << 10];
    for piece in [zeros.len(), 4096, 1] {
        while file.write_all(&zeros[..piece]).is_ok() {}
    }
    Ok(())
}
