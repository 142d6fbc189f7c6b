//! What is small and what is few, at the border.

use aegis_catalog::{Catalog, Name};
use aegis_ddl::{Class, Context, SMALL_BYTES, SourceFile, judge, read};

use crate::classes::class_of;

/// The class beside a table of so many bytes.
fn beside(bytes: i64, sql: &str) -> Class {
    let relation = serde_json::from_value(serde_json::json!({
        "name": Name::new("app", "t"), "kind": "table", "owner": "o", "persistence": "permanent",
        "access_method": null, "tablespace": null, "options": [], "row_security": false,
        "force_row_security": false, "replica_identity": "default", "inherits": [],
        "partition_of": null, "partition_key": null, "default_partition": null, "definition": null,
        "foreign": null, "columns": [],
        "size": {"table_bytes": bytes, "total_bytes": bytes, "rows": null},
    }))
    .unwrap();
    let catalog = Catalog {
        server_version_num: 180_000,
        relations: vec![relation],
        ..Catalog::default()
    };
    let file = SourceFile {
        path: "a.sql".to_owned(),
        script: read(sql).unwrap(),
        phase: None,
        atomic: None,
        proven: false,
    };
    let context = Context {
        server: 18,
        catalog: Some(&catalog),
        schema: "app",
        fresh: false,
        compatible: &[],
    };
    judge(&[file], &context).verdicts[0].class
}

#[test]
fn sixteen_mebibytes_are_small_and_one_byte_more_is_not() {
    assert_eq!(SMALL_BYTES, 16 << 20);
    for sql in [
        "CREATE INDEX i ON t (a)",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)",
        "UPDATE t SET a = 1",
    ] {
        assert_eq!(beside(16 << 20, sql), Class::A, "{sql}");
        assert_eq!(beside((16 << 20) + 1, sql), Class::B, "{sql}");
    }
}

#[test]
fn a_thousand_rows_are_few_and_one_more_is_not() {
    let rows = |count: usize| {
        let rows: Vec<String> = (0..count).map(|one| format!("({one})")).collect();
        format!("INSERT INTO t (a) VALUES {}", rows.join(", "))
    };
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|one| one.to_string()).collect();
        format!("DELETE FROM t WHERE id IN ({})", keys.join(", "))
    };
    assert_eq!(class_of(&rows(1000), 18).0, Class::A);
    assert_eq!(class_of(&rows(1001), 18), (Class::B, "dml-bulk".to_owned()));
    assert_eq!(beside(8192, &keys(1000)), Class::A);
    assert_eq!(beside(8192, &keys(1001)), Class::B, "small or not");
}
