//! The generator's complaints: where, what, and that nothing is written meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::sql::{Args, run};

use crate::{fixture, server_url};

/// A copy of the fixture to spoil.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture(), folder.path());
        Self(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).unwrap();
        assert!(text.contains(from), "{file} no longer holds {from:?}");
        fs::write(self.path(file), text.replacen(from, to, 1)).unwrap();
    }

    fn findings(&self, check: bool) -> Vec<String> {
        let server = Some(server_url("postgres"));
        run(&Args {
            check,
            server,
            store: self.0.path().to_owned(),
        })
        .unwrap()
        .findings
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn the_fixture_is_up_to_date() {
    assert_eq!(Copy::new().findings(true), [""; 0]);
}

#[test]
fn a_renamed_column_fails_every_statement_that_names_it() {
    let store = Copy::new();
    store.replace(
        "migrations/20260101T0000_tables/expand.sql",
        "label text",
        "title text",
    );
    let findings = store.findings(false);
    let expected = [
        "sql/task/acquire.sql:14:17: column t.label does not exist (42703)",
        "sql/task/find.sql:8:14: column t.label does not exist (42703)",
        "sql/task/submit.sql:7:23: column \"label\" of relation \"task\" does not exist (42703)",
    ];
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, expected) in findings.iter().zip(expected) {
        assert!(finding.starts_with(expected), "{finding}");
    }
    let generated = "src/generated/task.rs";
    let untouched = fs::read(fixture().join(generated)).unwrap();
    assert_eq!(fs::read(store.path(generated)).unwrap(), untouched);
}

#[test]
fn an_error_inside_an_include_is_told_at_its_line_there() {
    let store = Copy::new();
    store.replace("sql/include/guard.sql", "t.owner", "t.holder");
    let findings = store.findings(false);
    assert!(
        findings[0].starts_with("sql/include/guard.sql:2:1: column t.holder"),
        "{findings:#?}"
    );
}

#[test]
fn an_error_in_the_schema_is_told_at_its_line() {
    let store = Copy::new();
    store.replace(
        "migrations/20260101T0000_tables/expand.sql",
        "meta jsonb",
        "meta jsonbb",
    );
    let expected =
        "migrations/20260101T0000_tables/expand.sql:12:10: type \"jsonbb\" does not exist (42704)";
    assert_eq!(store.findings(false), [expected]);
}

#[test]
fn check_names_what_differs_is_missing_or_has_no_statement() {
    let store = Copy::new();
    store.replace("src/generated/task.rs", "Submit", "Subnit");
    fs::remove_file(store.path("src/generated/probe.rs")).unwrap();
    fs::write(store.path("src/generated/old.rs"), "//! Old.\n").unwrap();
    let findings = store.findings(true);
    let starts = [
        "src/generated/probe.rs: is missing: run `cargo xtask sql`",
        "src/generated/task.rs:",
        "src/generated/old.rs: no statement makes it: run `cargo xtask sql`",
    ];
    assert_eq!(findings.len(), starts.len(), "{findings:#?}");
    for (finding, start) in findings.iter().zip(starts) {
        assert!(finding.starts_with(start), "{finding}");
    }
    // Written once, nothing is left to say, and the stray file is gone.
    assert_eq!(store.findings(false), [""; 0]);
    assert_eq!(store.findings(true), [""; 0]);
    assert!(!store.path("src/generated/old.rs").exists());
}

#[test]
fn columns_without_name_type_or_place_are_refused() {
    let complaint = |from: &str, to: &str| {
        let store = Copy::new();
        store.replace("sql/probe/count.sql", from, to);
        store.findings(false).join("\n")
    };
    assert!(
        complaint("count(*) AS tasks", "1 + 1").contains("`?column?` needs a name in snake_case")
    );
    assert!(complaint("AS quoted", "AS tasks").contains("column `tasks` stands twice"));
    assert!(complaint("AS quoted", "AS \"Quoted\"").contains("needs a name in snake_case"));
    assert!(complaint("count(*)", "now() - now()").contains("milliseconds in a bigint"));
    assert!(
        complaint("nullable: odd", "nullable: even")
            .contains("`nullable: even[?]` names no column")
    );
    assert!(complaint("nullable: odd", "nullable: tasks").contains("is no array but `int8`"));
    assert!(complaint("returns: one", "returns: count").contains("`returns: count`, but"));
    assert!(
        complaint("count(*)", ":since::interval").contains("parameter `:since`: type `interval`")
    );
}
