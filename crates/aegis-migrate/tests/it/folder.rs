//! Folders of changes for tests, built in or on the disk.

use std::collections::BTreeMap;

use aegis_migrate::change::{Change, Files, Problems};
use aegis_migrate::set::Set;

/// The change of the design page, whole.
pub(crate) const SPLIT: &str = r#"format = 1
id = "20261129T1030_split_name"
schema = "app"
run_as = "app_owner"
[expand]
sql = "expand.sql"
compatible = [{ rule = "add-column", reason = "clients name their columns" }]
[sync]
table = "users"
old = ["name"]
new = ["first_name", "last_name"]
both_changed = "new"
[sync.forward]
first_name = "split_first(name)"
last_name = "split_last(name)"
[sync.backward]
name = "nullif(concat_ws(' ', first_name, last_name), '')"
[backfill]
key = ["id"]
set = "sync.forward"
batch = { start = 1000, max = 50000, target_ms = 500 }
[throttle]
max_lag_bytes = 67108864
on_unknown = "pause"
[reconcile]
compare = "sync"
max_age = "24h"
[switch]
reads = ["old", "new"]
writes = ["old", "new"]
cache_ttl_ms = 5000
[contract]
tighten = "tighten.sql"
sql = "contract.sql"
revoke_from = ["app_rw"]
observe = "72h"
evidence = ["reconciled", "sightings", "pods", "workers", "tasks", "cronjobs", "clients", "dependents", "rollback_window"]
"#;

/// Its name.
pub(crate) const SPLIT_ID: &str = "20261129T1030_split_name";

/// Files by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folder(BTreeMap<String, Vec<u8>>);

impl Folder {
    /// The change of the design page.
    pub(crate) fn split() -> Self {
        Self::default()
            .with("20261129T1030_split_name/change.toml", SPLIT)
            .with(
                "20261129T1030_split_name/expand.sql",
                "ALTER TABLE users ADD COLUMN first_name text, ADD COLUMN last_name text;\n",
            )
            .with(
                "20261129T1030_split_name/tighten.sql",
                "ALTER TABLE users ALTER COLUMN first_name SET NOT NULL;\n",
            )
            .with(
                "20261129T1030_split_name/contract.sql",
                "ALTER TABLE users DROP COLUMN name;\n",
            )
    }

    /// One change that only expands.
    pub(crate) fn small(id: &str) -> Self {
        Self::default().and_small(id)
    }

    /// One more of these.
    pub(crate) fn and_small(self, id: &str) -> Self {
        let toml = format!(
            "format = 1\nid = \"{id}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n"
        );
        self.with(&format!("{id}/change.toml"), toml).with(
            &format!("{id}/expand.sql"),
            format!("CREATE TABLE t{} (id bigint);\n", &id[9..13]),
        )
    }

    pub(crate) fn with(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.insert(name.to_owned(), bytes.into());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        assert!(self.0.remove(name).is_some(), "{name}");
        self
    }

    /// With a text of a file replaced, which must be there.
    pub(crate) fn edited(self, name: &str, from: &str, to: &str) -> Self {
        let text = String::from_utf8(self.0[name].clone()).unwrap();
        assert!(text.contains(from), "{from} is not in {name}");
        self.with(name, text.replacen(from, to, 1))
    }

    pub(crate) fn files(&self) -> Files {
        let files = self
            .0
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        Files::embedded("migrations", files)
    }

    /// In a folder that goes when it is dropped.
    pub(crate) fn on_disk(&self) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for (name, bytes) in &self.0 {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        place
    }

    pub(crate) fn set(&self) -> Result<Set, Problems> {
        Set::of(self.files())
    }

    pub(crate) fn change(&self, id: &str) -> Result<Change, Problems> {
        aegis_migrate::change::read(&self.files(), id)
    }

    /// What is told about the change of the design page.
    pub(crate) fn refused(&self) -> String {
        self.change(SPLIT_ID).unwrap_err().to_string()
    }
}
