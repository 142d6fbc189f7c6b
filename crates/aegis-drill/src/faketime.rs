//! A clock of their own for the workers and the database of a drill: libfaketime, preloaded, reads an offset from a file at each look.
//!
//! Invariants: only the wall clock moves, as on a machine whose clock is set; the file is replaced in one piece. Must never be
//! preloaded into this process.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::DrillError;

const LIBRARY: &str = "libfaketimeMT.so.1";

/// The library, where it is installed.
pub fn library() -> Option<PathBuf> {
    let multiarch = ["x86_64", "aarch64"].map(|one| format!("/usr/lib/{one}-linux-gnu/faketime"));
    let usual = ["/usr/lib/faketime", "/usr/lib64/faketime"].map(str::to_owned);
    multiarch
        .into_iter()
        .chain(usual)
        .map(|folder| Path::new(&folder).join(LIBRARY))
        .find(|path| path.exists())
}

/// What a process is started with to look at this file.
pub fn variables(library: &Path, file: &Path) -> [(&'static str, OsString); 4] {
    [
        ("LD_PRELOAD", library.into()),
        ("FAKETIME_TIMESTAMP_FILE", file.into()),
        // Every process at once, as with a real clock.
        ("FAKETIME_NO_CACHE", "1".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ]
}

/// Sets the clock of whoever looks at this file so far from the machine's.
///
/// # Errors
/// The file cannot be written.
pub fn set(file: &Path, offset_ms: i64) -> Result<(), DrillError> {
    let new = file.with_extension("new");
    let sign = if offset_ms < 0 { '-' } else { '+' };
    let (seconds, rest) = (offset_ms.abs() / 1000, offset_ms.abs() % 1000);
    fs::write(&new, format!("{sign}{seconds}.{rest:03}\n"))
        .map_err(DrillError::file("write", &new))?;
    // The database runs as another user.
    fs::set_permissions(&new, fs::Permissions::from_mode(0o644))
        .map_err(DrillError::file("open for reading", &new))?;
    fs::rename(&new, file).map_err(DrillError::file("write", file))
}

#[cfg(test)]
mod tests {
    //! A real process with another clock.

    use std::process::Command;

    use super::*;

    fn seconds(command: &mut Command) -> i64 {
        let output = command.args(["+%s"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim().parse().unwrap()
    }

    #[test]
    fn a_process_sees_the_clock_of_its_file() {
        let Some(library) = library() else {
            println!("SKIPPED a_process_sees_the_clock_of_its_file: libfaketime is not installed");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a clock");
        for offset_s in [0, 86_400, -3600] {
            set(&file, offset_s * 1000).unwrap();
            let here = seconds(&mut Command::new("date"));
            let there = seconds(Command::new("date").envs(variables(&library, &file)));
            assert!((there - here - offset_s).abs() < 60, "{offset_s}: {there}");
        }
    }
}
