//! The files of the repository as checks see them.
//!
//! Invariant: what git ignores is not seen; what is new and not yet added is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::rust::RustFile;

/// What is no part of the repository, should git not be there to say so.
const LEFT_BEHIND: [&str; 3] = [".git", "target", ".aegis"];

/// A snapshot. Paths are relative to the root, with `/`.
pub(super) struct Tree {
    /// `None` for what is not UTF-8.
    files: BTreeMap<String, Option<String>>,
    folders: BTreeSet<String>,
    rust: Vec<RustFile>,
}

impl Tree {
    /// Reads the files that git knows or would take; without git, all but what builds leave behind.
    pub(super) fn load(root: &Path) -> anyhow::Result<Self> {
        let paths = match listed_by_git(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        let mut files = BTreeMap::new();
        for path in paths {
            // Listed, but deleted and not yet committed: not there.
            if let Ok(bytes) = std::fs::read(root.join(&path)) {
                files.insert(path, String::from_utf8(bytes).ok());
            }
        }
        Ok(Self::new(files))
    }

    /// A tree for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self::new(
            files
                .iter()
                .map(|&(path, text)| (path.into(), Some(text.into())))
                .collect(),
        )
    }

    fn new(files: BTreeMap<String, Option<String>>) -> Self {
        let folders = files
            .keys()
            .flat_map(|path| path.match_indices('/').map(|(at, _)| path[..at].to_owned()))
            .collect();
        let rust = files
            .iter()
            .filter(|(path, _)| has_extension(path, "rs"))
            .filter_map(|(path, text)| Some(RustFile::new(path, text.as_deref()?)))
            .collect();
        Self {
            files,
            folders,
            rust,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether a file or folder is there.
    pub(super) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty() || self.files.contains_key(path) || self.folders.contains(path)
    }

    /// The text of a file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// All texts with their paths.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Texts of files with this extension.
    pub(super) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts()
            .filter(move |(path, _)| has_extension(path, extension))
    }

    pub(super) fn rust(&self) -> &[RustFile] {
        &self.rust
    }

    /// Names of all functions; with `tests`, of those that are tests only.
    pub(super) fn functions(&self, tests: bool) -> BTreeSet<&str> {
        let all = self.rust.iter().flat_map(RustFile::functions);
        all.filter(|function| function.is_test || !tests)
            .map(|function| function.name.as_str())
            .collect()
    }
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    // CI may run as another user than the one who owns the checkout.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "-C"])
        .arg(root)
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let paths = String::from_utf8(output.stdout).ok()?;
    Some(paths.split_terminator('\0').map(str::to_owned).collect())
}

fn walked(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
            let kind = entry
                .file_type()
                .with_context(|| format!("cannot read {}", entry.path().display()))?;
            let path = entry.path();
            if kind.is_dir() && !LEFT_BEHIND.iter().any(|name| path == root.join(name)) {
                folders.push(path);
            } else if kind.is_file() {
                let relative = path.strip_prefix(root).ok().and_then(Path::to_str);
                paths.extend(relative.map(str::to_owned));
            }
        }
    }
    Ok(paths)
}

/// Whether `path` ends in `.extension`.
pub(super) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|found| found == extension)
}

/// Whether a generator makes this file.
pub(super) fn is_generated(path: &str) -> bool {
    path.contains("/src/generated/")
}

#[cfg(test)]
mod tests {
    //! With git and without.

    use std::fs;
    use std::process::Command;

    use super::Tree;

    fn git(folder: &std::path::Path, args: &[&str]) {
        assert!(
            Command::new("git")
                .arg("-C")
                .arg(folder)
                .args(args)
                .status()
                .unwrap()
                .success()
        );
    }

    #[test]
    fn new_files_are_seen_and_ignored_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [
            ("a/b.rs", "//! B.\n"),
            ("target/c.rs", ""),
            ("d.log", "\u{fe}"),
            (".gitignore", "*.log\n/target\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        fs::write(root.join("e.bin"), [0xff]).unwrap();

        let walked = Tree::load(root).unwrap();
        assert!(walked.exists("a/b.rs") && walked.exists("a/") && walked.exists("d.log"));
        assert!(!walked.exists("target/c.rs") && !walked.exists("a/b"));

        git(root, &["init", "--quiet"]);
        git(root, &["add", "a/b.rs"]);
        let listed = Tree::load(root).unwrap();
        assert!(
            listed.exists("a/b.rs") && listed.exists("e.bin") && listed.text("e.bin").is_none()
        );
        assert!(!listed.exists("d.log") && !listed.exists("target"));

        fs::remove_file(root.join("a/b.rs")).unwrap();
        assert!(
            !Tree::load(root).unwrap().exists("a/b.rs"),
            "deleted, and not yet committed"
        );
    }
}
