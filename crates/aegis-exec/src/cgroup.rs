//! A cgroup of its own for each handler, where this process may make one: one write ends everything in it.
//!
//! Never needed: without one the process tree is walked. Cgroup v2 only, inside of the cgroup that this process is in.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of the cgroup file system.
#[derive(Debug, Clone)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes one; `None` where that is not possible.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let folder = own()?.join(name);
        fs::create_dir(&folder).ok()?;
        let cgroup = Self(folder);
        if cgroup.0.join("cgroup.kill").exists() {
            return Some(cgroup);
        }
        // A kernel before 5.14.
        cgroup.remove();
        None
    }

    /// One of that name that a supervisor of this process has made.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let folder = own()?.join(name);
        folder.is_dir().then_some(Self(folder))
    }

    /// One that was made by somebody else.
    pub(crate) fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Moves this process into it.
    pub(crate) fn enter(&self) -> bool {
        fs::write(self.0.join("cgroup.procs"), "0").is_ok()
    }

    /// Ends everything in it.
    pub(crate) fn kill(&self) {
        fs::write(self.0.join("cgroup.kill"), "1").ok();
    }

    /// Removes it; possible once everything in it has ended and was waited for.
    pub(crate) fn remove(&self) -> bool {
        fs::remove_dir(&self.0).is_ok()
    }
}

/// The folder of the cgroup that this process is in.
fn own() -> Option<PathBuf> {
    let mount = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    folder_of(&mount, &own)
}

fn folder_of(mountinfo: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root.trim_end_matches('/'))?;
        Some(Path::new(point).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 0:20 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        31 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_folder_is_found_behind_the_mount_point() {
        let at = |mounts, own| folder_of(mounts, own);
        assert_eq!(
            at(MOUNTS, "9:memory:/x\n0::/system.slice/aegis.service\n"),
            Some(PathBuf::from("/sys/fs/cgroup/system.slice/aegis.service"))
        );
        assert_eq!(at(MOUNTS, "0::/\n"), Some(PathBuf::from("/sys/fs/cgroup/")));
        let inner = MOUNTS.replace("0:26 /", "0:26 /docker/1");
        assert_eq!(
            at(&inner, "0::/docker/1/a\n"),
            Some(PathBuf::from("/sys/fs/cgroup/a"))
        );
        assert_eq!(at(&inner, "0::/elsewhere\n"), None);
        assert_eq!(at(MOUNTS, "9:memory:/x\n"), None);
    }
}
