//! The files of the repository as checks see them.
//!
//! Invariant: what git ignores is not seen; what is new and not yet added is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::rust::RustFile;

/// A snapshot. Paths are relative to the root, with `/`.
pub(super) struct Tree {
    /// `None` for what is not UTF-8.
    files: BTreeMap<String, Option<String>>,
    folders: BTreeSet<String>,
    rust: Vec<RustFile>,
}

impl Tree {
    /// Reads the files that git knows or would take.
    pub(super) fn load(root: &Path) -> anyhow::Result<Self> {
        let output = Command::new("git")
            .arg("-C")
            .arg(root)
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .output()
            .context("cannot run git")?;
        if !output.status.success() {
            bail!(
                "git ls-files: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let mut files = BTreeMap::new();
        for path in String::from_utf8(output.stdout)?.split_terminator('\0') {
            // Listed, but deleted and not yet committed: not there.
            if let Ok(bytes) = std::fs::read(root.join(path)) {
                files.insert(path.to_owned(), String::from_utf8(bytes).ok());
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
