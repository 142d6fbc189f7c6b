//! The bytes of a folder of changes, read once: from the disk, or built into a program.
//!
//! Invariants: names are relative, with `/`; what is read is bounded; what cannot be read is an error and not left out.
//!
//! Never: a file outside of the folder.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use super::problem::Problem;

/// Largest file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Most files of a folder of changes.
const FILES_MAX: usize = 100_000;

/// The files of a folder of changes.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// How messages call the folder.
    root: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Files {
    /// Files that are built into a program: `(name, bytes)`, such as `("20261129T1030_a/change.toml", …)`.
    pub fn embedded<'a>(root: &str, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
            .collect();
        Self {
            root: root.to_owned(),
            files,
        }
    }

    /// Reads a folder and the folders in it.
    pub fn read(folder: &Path) -> Result<Self, Problem> {
        let root = folder.display().to_string();
        let refuse = |what: String| {
            Problem::of_file(
                &root,
                what,
                "name the folder with migrations.lock by --dir, or make a change in it with `aegis migrate new NAME`",
            )
        };
        match std::fs::metadata(folder) {
            Err(error) => return Err(refuse(format!("the folder cannot be read: {error}"))),
            Ok(found) if !found.is_dir() => return Err(refuse("this is no folder".to_owned())),
            Ok(_) => {}
        }
        let mut files = Self {
            root: root.clone(),
            files: BTreeMap::new(),
        };
        for (name, is_folder) in entries(folder)? {
            let path = folder.join(&name);
            if !is_folder {
                files.take(&path, name)?;
                continue;
            }
            for (below, is_folder) in entries(&path)? {
                let whole = format!("{name}/{below}");
                if is_folder {
                    return Err(Problem::of_file(
                        files.name_of(&whole),
                        "a folder inside of a change",
                        "a change has its files beside its change.toml",
                    ));
                }
                files.take(&path.join(&below), whole)?;
            }
        }
        Ok(files)
    }

    /// Reads one change's folder, and nothing beside it.
    pub fn read_one(root: &Path, folder: &str) -> Result<Self, Problem> {
        let path = root.join(folder);
        let shown = if root.as_os_str().is_empty() {
            ".".to_owned()
        } else {
            root.display().to_string()
        };
        let mut files = Self {
            root: shown,
            files: BTreeMap::new(),
        };
        for (name, is_folder) in entries(&path)? {
            if !is_folder {
                files.take(&path.join(&name), format!("{folder}/{name}"))?;
            }
        }
        Ok(files)
    }

    fn take(&mut self, path: &Path, name: String) -> Result<(), Problem> {
        let refuse = |what: String, help: &str| Problem::of_file(self.name_of(&name), what, help);
        if self.files.len() >= FILES_MAX {
            return Err(Problem::of_file(
                &self.root,
                format!("more than {FILES_MAX} files"),
                "squash old changes with `aegis migrate squash --through ID`",
            ));
        }
        let unreadable = |error: std::io::Error| {
            refuse(
                format!("it cannot be read: {error}"),
                "make it a readable file",
            )
        };
        // A pipe would be waited for without an end.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(refuse(
                "it is no regular file".to_owned(),
                "make it a readable file",
            ));
        }
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(refuse(
                format!("it is larger than {FILE_BYTES_MAX} bytes"),
                "data belong into a backfill, not into a change",
            ));
        }
        self.files.insert(name, bytes);
        Ok(())
    }

    /// How messages call the folder.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// How messages call a file.
    pub fn name_of(&self, name: &str) -> String {
        format!("{}/{name}", self.root.trim_end_matches('/'))
    }

    /// The bytes of a file.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(Vec::as_slice)
    }

    /// Puts another text into a file, here and not on the disk; `None` takes it away.
    pub(crate) fn put(&mut self, name: &str, text: Option<String>) {
        match text {
            Some(text) => self.files.insert(name.to_owned(), text.into_bytes()),
            None => self.files.remove(name),
        };
    }

    /// Names of all files, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The names of the files in a folder below, sorted.
    pub fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        self.names().filter_map(move |name| {
            name.strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix('/'))
        })
    }
}

/// Names in a folder and whether they are folders, sorted; hidden ones are left out (editors and version control keep theirs).
fn entries(folder: &Path) -> Result<Vec<(String, bool)>, Problem> {
    let unreadable = |error: std::io::Error| {
        Problem::of_file(
            folder.display().to_string(),
            format!("the folder cannot be read: {error}"),
            "make it readable",
        )
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(Problem::of_file(
                path.display().to_string(),
                "its name is not UTF-8",
                "rename it",
            ));
        };
        if !name.starts_with('.') {
            // Through links, as ConfigMaps are mounted in Kubernetes.
            let is_folder = std::fs::metadata(&path).map_err(|error| {
                Problem::of_file(
                    path.display().to_string(),
                    format!("it cannot be read: {error}"),
                    "make it readable",
                )
            })?;
            found.push((name.to_owned(), is_folder.is_dir()));
        }
    }
    found.sort();
    Ok(found)
}
