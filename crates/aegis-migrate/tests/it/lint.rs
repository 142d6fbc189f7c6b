//! `lint` without its command line: folders of anybody, what was added since a commit, sizes and queues, SARIF, and its verdicts
//! beside what servers were measured to do.

use std::path::Path;
use std::process::Command;

use aegis_migrate::foreign::Tool;
use aegis_migrate::lint::{Input, Judged, Known, Since, run, sarif, table, totals};
use aegis_testkit::TestDb;

const UNKNOWN: Known<'static> = Known {
    server: 18,
    catalog: None,
};

fn input(path: &Path) -> Input {
    Input {
        path: path.to_path_buf(),
        tool: None,
        schema: "public".to_owned(),
    }
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn lint(folder: &Path) -> Vec<Judged> {
    run(&input(folder), None, UNKNOWN).unwrap()
}

fn refused(judged: &[Judged]) -> Vec<(&str, usize)> {
    let refused = judged.iter().filter(|one| !one.passes);
    refused
        .map(|one| (one.file.rsplit('/').next().unwrap(), one.line))
        .collect()
}

#[test]
fn folders_of_each_tool_are_judged_without_what_goes_back() {
    let bad = "ALTER TABLE users ALTER COLUMN age SET NOT NULL;\n";
    for (name, text, line) in [
        ("20260101000000_a.up.sql", bad.to_owned(), 1),
        (
            "00001_a.sql",
            format!("-- +goose Up\n{bad}-- +goose Down\nDROP TABLE users;\n"),
            2,
        ),
        ("V1__a.sql", bad.to_owned(), 1),
        ("whatever.sql", format!("\u{feff}SELECT 1;\r\n{bad}"), 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), name, text);
        if name.ends_with(".up.sql") {
            write(
                folder.path(),
                "20260101000000_a.down.sql",
                "DROP TABLE users;\n",
            );
        }
        let judged = lint(folder.path());
        assert_eq!(refused(&judged), [(name, line)], "{judged:?}");
        assert_eq!(judged.last().unwrap().lock, Some("ACCESS EXCLUSIVE"));
    }
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "structure.sql",
        "\\restrict abc\nCREATE TABLE a (id bigint);\nCREATE INDEX i ON a (id);\n\\unrestrict abc\n",
    );
    let judged = lint(folder.path());
    assert!(
        judged.len() == 2 && refused(&judged).is_empty(),
        "{judged:?}"
    );
}

#[test]
fn what_nobody_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let of = |sql: &str| {
        write(folder.path(), "a.sql", sql);
        let judged = lint(folder.path());
        assert_eq!(judged.len(), 1, "{judged:?}");
        let json = serde_json::to_value(&judged[0]).unwrap();
        assert_eq!(json["unread"], serde_json::json!(judged[0].unread));
        judged[0].unread.clone()
    };
    for (sql, names) in [
        ("ALTER TABLE t ADD COLUMN a int", &[][..]),
        ("DO $$ BEGIN ALTER TABLE t ADD COLUMN a int; END $$", &[]),
        (
            "DO $$ DECLARE s text := 'x'; BEGIN EXECUTE s; END $$",
            &["EXECUTE s"],
        ),
        (
            "DO $$ DECLARE s text; BEGIN EXECUTE s; EXECUTE 'DROP TABLE ' || s; END $$",
            &["EXECUTE s", "EXECUTE 'DROP TABLE ' || s"],
        ),
        ("CALL tidy_up()", &["what the procedure does"]),
        (
            "SELECT tidy_up()",
            &["what the functions of this SELECT do"],
        ),
        (
            "ALTER EXTENSION hstore UPDATE",
            &["the scripts of the extension"],
        ),
    ] {
        let unread = of(sql);
        assert_eq!(unread.len(), names.len(), "{sql}: {unread:?}");
        for (one, name) in unread.iter().zip(names) {
            assert!(one.contains(name), "{sql}: {unread:?}");
        }
    }
}

#[test]
fn what_an_earlier_file_made_is_live_and_what_the_same_file_made_is_not() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "1_a.sql",
        "CREATE TABLE a (id bigint);\nCREATE INDEX i ON a (id);\n",
    );
    write(folder.path(), "2_b.sql", "CREATE INDEX j ON a (id);\n");
    assert_eq!(refused(&lint(folder.path())), [("2_b.sql", 1)]);
}

#[test]
fn a_file_that_cannot_be_read_is_a_finding_with_its_place_and_the_others_are_judged() {
    let nested = format!(
        "SELECT 1;\n\nSELECT {}1{};\n",
        "(".repeat(10_000),
        ")".repeat(10_000)
    );
    for (text, line, column, said) in [
        ("SELECT 1;\nCREATE TABL a (id int);\n", 2, 1, "expected"),
        ("SELECT 1;\n\\copy a from b\n", 2, 1, "command of psql"),
        (&nested, 3, 507, "nested more than 500 deep"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a.sql", text);
        write(folder.path(), "b.sql", "DROP TABLE a;\n");
        let judged = lint(folder.path());
        assert_eq!(refused(&judged), [("a.sql", line), ("b.sql", 1)]);
        let one = &judged[0];
        assert_eq!(
            (&one.rules[..], one.column),
            (&["unreadable"][..], Some(column))
        );
        assert!(one.findings[0].message.contains(said), "{one:?}");
        assert!(one.shown.as_ref().unwrap().ends_with('^'));
        let text = table(&judged, false, &str::to_owned);
        assert!(
            text.contains("error [unreadable] ") && text.contains("\n    "),
            "{text}"
        );
        let log = sarif(&judged);
        let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"], line);
    }
}

#[test]
fn bad_folders_and_files_are_told_with_line_and_caret() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.sql", b"SELECT '\xe9';\n");
    let told = run(&input(folder.path()), None, UNKNOWN).unwrap_err();
    assert_eq!(told.exit_code(), 2);
    assert!(told.to_string().contains("it is not UTF-8"), "{told}");
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "V1__a.sql", "SELECT 1;\n");
    write(folder.path(), "V1__b.sql", "SELECT 1;\n");
    // Nobody knows which of them runs first; both are judged.
    let judged = run(&input(folder.path()), None, UNKNOWN).unwrap();
    let refused: Vec<_> = judged.iter().filter(|one| !one.passes).collect();
    assert_eq!((judged.len(), refused.len()), (4, 2), "{judged:?}");
    for (told, (file, other)) in refused
        .iter()
        .zip([("V1__a.sql", "V1__b.sql"), ("V1__b.sql", "V1__a.sql")])
    {
        let said = &told.findings[0].message;
        assert!(told.file.ends_with(file), "{told:?}");
        assert!(
            said.contains("the version 1 is that of") && said.contains(other),
            "{said}"
        );
    }
    let told = run(&input(Path::new("/nowhere/at/all")), None, UNKNOWN).unwrap_err();
    assert!(
        told.to_string().contains("there is no such folder or file"),
        "{told}"
    );
}

fn git(folder: &Path, words: &[&str]) {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(["-c", "commit.gpgsign=false"])
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
}

#[test]
fn base_judges_what_was_added_and_tells_what_was_edited() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    git(at, &["init", "-q"]);
    write(at, "m/V1__a.sql", "DROP TABLE old;\n");
    write(at, "m/V2__b.sql", "SELECT 2;\n");
    git(at, &["add", "."]);
    git(at, &["commit", "-qm", "one"]);
    let since = Since::new("HEAD");
    let of = |since: &Since| run(&input(&at.join("m")), Some(since), UNKNOWN);
    assert_eq!(of(&since).unwrap(), [], "nothing was added");
    write(at, "m/V3__c.sql", "DROP TABLE newer;\n");
    assert_eq!(refused(&of(&since).unwrap()), [("V3__c.sql", 1)]);
    write(at, "m/V2__b.sql", "SELECT 3;\n");
    let judged = of(&since).unwrap();
    assert_eq!(refused(&judged), [("V2__b.sql", 1), ("V3__c.sql", 1)]);
    assert_eq!(judged[0].rules, ["edited-history"]);
    for wrong in ["nowhere", "--output=x"] {
        let told = of(&Since::new(wrong)).unwrap_err();
        assert!(told.to_string().contains("git cannot say"), "{told}");
    }
}

#[test]
fn base_tells_a_version_that_an_old_file_has_wherever_the_new_one_is_sorted() {
    for new in ["V1__a.sql", "V1__c.sql"] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        git(at, &["init", "-q"]);
        write(at, "m/V1__b.sql", "SELECT 1;\n");
        git(at, &["add", "."]);
        git(at, &["commit", "-qm", "one"]);
        write(at, &format!("m/{new}"), "SELECT 2;\n");
        let judged = run(&input(&at.join("m")), Some(&Since::new("HEAD")), UNKNOWN).unwrap();
        assert_eq!(refused(&judged), [(new, 1)], "{judged:?}");
        let said = &judged[0].findings[0].message;
        assert!(said.contains("the version 1 is that of"), "{said}");
    }
}

#[tokio::test]
async fn a_live_table_tells_its_size_and_a_small_one_is_no_finding() {
    let db = TestDb::empty().await;
    let filled = "CREATE TABLE small (id bigint); CREATE TABLE large (id bigint, filler text);
        ALTER TABLE large ALTER filler SET STORAGE PLAIN;
        INSERT INTO large SELECT n, repeat('x', 2000) FROM generate_series(1, 10000) n";
    db.admin.batch_execute(filled).await.unwrap();
    let catalog = aegis_catalog::read(&db.admin, &aegis_catalog::Scope::everything())
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.sql",
        "CREATE INDEX i ON large (id);\nCREATE INDEX j ON small (id);\n",
    );
    let known = Known {
        server: catalog.server_major(),
        catalog: Some(&catalog),
    };
    let judged = run(&input(folder.path()), None, known).unwrap();
    assert_eq!(refused(&judged), [("a.sql", 1)]);
    assert!(judged[0].locks[0].bytes.unwrap() > 16 << 20, "{judged:?}");
    let text = table(&judged, false, &str::to_owned);
    assert!(
        text.contains("large SHARE: writers wait; ") && text.contains(" MiB"),
        "{text}"
    );
    assert!(totals(&judged).contains("1 may not run where they stand"));
}

#[test]
fn base_knows_edited_lines_of_the_lock_and_contracts_that_came_with_their_expand() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    let root = at.join("migrations");
    let change = |id: &str, more: &str| {
        let toml = format!(
            "format = 1\nid = \"{id}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n{more}"
        );
        write(&root, &format!("{id}/change.toml"), toml);
    };
    let seal = |edited: &[&str]| {
        let set = aegis_migrate::set::Set::read(&root).unwrap();
        let edited: Vec<_> = edited.iter().map(|at| at.parse().unwrap()).collect();
        let sealed = aegis_migrate::seal::prepare(&set, &edited).unwrap();
        aegis_migrate::seal::write(&root, &sealed.lock).unwrap();
    };
    let (a, b) = ("20261129T1030_a", "20261129T1031_b");
    change(a, "");
    write(
        &root,
        &format!("{a}/expand.sql"),
        "CREATE TABLE t (id bigint);\n",
    );
    seal(&[]);
    git(at, &["init", "-q"]);
    git(at, &["add", "."]);
    git(at, &["commit", "-qm", "one"]);
    let of = || run(&input(&root), Some(&Since::new("HEAD")), UNKNOWN).unwrap();
    assert_eq!(of(), []);
    write(
        &root,
        &format!("{a}/expand.sql"),
        "CREATE TABLE t (id int);\n",
    );
    seal(&[&format!("{a}:expand")]);
    let judged = of();
    assert_eq!(judged[0].rules, ["edited-history"], "{judged:?}");
    assert!(judged[0].file.ends_with("migrations.lock"), "{judged:?}");
    git(at, &["checkout", "-q", "."]);
    let contract =
        "[contract]\nsql = \"contract.sql\"\nobserve = \"72h\"\nevidence = [\"dependents\"]\n";
    change(b, contract);
    write(
        &root,
        &format!("{b}/expand.sql"),
        "CREATE TABLE u (id bigint);\n",
    );
    write(&root, &format!("{b}/contract.sql"), "DROP TABLE t;\n");
    seal(&[]);
    let judged = of();
    assert_eq!(judged[0].rules, ["contract-own-commit"], "{judged:?}");
    assert_eq!(refused(&judged).len(), 1, "{judged:?}");
}

#[tokio::test]
async fn the_key_of_a_backfill_that_leaves_rows_out_is_found_with_its_line() {
    let db = TestDb::empty().await;
    let tables = "CREATE SCHEMA app; CREATE TABLE app.users (id bigint, code text NOT NULL, name text, nick text, PRIMARY KEY (id));
        CREATE TABLE app.loose (id bigint, code text NOT NULL, name text, nick text);
        CREATE UNIQUE INDEX ON app.loose (code) WHERE code <> ''";
    db.admin.batch_execute(tables).await.unwrap();
    let scope = aegis_catalog::Scope::schemas(["app".to_owned()]).structure_only();
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    for (table, key, said) in [
        ("users", "id", None),
        ("users", "name", Some("app.users.name may be NULL")),
        ("users", "nope", Some("app.users has no column nope")),
        (
            "users",
            "code",
            Some("app.users has no valid unique index on exactly (code)"),
        ),
        ("loose", "id", Some("loose.id may be NULL")),
        (
            "loose",
            "code",
            Some("app.loose has no valid unique index on exactly (code)"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("20261129T1030_a");
        let toml = format!(
            "format = 1\nid = \"20261129T1030_a\"\nschema = \"app\"\n[backfill] # rows\ntable = \"{table}\"\nkey = [\"{key}\"]\nstatement = \"b.sql\"\n"
        );
        write(&at, "change.toml", toml);
        let sql = format!("UPDATE {table} SET nick = name WHERE {key} > :from AND {key} <= :to;\n");
        write(&at, "b.sql", sql);
        let known = Known {
            server: catalog.server_major(),
            catalog: Some(&catalog),
        };
        let judged = run(&input(folder.path()), None, known).unwrap();
        match said {
            None => assert_eq!(judged, [], "{table} {key}"),
            Some(said) => {
                assert_eq!(judged[0].rules, ["backfill-key"]);
                assert!(judged[0].findings[0].message.contains(said), "{judged:?}");
                assert!(judged[0].file.ends_with("20261129T1030_a/change.toml"));
                assert_eq!((judged[0].line, judged[0].passes), (6, false));
            }
        }
        assert_eq!(run(&input(folder.path()), None, UNKNOWN).unwrap(), []);
    }
}

#[test]
fn a_backfill_that_does_not_name_its_range_is_found() {
    for (rows, said) in [
        ("id > :from AND id <= :to", None),
        ("id <= :to", Some("does not name :from")),
        ("id > :from -- :to", Some("does not name :to")),
        ("(id) > (:from) AND id::bigint <= :to::bigint", None),
        ("id BETWEEN :from AND :to", None),
        ("int8range(:from, :to, '(]') @> id", None),
        (
            "id > :from AND a = :to",
            Some(":to stands where it bounds nothing"),
        ),
        (
            "id <= :to AND :from::bigint = b",
            Some(":from stands where"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("20261129T1030_a");
        let toml = "format = 1\nid = \"20261129T1030_a\"\nschema = \"app\"\n[backfill]\ntable = \"t\"\nkey = [\"id\"]\nstatement = \"b.sql\"\n";
        write(&at, "change.toml", toml);
        write(&at, "b.sql", format!("UPDATE t SET a = b WHERE {rows};\n"));
        let judged = run(&input(folder.path()), None, UNKNOWN).unwrap();
        match said {
            None => assert_eq!(judged, []),
            Some(said) => {
                assert_eq!(judged[0].rules, ["backfill-range"]);
                assert!(judged[0].findings[0].message.contains(said), "{judged:?}");
                assert!(judged[0].file.ends_with("b.sql") && !judged[0].passes);
            }
        }
    }
}

#[test]
fn a_dual_write_that_has_another_value_each_time_is_found_on_its_line() {
    let told = |forward: &str, backward: &str| {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("20261129T1030_a");
        let toml = format!(
            "format = 1\nid = \"20261129T1030_a\"\nschema = \"app\"\n[expand]\nsql = \"e.sql\"\n[sync]\ntable = \"t\"\nold = [\"a\"]\nnew = [\"b\"]\n[sync.forward]\nb = \"{forward}\"\n[sync.backward]\na = \"{backward}\"\n"
        );
        write(&at, "change.toml", toml);
        write(&at, "e.sql", "ALTER TABLE t ADD COLUMN b text;\n");
        let judged = run(&input(folder.path()), None, UNKNOWN).unwrap();
        let of = judged
            .into_iter()
            .find(|one| one.rules == ["sync-volatile"]);
        of.map(|one| (one.line, one.passes, one.findings[0].message.clone()))
    };
    assert_eq!(told("upper(a)", "lower(b)"), None);
    assert_eq!(told("'now()' || a", "b"), None);
    let (line, passes, said) = told("a || random()", "b").unwrap();
    assert_eq!((line, passes), (11, false));
    assert!(said.starts_with("sync.forward.b: random() has"), "{said}");
    let (line, _, said) = told("a", "b || CURRENT_TIMESTAMP").unwrap();
    assert_eq!(line, 13, "{said}");
    assert!(told("coalesce(a, now()::text)", "b").is_some());
}

#[test]
fn an_override_that_nothing_needs_is_told_on_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("20261129T1030_a");
    let toml = "format = 1\nid = \"20261129T1030_a\"\nschema = \"app\"\n[expand]\nsql = \"e.sql\"\ncompatible = [\n  { rule = \"add-column\", reason = \"they name columns\" },\n  { rule = \"rename\", reason = \"add-column\" },\n]\n";
    write(&at, "change.toml", toml);
    write(&at, "e.sql", "ALTER TABLE t ADD COLUMN b text;\n");
    let judged = run(&input(folder.path()), None, UNKNOWN).unwrap();
    let unused: Vec<_> = judged
        .iter()
        .filter(|one| one.rules == ["unused-override"])
        .map(|one| one.line)
        .collect();
    assert_eq!(unused, [8], "{judged:?}");
}

#[test]
fn a_change_knows_what_the_changes_before_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let change = |id: &str, sql: &str| {
        let at = folder.path().join(id);
        let toml =
            format!("format = 1\nid = \"{id}\"\nschema = \"app\"\n[expand]\nsql = \"e.sql\"\n");
        write(&at, "change.toml", toml);
        write(&at, "e.sql", format!("{sql};\n"));
    };
    change(
        "20261101T0900_a",
        "CREATE TABLE p (id int, k int, at date) PARTITION BY RANGE (at)",
    );
    change("20261102T0900_b", "CREATE INDEX p_at ON ONLY p (at)");
    change("20261103T0900_c", "CREATE TABLE p (id int)");
    change("20261104T0900_d", "CREATE TABLE c (k int REFERENCES p (k))");
    let judged = run(&input(folder.path()), None, UNKNOWN).unwrap();
    let told: Vec<_> = judged
        .iter()
        .map(|one| (one.class.to_string(), one.rules.first().copied()))
        .collect();
    let of = |class: &str, rule| (class.to_owned(), rule);
    assert_eq!(
        told,
        [
            of("A", None),
            of("A", None),
            of("E", Some("already-there")),
            of("E", Some("foreign-key-target")),
        ]
    );
}

#[test]
fn sarif_has_what_its_schema_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a b.sql", "DROP TABLE a;\n");
    let log = sarif(&lint(folder.path()));
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        let place = &result["locations"][0]["physicalLocation"];
        assert!(place["region"]["startLine"].as_u64().unwrap() >= 1);
        assert!(
            place["artifactLocation"]["uri"]
                .as_str()
                .unwrap()
                .ends_with("a%20b.sql")
        );
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
    }
}

#[test]
fn what_servers_were_measured_to_scan_or_rewrite_under_a_strong_lock_is_never_class_a() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for major in [14, 15, 16, 17, 18] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../aegis-ddl/facts/pg{major}.json"));
        let facts: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for row in facts["rows"].as_array().unwrap() {
            let long = ["scans", "rewrites", "rebuilds"]
                .iter()
                .any(|what| !row[what].as_array().unwrap().is_empty());
            if !long || row["blocks_writes"] != true {
                continue;
            }
            seen += 1;
            let folder = tempfile::tempdir().unwrap();
            let statement = row["statement"].as_str().unwrap();
            write(folder.path(), "a.sql", format!("{statement};\n"));
            let known = Known {
                server: major,
                catalog: None,
            };
            let plain = Input {
                tool: Some(Tool::Plain),
                ..input(folder.path())
            };
            let judged = run(&plain, None, known).unwrap();
            let silent = judged.iter().all(|one| {
                one.class == aegis_ddl::Class::A
                    && one.findings.iter().all(|f| f.class == aegis_ddl::Class::A)
            });
            if silent {
                wrong.push(format!(
                    "{major} {} {}: {statement}",
                    row["form"], row["with"]
                ));
            }
        }
    }
    assert!(seen > 500, "{seen} rows");
    assert!(
        wrong.is_empty(),
        "{} of {seen}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn the_key_of_a_backfill_is_judged_of_the_tables_that_its_job_walks() {
    let db = TestDb::empty().await;
    let tables = "CREATE SCHEMA app; CREATE TABLE app.t (id bigint NOT NULL, name text, nick text) PARTITION BY RANGE (id);
        CREATE TABLE app.t1 PARTITION OF app.t DEFAULT; CREATE UNIQUE INDEX ON app.t1 (id)";
    db.admin.batch_execute(tables).await.unwrap();
    let scope = aegis_catalog::Scope::schemas(["app".to_owned()]).structure_only();
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    let statement = "[backfill]\ntable = \"t\"\nkey = [\"id\"]\nstatement = \"b.sql\"\n";
    let sync = "[sync]\ntable = \"t\"\nold = [\"name\"]\nnew = [\"nick\"]\n[sync.forward]\nnick = \"name\"\n\
                [sync.backward]\nname = \"nick\"\n[backfill]\nkey = [\"id\"]\nset = \"sync.forward\"\n";
    let index = "[migrate]\nsql = \"m.sql\"\n";
    for (toml, is_told) in [
        (statement.to_owned(), true),
        (format!("{index}{statement}"), false),
        (sync.to_owned(), false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("20261129T1030_a");
        let head = "format = 1\nid = \"20261129T1030_a\"\nschema = \"app\"\n";
        write(&at, "change.toml", format!("{head}{toml}"));
        if toml.contains("b.sql") {
            let sql = "UPDATE t SET nick = name WHERE id > :from AND id <= :to;\n";
            write(&at, "b.sql", sql);
        }
        if toml.contains("m.sql") {
            write(&at, "m.sql", "ALTER TABLE t ADD UNIQUE (id);\n");
        }
        let known = Known {
            server: catalog.server_major(),
            catalog: Some(&catalog),
        };
        let judged = run(&input(folder.path()), None, known).unwrap();
        let told = judged.iter().find(|one| one.rules == ["backfill-key"]);
        assert_eq!(told.is_some(), is_told, "{toml}: {judged:?}");
        let said = told.map_or("", |told| &told.findings[0].message);
        assert!(!is_told || said.contains("app.t has no valid unique index"));
    }
}
