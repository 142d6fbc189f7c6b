//! A folder of changes on the disk, and the binary beside it.

use std::path::{Path, PathBuf};

use crate::support::{Ran, command, run};

/// A folder with a migrations folder in it.
pub(crate) struct Folder {
    place: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self {
            place: tempfile::tempdir().unwrap(),
        }
    }

    /// The folder of the changes.
    pub(crate) fn dir(&self) -> PathBuf {
        self.place.path().join("migrations")
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir().join(name)).unwrap()
    }

    /// A change that only expands.
    pub(crate) fn change(&self, id: &str, sql: &str) {
        self.write(
            &format!("{id}/change.toml"),
            format!(
                "format = 1\nid = \"{id}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n"
            ),
        );
        self.write(&format!("{id}/expand.sql"), sql);
    }

    /// Runs `aegis migrate …` in the folder above.
    pub(crate) async fn run(&self, url: Option<&str>, words: &[&str]) -> Ran {
        let mut all = vec!["migrate"];
        all.extend(words);
        let mut command = command(url, &all);
        command.current_dir(self.path());
        run(command).await
    }

    /// As [`Self::run`], wants success, and reads what was printed as JSON.
    pub(crate) async fn json(&self, url: Option<&str>, words: &[&str]) -> serde_json::Value {
        let mut all = words.to_vec();
        all.extend(["--output", "json"]);
        let ran = self.run(url, &all).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    }
}
