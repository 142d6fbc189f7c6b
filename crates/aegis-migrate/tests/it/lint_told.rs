//! How findings are told: SARIF as its schema asks, and what would make a finding harmless.

use std::path::Path;

use aegis_migrate::lint::{Input, Judged, Known, run, sarif, table};
use serde_json::{Value, json};

/// The parts of the published schema of SARIF 2.1.0 that the log has; the file says where they are from.
const SCHEMA: &str = include_str!("sarif-2.1.0.json");

fn lint(folder: &Path) -> Vec<Judged> {
    let known = Known {
        server: 18,
        catalog: None,
    };
    let input = Input {
        path: folder.to_path_buf(),
        tool: None,
        schema: "public".to_owned(),
    };
    run(&input, None, known).unwrap()
}

/// A change with a statement that passes by a reason, one that does not pass, and a file that is no SQL.
fn change() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("20261129T1030_a");
    std::fs::create_dir(&at).unwrap();
    let toml = "format = 1\nid = \"20261129T1030_a\"\nschema = \"app\"\n[expand]\nsql = \"e.sql\"\ncompatible = [{ rule = \"new-write-restriction\", reason = \"both write it\" }]\n[migrate]\nsql = \"m.sql\"\n";
    std::fs::write(at.join("change.toml"), toml).unwrap();
    let expand = "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID;\nDROP TABLE u;\n";
    std::fs::write(at.join("e.sql"), expand).unwrap();
    std::fs::write(
        at.join("m.sql"),
        "SELECT 1;\nALTER TABLE t ADD COLUM a int;\n",
    )
    .unwrap();
    folder
}

fn refused(validator: &jsonschema::Validator, log: &Value) -> Vec<String> {
    validator
        .iter_errors(log)
        .map(|error| error.to_string())
        .collect()
}

#[test]
fn the_log_of_every_kind_of_finding_is_what_the_schema_of_sarif_asks_for() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = change();
    let log = sarif(&lint(folder.path()));
    assert_eq!(refused(&validator, &log), [""; 0], "{log:#}");
    let results = log["runs"][0]["results"].as_array().unwrap();
    let has = |what: &dyn Fn(&Value) -> bool| results.iter().any(what);
    assert!(
        has(&|one| one["suppressions"][0]["kind"] == "external"),
        "{log:#}"
    );
    assert!(has(&|one| one["ruleId"] == "unreadable"), "{log:#}");
    assert!(has(&|one| one["level"] == "error"), "{log:#}");
    assert_eq!(refused(&validator, &sarif(&[])), [""; 0]);
    // Without any of what it asks for, a log is refused: the schema is no formality.
    for (place, broken) in [
        ("/version", json!("2.0.0")),
        ("/runs/0/tool", json!({})),
        ("/runs/0/tool/driver", json!({ "version": "1" })),
        (
            "/runs/0/tool/driver/rules/0",
            json!({ "help": { "text": "a" } }),
        ),
        ("/runs/0/results/0/message", json!({})),
        ("/runs/0/results/0/level", json!("bad")),
        ("/runs/0/results/0/ruleIndex", json!(null)),
        ("/runs/0/results/0/locations/0/physicalLocation", json!({})),
        (
            "/runs/0/results/0/locations/0/physicalLocation/region",
            json!({ "startLine": 0 }),
        ),
        ("/runs/0/columnKind", json!("bytes")),
    ] {
        let mut log = log.clone();
        *log.pointer_mut(place).unwrap() = broken;
        assert!(!refused(&validator, &log).is_empty(), "{place}");
    }
}

#[test]
fn without_a_catalog_the_worst_class_is_told_with_what_would_make_it_harmless() {
    for (sql, class, unless) in [
        (
            "CREATE INDEX i ON ONLY t (a)",
            "B",
            "t is partitioned: then it is A, and builds nothing (--database or --catalog tells)",
        ),
        (
            "UPDATE t SET a = 1 WHERE owner = 7",
            "B",
            "owner is unique (--database or --catalog tells)",
        ),
        (
            "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
            "B",
            "a valid CHECK (a IS NOT NULL) is there (--database or --catalog tells)",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.sql"), format!("{sql};\n")).unwrap();
        let judged = lint(folder.path());
        assert_eq!(judged[0].class.to_string(), class, "{sql}");
        let told = table(&judged, false, &str::to_owned);
        let line = format!("      harmless if {unless}\n");
        assert!(told.contains(&line), "{told}");
    }
    // What nothing makes harmless has no such line.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.sql"), "VACUUM FULL t;\n").unwrap();
    let told = table(&lint(folder.path()), false, &str::to_owned);
    assert!(!told.contains("harmless"), "{told}");
}
