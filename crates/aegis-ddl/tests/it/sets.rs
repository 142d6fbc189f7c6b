//! Sets of files: phases, overrides, what is not live.

use aegis_ddl::{
    Class, Compatible, Context, Phase, Report, SourceFile, judge, judge_in_order, read,
};

fn judged(files: &[(&str, Phase)], compatible: &[(&str, &str)]) -> Report {
    let files: Vec<_> = files
        .iter()
        .map(|(sql, phase)| SourceFile {
            path: format!("{phase:?}.sql"),
            script: read(sql).unwrap(),
            phase: Some(*phase),
            atomic: Some(false),
            proven: false,
        })
        .collect();
    let compatible: Vec<_> = compatible
        .iter()
        .map(|(rule, reason)| Compatible {
            phase: None,
            rule: (*rule).to_owned(),
            reason: (*reason).to_owned(),
        })
        .collect();
    let context = Context {
        server: 18,
        catalog: None,
        schema: "app",
        fresh: false,
        compatible: &compatible,
    };
    judge(&files, &context)
}

fn classes(report: &Report) -> String {
    report
        .verdicts
        .iter()
        .map(|one| one.class.to_string())
        .collect()
}

#[test]
fn the_order_that_proves_not_null_passes_and_the_short_way_does_not() {
    let report = judged(
        &[
            (
                "ALTER TABLE t ADD CONSTRAINT c CHECK (a IS NOT NULL) NOT VALID",
                Phase::Migrate,
            ),
            ("ALTER TABLE t VALIDATE CONSTRAINT c", Phase::Migrate),
            (
                "ALTER TABLE t ALTER COLUMN a SET NOT NULL; ALTER TABLE t DROP CONSTRAINT c",
                Phase::Tighten,
            ),
        ],
        &[("new-write-restriction", "both versions write it")],
    );
    assert!(report.passes(), "{report:#?}");
    let short = judged(
        &[("ALTER TABLE t ALTER COLUMN a SET NOT NULL", Phase::Tighten)],
        &[],
    );
    assert_eq!(classes(&short), "B");
}

#[test]
fn a_long_statement_does_not_stand_in_expand_and_a_breaking_one_only_in_contract() {
    let cic = "CREATE INDEX CONCURRENTLY i ON t (a)";
    assert!(!judged(&[(cic, Phase::Expand)], &[]).passes());
    assert!(judged(&[(cic, Phase::Migrate)], &[]).passes());
    let drop = "ALTER TABLE t DROP COLUMN a";
    assert!(!judged(&[(drop, Phase::Expand)], &[]).passes());
    assert!(!judged(&[(drop, Phase::Migrate)], &[]).passes());
    let report = judged(&[(drop, Phase::Contract)], &[]);
    assert!(report.passes());
    assert_eq!(report.verdicts[0].class, Class::D);
}

#[test]
fn what_a_version_before_meets_needs_a_reason_in_expand_and_a_reason_must_be_needed() {
    let sql = "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID";
    assert!(!judged(&[(sql, Phase::Expand)], &[]).passes());
    assert!(
        judged(
            &[(sql, Phase::Expand)],
            &[("new-write-restriction", "always so")]
        )
        .passes()
    );
    let report = judged(
        &[(sql, Phase::Expand)],
        &[
            ("new-write-restriction", "x"),
            ("rename", "y"),
            ("create-index-not-concurrent", "z"),
            ("renames", "w"),
        ],
    );
    assert_eq!(
        report.unused_overrides.len(),
        3,
        "{:?}",
        report.unused_overrides
    );
    assert!(!report.passes());
}

#[test]
fn an_override_holds_in_its_phase_and_is_used_where_another_catalog_needs_it() {
    let file = |sql: &str, phase| SourceFile {
        path: format!("{phase:?}.sql"),
        script: read(sql).unwrap(),
        proven: false,
        phase: Some(phase),
        atomic: None,
    };
    let of = |rule: &str, phase| Compatible {
        rule: rule.to_owned(),
        reason: "x".to_owned(),
        phase: Some(phase),
    };
    let check = "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID";
    let files = [file(check, Phase::Migrate)];
    let judged = |files: &[SourceFile], catalog, compatible: &[Compatible]| {
        let context = Context {
            server: 18,
            catalog,
            schema: "app",
            fresh: false,
            compatible,
        };
        judge(files, &context)
    };
    let rule = "new-write-restriction";
    let report = judged(&files, None, &[of(rule, Phase::Expand)]);
    assert_eq!(report.unused_overrides.len(), 1, "{report:?}");
    assert!(!report.verdicts[0].passes, "{report:?}");
    let report = judged(&files, None, &[of(rule, Phase::Migrate)]);
    assert!(report.passes(), "{report:?}");
    // A view that is not there is new here, and replaced on the next database.
    let empty = aegis_catalog::Catalog::default();
    let view = [file("CREATE OR REPLACE VIEW v AS SELECT 1", Phase::Expand)];
    let bare = judged(&view, Some(&empty), &[]);
    assert!(bare.passes(), "no finding here: {bare:?}");
    let report = judged(&view, Some(&empty), &[of("replace-view", Phase::Expand)]);
    assert!(report.passes(), "{report:?}");
    let report = judged(&view, Some(&empty), &[of("rename", Phase::Expand)]);
    assert_eq!(report.unused_overrides.len(), 1, "{report:?}");
}

#[test]
fn what_may_be_declared_says_the_line_to_write() {
    let sql = "ALTER TYPE mood ADD VALUE 'calm'";
    let report = judged(&[(sql, Phase::Expand)], &[]);
    let finding = &report.verdicts[0].findings[0];
    let line = finding.declare.as_deref().unwrap();
    assert!(
        line.starts_with("compatible = [{ rule = \"add-enum-value\", reason = \""),
        "{line}"
    );
    // Not of locks, not where it is declared, not in contract.
    let scan = judged(
        &[("CREATE INDEX i ON t (a)", Phase::Expand)],
        &[("add-enum-value", "x")],
    );
    assert_eq!(scan.verdicts[0].findings[0].declare, None);
    let given = judged(
        &[(sql, Phase::Expand)],
        &[("add-enum-value", "both know it")],
    );
    assert_eq!(given.verdicts[0].findings[0].declare, None);
    let contract = judged(&[(sql, Phase::Contract)], &[]);
    assert_eq!(contract.verdicts[0].findings[0].declare, None);
}

#[test]
fn a_foreign_key_of_a_column_that_is_new_and_empty_breaks_no_write() {
    let key = "ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY (o) REFERENCES o (id) NOT VALID";
    let class = |add: &str| classes(&judged(&[(&format!("{add}; {key}"), Phase::Expand)], &[]));
    assert_eq!(class("ALTER TABLE t ADD COLUMN o bigint"), "AA");
    // Its default is what old programs write, and need not be there.
    assert_eq!(class("ALTER TABLE t ADD COLUMN o bigint DEFAULT 1"), "AD");
    assert_eq!(class("ALTER TABLE t ADD COLUMN other bigint"), "AD");
}

#[test]
fn a_type_that_nobody_knows_is_the_worst_that_it_can_be_in_a_change() {
    let report = judged(
        &[("ALTER TABLE t ADD COLUMN a email_address", Phase::Expand)],
        &[],
    );
    assert_eq!(classes(&report), "B");
    let finding = &report.verdicts[0].findings[1];
    assert!(finding.unless.as_deref().unwrap().contains("is none"));
    for known in [
        "uuid",
        "varchar(20)",
        "timestamptz",
        "int[]",
        "geometry(Point, 4326)",
        "tstzrange",
    ] {
        let sql = format!("ALTER TABLE t ADD COLUMN a {known}");
        assert_eq!(
            classes(&judged(&[(&sql, Phase::Expand)], &[])),
            "A",
            "{known}"
        );
    }
}

#[test]
fn a_lock_is_not_overridden_by_a_reason() {
    let report = judged(
        &[("CREATE INDEX i ON t (a)", Phase::Expand)],
        &[("create-index-not-concurrent", "it is small")],
    );
    assert_eq!(classes(&report), "B");
}

#[test]
fn a_table_of_the_same_set_is_not_live_whatever_the_schema_is_called() {
    let report = judged(
        &[
            ("CREATE TABLE t (a int)", Phase::Expand),
            (
                "CREATE INDEX i ON app.t (a); UPDATE t SET a = 1; ALTER TABLE app.t ALTER a TYPE text",
                Phase::Expand,
            ),
        ],
        &[],
    );
    assert_eq!(classes(&report), "AAAA");
    let other = judged(
        &[(
            "CREATE TABLE other.t (a int); CREATE INDEX i ON t (a)",
            Phase::Expand,
        )],
        &[],
    );
    assert_eq!(classes(&other), "AB");
}

#[test]
fn transactions_in_a_file_of_a_change_are_refused() {
    let report = judged(&[("BEGIN; SELECT 1; COMMIT", Phase::Expand)], &[]);
    assert!(classes(&report).contains('E'));
}

#[test]
fn heirs_count_for_the_size_of_their_parent() {
    use aegis_catalog::{Catalog, Name};
    let relation = |name: &str, bytes: i64, inherits: Vec<Name>| -> aegis_catalog::Relation {
        serde_json::from_value(serde_json::json!({
            "name": Name::new("app", name), "kind": "table", "owner": "o", "persistence": "permanent",
            "access_method": null, "tablespace": null, "options": [], "row_security": false,
            "force_row_security": false, "replica_identity": "default", "inherits": inherits,
            "partition_of": null, "partition_key": null, "default_partition": null, "definition": null,
            "foreign": null, "columns": [],
            "size": {"table_bytes": bytes, "total_bytes": bytes, "rows": null},
        }))
        .unwrap()
    };
    let catalog = Catalog {
        server_version_num: 180_000,
        relations: vec![
            relation("heir", 1 << 30, vec![Name::new("app", "t")]),
            relation("t", 8192, Vec::new()),
        ],
        ..Catalog::default()
    };
    let class = |sql: &str| {
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
        classes(&judge(&[file], &context))
    };
    assert_eq!(class("ALTER TABLE t ADD CHECK (a > 0)"), "B");
    assert_eq!(
        class("ALTER TABLE ONLY t ADD CHECK (a > 0) NO INHERIT"),
        "A"
    );
    assert_eq!(class("UPDATE t SET a = 1"), "B");
    assert_eq!(class("UPDATE ONLY t SET a = 1"), "A");
    assert_eq!(class("CREATE INDEX i ON t (a)"), "A");
    assert_eq!(class("CREATE INDEX i ON heir (a)"), "B");
    assert_eq!(class("CREATE INDEX i ON ONLY heir (a)"), "B");
}

#[test]
fn a_table_that_a_change_makes_unless_it_is_there_is_new_until_a_catalog_says_otherwise() {
    use aegis_catalog::{Catalog, Name};
    let relation = serde_json::from_value(serde_json::json!({
        "name": Name::new("app", "foo"), "kind": "table", "owner": "o", "persistence": "permanent",
        "access_method": null, "tablespace": null, "options": [], "row_security": false,
        "force_row_security": false, "replica_identity": "default", "inherits": [],
        "partition_of": null, "partition_key": null, "default_partition": null, "definition": null,
        "foreign": null, "columns": [],
        "size": {"table_bytes": 1_i64 << 30, "total_bytes": 1_i64 << 30, "rows": null},
    }))
    .unwrap();
    let with = Catalog {
        server_version_num: 180_000,
        relations: vec![relation],
        ..Catalog::default()
    };
    let without = Catalog {
        server_version_num: 180_000,
        ..Catalog::default()
    };
    let class = |sql: &str, catalog: Option<&Catalog>| {
        let file = SourceFile {
            path: "expand.sql".to_owned(),
            script: read(sql).unwrap(),
            phase: Some(Phase::Expand),
            atomic: Some(false),
            proven: false,
        };
        let context = Context {
            server: 18,
            catalog,
            schema: "app",
            fresh: false,
            compatible: &[],
        };
        judge(&[file], &context).verdicts.pop().unwrap()
    };
    for sql in [
        "CREATE TABLE IF NOT EXISTS foo (id bigint); CREATE TRIGGER x BEFORE INSERT ON foo FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE TABLE IF NOT EXISTS foo (id bigint); CREATE POLICY p ON foo USING (true)",
        "CREATE TABLE IF NOT EXISTS foo (id bigint); ALTER TABLE foo ADD COLUMN IF NOT EXISTS a int; ALTER TABLE foo ALTER COLUMN a SET DEFAULT 5",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS o bigint; ALTER TABLE t ADD FOREIGN KEY (o) REFERENCES orders (id) NOT VALID",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS o bigint; ALTER TABLE t ALTER COLUMN o SET DEFAULT 5",
    ] {
        assert_eq!(class(sql, None).class, Class::A, "{sql}");
    }
    let sql = "CREATE TABLE IF NOT EXISTS foo (id bigint, a int); CREATE INDEX IF NOT EXISTS foo_a ON foo (a)";
    let unknown = class(sql, None);
    assert_eq!((unknown.class, unknown.passes), (Class::A, true));
    let told = &unknown.findings[0];
    assert_eq!(told.rule, "create-index-not-concurrent");
    assert!(
        told.unless
            .as_deref()
            .unwrap()
            .contains("foo was not there")
    );
    assert_eq!(class(sql, Some(&without)).class, Class::A);
    assert_eq!(class(sql, Some(&with)).class, Class::B);
}

/// What is said of the last of these changes.
fn last(changes: &[&[SourceFile]], context: Context<'_>) -> Report {
    let changes: Vec<_> = changes.iter().map(|files| (*files, context)).collect();
    judge_in_order(&changes).pop().unwrap()
}

/// The same of two with one file each.
fn after(first: (&str, Phase), second: (&str, Phase), atomic: bool) -> Report {
    let file = |(sql, phase): (&str, Phase)| SourceFile {
        path: format!("{phase:?}.sql"),
        script: read(sql).unwrap(),
        phase: Some(phase),
        atomic: Some(atomic),
        proven: false,
    };
    let context = Context {
        server: 18,
        catalog: None,
        schema: "app",
        fresh: false,
        compatible: &[],
    };
    last(&[&[file(first)], &[file(second)]], context)
}

fn says(report: &Report, rule: &str) -> bool {
    let mut findings = report.verdicts.iter().flat_map(|one| &one.findings);
    findings.any(|one| one.rule == rule)
}

#[test]
fn a_change_does_not_run_in_the_transaction_of_the_change_before_it() {
    let value = "ALTER TYPE mood ADD VALUE 'ok'";
    let used = "INSERT INTO t (id, m) VALUES (1, 'ok')";
    let check = "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID";
    let validate = "ALTER TABLE t VALIDATE CONSTRAINT c";
    for atomic in [false, true] {
        let report = after((value, Phase::Expand), (used, Phase::Migrate), atomic);
        assert!(!says(&report, "use-of-new-enum-value"), "{report:#?}");
        let report = after((check, Phase::Expand), (validate, Phase::Migrate), atomic);
        assert!(
            !says(&report, "validate-in-same-transaction"),
            "{report:#?}"
        );
    }
    let together = format!("{check}; {validate}");
    let report = after((value, Phase::Expand), (&together, Phase::Migrate), true);
    assert!(says(&report, "validate-in-same-transaction"), "{report:#?}");
}

#[test]
fn what_the_contract_of_an_earlier_change_takes_away_is_there_until_then() {
    for (taken, made) in [
        (
            "ALTER TABLE users DROP COLUMN name",
            "ALTER TABLE users ADD COLUMN name text",
        ),
        (
            "ALTER TABLE users DROP COLUMN name",
            "ALTER TABLE users ADD COLUMN IF NOT EXISTS name text",
        ),
        ("DROP TABLE old_users", "CREATE TABLE old_users (id bigint)"),
        ("DROP VIEW v", "CREATE OR REPLACE VIEW v AS SELECT 1 AS a"),
    ] {
        let of = |phase| after((taken, phase), (made, Phase::Expand), false);
        let report = of(Phase::Contract);
        let told: Vec<_> = report.verdicts[0]
            .findings
            .iter()
            .filter(|one| one.rule == "already-there")
            .collect();
        assert_eq!(told.len(), 1, "{report:#?}");
        assert!(told[0].unless.is_some(), "{told:?}");
        // Nobody knows here whether it ran already: it does not count.
        assert_eq!(told[0].level, aegis_ddl::Level::Notice);
    }
    // The same change takes it away and makes another: in order.
    let both = "ALTER TABLE users DROP COLUMN name; ALTER TABLE users ADD COLUMN name int";
    let report = judged(&[(both, Phase::Contract)], &[]);
    assert!(!says(&report, "already-there"), "{report:#?}");
}

#[test]
fn a_catalog_without_it_says_that_the_contract_ran() {
    use aegis_catalog::Catalog;
    let file = |sql, phase| SourceFile {
        path: format!("{phase:?}.sql"),
        script: read(sql).unwrap(),
        phase: Some(phase),
        atomic: Some(false),
        proven: false,
    };
    let empty = Catalog::default();
    let context = Context {
        server: 18,
        catalog: Some(&empty),
        schema: "app",
        fresh: false,
        compatible: &[],
    };
    let first = [file("DROP TABLE old_users", Phase::Contract)];
    let second = [file("CREATE TABLE old_users (id bigint)", Phase::Expand)];
    let report = last(&[&first, &second], context);
    assert!(!says(&report, "already-there"), "{report:#?}");
    // One that runs in order takes it away for sure.
    let third = [file("DROP TABLE old_users", Phase::Migrate)];
    let bare = Context {
        catalog: None,
        ..context
    };
    let report = last(&[&first, &third, &second], bare);
    assert!(!says(&report, "already-there"), "{report:#?}");
}

#[test]
fn what_another_database_needs_is_needed_after_other_changes_too() {
    let file = |sql| SourceFile {
        path: "expand.sql".to_owned(),
        script: read(sql).unwrap(),
        phase: Some(Phase::Expand),
        atomic: Some(false),
        proven: false,
    };
    let empty = aegis_catalog::Catalog::default();
    let first = [file("CREATE TABLE t (id bigint)")];
    let second = [file("CREATE OR REPLACE VIEW v AS SELECT 1")];
    let unused = |rule: &str| {
        let given = [Compatible {
            phase: None,
            rule: rule.to_owned(),
            reason: "x".to_owned(),
        }];
        let context = Context {
            server: 18,
            catalog: Some(&empty),
            schema: "app",
            fresh: false,
            compatible: &given,
        };
        last(&[&first, &second], context).unused_overrides.len()
    };
    assert_eq!(unused("replace-view"), 0);
    assert_eq!(unused("rename"), 1);
}
