//! `lint` on the folders of other tools: whose each is, what goes back, and what the tool does around a file.

use std::path::Path;

use aegis_migrate::foreign::Tool;
use aegis_migrate::lint::{Input, Judged, Known, run};

const UNKNOWN: Known<'static> = Known {
    server: 18,
    catalog: None,
};

/// Names and texts.
type Files<'a> = Vec<(&'a str, &'a str)>;

/// A statement that is refused everywhere.
const BAD: &str = "ALTER TABLE users ALTER COLUMN age SET NOT NULL;\n";
const BUILD: &str = "CREATE INDEX CONCURRENTLY i ON users (age);\n";
const BUILDS: &str =
    "CREATE INDEX CONCURRENTLY i ON users (age);\nCREATE INDEX CONCURRENTLY j ON users (name);\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn input(path: &Path) -> Input {
    Input {
        path: path.to_path_buf(),
        tool: None,
        schema: "public".to_owned(),
    }
}

fn lint(path: &Path) -> Vec<Judged> {
    run(&input(path), None, UNKNOWN).unwrap()
}

fn refused(judged: &[Judged]) -> Vec<(String, usize)> {
    let refused = judged.iter().filter(|one| !one.passes);
    refused
        .map(|one| {
            let name = one.file.rsplit('/').next().unwrap();
            (name.to_owned(), one.line)
        })
        .collect()
}

fn all_rules(judged: &[Judged]) -> Vec<&str> {
    judged
        .iter()
        .filter(|one| !one.passes)
        .flat_map(|one| one.rules.iter().copied())
        .collect()
}

#[test]
fn the_folder_of_each_tool_is_known_and_what_goes_back_is_left_out() {
    let down = "DROP TABLE users;\n";
    let goose = format!("-- +goose Up\n{BAD}-- +goose Down\n{down}");
    let mate = format!("-- migrate:up\n{BAD}-- migrate:down\n{down}");
    let node = format!("-- Up Migration\n{BAD}-- Down Migration\n{down}");
    let changes = format!("--liquibase formatted sql\n--changeset a:1\n{BAD}--rollback {down}");
    let at = "m/20260101000000_a";
    let (up, undo, sql) = (
        format!("{at}.up.sql"),
        format!("{at}.down.sql"),
        format!("{at}.sql"),
    );
    let cases: Vec<(Tool, &str, Files<'_>, (&str, usize))> = vec![
        (
            Tool::Sqlx,
            "m",
            vec![(&up, BAD), (&undo, down), ("Cargo.toml", "sqlx = \"0.9\"")],
            ("20260101000000_a.up.sql", 1),
        ),
        (
            Tool::Sqlx,
            "m",
            vec![(&sql, BAD)],
            ("20260101000000_a.sql", 1),
        ),
        (
            Tool::Sqlx,
            "m",
            vec![("m/1_a.sql", BAD), ("Cargo.toml", "sqlx = \"0.9\"")],
            ("1_a.sql", 1),
        ),
        (
            Tool::GolangMigrate,
            "m",
            vec![(&up, BAD), (&undo, down)],
            ("20260101000000_a.up.sql", 1),
        ),
        (
            Tool::Goose,
            "m",
            vec![("m/00001_a.sql", &goose)],
            ("00001_a.sql", 2),
        ),
        (
            Tool::Flyway,
            "m",
            vec![("m/V1__a.sql", BAD), ("m/U1__a.sql", down)],
            ("V1__a.sql", 1),
        ),
        (
            Tool::Refinery,
            "m",
            vec![
                ("m/V1__a.sql", "SELECT 1;\n"),
                ("m/U2__b.sql", BAD),
                ("Cargo.toml", "refinery = \"0.9\""),
            ],
            ("U2__b.sql", 1),
        ),
        (
            Tool::Liquibase,
            "m",
            vec![
                ("m/a.sql", &changes),
                ("m/changelog.xml", "<include file=\"a.sql\"/>"),
            ],
            ("a.sql", 3),
        ),
        (
            Tool::Dbmate,
            "m",
            vec![(&sql, &mate)],
            ("20260101000000_a.sql", 2),
        ),
        (
            Tool::NodePgMigrate,
            "m",
            vec![("m/1767225600000_a.sql", &node)],
            ("1767225600000_a.sql", 2),
        ),
        (
            Tool::Diesel,
            "m",
            vec![
                ("m/2026-01-01-000000_a/up.sql", BAD),
                ("m/2026-01-01-000000_a/down.sql", down),
            ],
            ("up.sql", 1),
        ),
        (
            Tool::Prisma,
            "m",
            vec![
                ("m/20260101_a/migration.sql", BAD),
                ("m/migration_lock.toml", ""),
            ],
            ("migration.sql", 1),
        ),
        (
            Tool::Supabase,
            "supabase/migrations",
            vec![("supabase/migrations/20260101000000_a.sql", BAD)],
            ("20260101000000_a.sql", 1),
        ),
        (
            Tool::Atlas,
            "m",
            vec![(&sql, BAD), ("m/atlas.sum", "h1:x")],
            ("20260101000000_a.sql", 1),
        ),
        (
            Tool::Sqitch,
            "m",
            vec![
                ("m/sqitch.plan", "%project=a\n"),
                ("m/deploy/a.sql", BAD),
                ("m/revert/a.sql", down),
                ("m/verify/a.sql", "SELECT 1/0;\n"),
            ],
            ("a.sql", 1),
        ),
    ];
    for (tool, below, files, (name, line)) in cases {
        let place = folder(&files);
        let path = place.path().join(below);
        assert_eq!(input(&path).read_as().unwrap(), Some(tool), "{files:?}");
        let judged = lint(&path);
        assert_eq!(
            refused(&judged),
            [(name.to_owned(), line)],
            "{tool}: {judged:?}"
        );
        // A file of it that is named alone is read the same way.
        let file = Path::new(&judged.iter().find(|one| !one.passes).unwrap().file).to_path_buf();
        assert_eq!(
            input(&file).read_as().unwrap(),
            Some(tool),
            "{}",
            file.display()
        );
        assert_eq!(refused(&lint(&file)), [(name.to_owned(), line)], "{tool}");
        assert_eq!(tool.word().parse::<Tool>().unwrap(), tool);
    }
    for plain in ["002.sql", "001_a.sql", "whatever.sql"] {
        let place = folder(&[(plain, BAD)]);
        let read_as = input(place.path()).read_as().unwrap();
        assert_eq!(read_as, Some(Tool::Plain), "{plain}");
        assert_eq!(refused(&lint(place.path())), [(plain.to_owned(), 1)]);
    }
}

#[test]
fn what_cannot_be_in_a_transaction_passes_where_the_tool_begins_none() {
    let outside = format!("-- no-transaction\n{BUILD}");
    let both = format!("-- no-transaction\n{BUILDS}");
    let goose = format!("-- +goose NO TRANSACTION\n-- +goose Up\n{BUILDS}");
    let mate = format!("-- migrate:up transaction:false\n{BUILD}");
    let mates = format!("-- migrate:up transaction:false\n{BUILDS}");
    let atlas = format!("-- atlas:txmode none\n\n{BUILDS}");
    let changes =
        format!("--liquibase formatted sql\n--changeset a:1 runInTransaction:false\n{BUILDS}");
    let within = format!("--liquibase formatted sql\n--changeset a:1\n{BUILD}");
    let plan = ("sqitch.plan", "%project=a\n");
    let long = "20260101000000_a.sql";
    let no = ("m/a/metadata.toml", "run_in_transaction = false\n");
    let cases: Vec<(Files<'_>, &[&str])> = vec![
        (vec![(long, BUILD)], &["concurrently-in-transaction"]),
        (vec![(long, &outside)], &[]),
        (
            vec![(long, &both)],
            &["concurrently-in-transaction", "one-query"],
        ),
        (vec![("00001_a.sql", &goose)], &[]),
        (vec![(long, &mate)], &[]),
        (vec![(long, &mates)], &["one-query"]),
        (vec![(long, &atlas)], &[]),
        (vec![("a.sql", &changes)], &[]),
        (vec![("a.sql", &within)], &["concurrently-in-transaction"]),
        (vec![("V1__a.sql", BUILDS)], &[]),
        (
            vec![
                ("V1__a.sql", BUILD),
                (
                    "V2__b.sql",
                    "SELECT 1;\nCREATE INDEX CONCURRENTLY i ON users (age);\n",
                ),
            ],
            &["concurrently-in-transaction"],
        ),
        (vec![("1_a.up.sql", BUILD)], &[]),
        (vec![("1_a.up.sql", BUILDS)], &["one-query"]),
        (vec![("m/a/migration.sql", BUILD)], &[]),
        (vec![("m/a/migration.sql", BUILDS)], &["one-query"]),
        (
            vec![("m/a/up.sql", BUILD)],
            &["concurrently-in-transaction"],
        ),
        (vec![("m/a/up.sql", BUILD), no], &[]),
        (vec![plan, ("deploy/a.sql", BUILDS)], &[]),
        (
            vec![
                plan,
                (
                    "deploy/a.sql",
                    "BEGIN;\nCREATE INDEX CONCURRENTLY i ON users (age);\nCOMMIT;\n",
                ),
            ],
            &["concurrently-in-transaction"],
        ),
        (vec![("002.sql", BUILD)], &[]),
        (vec![("002.sql", BUILDS)], &[]),
    ];
    for (files, wanted) in cases {
        let place = folder(&files);
        let judged = lint(place.path());
        let rules = all_rules(&judged);
        assert_eq!(rules.is_empty(), wanted.is_empty(), "{files:?}: {judged:?}");
        for rule in wanted {
            assert!(rules.contains(rule), "{files:?}: {rules:?}");
        }
    }
    let place = folder(&[("002.sql", BUILD)]);
    let judged = lint(place.path());
    assert_eq!(judged[0].class, aegis_ddl::Class::C);
    assert!(
        judged[0].rules.contains(&"outside-transaction"),
        "{judged:?}"
    );
}

#[test]
fn a_transaction_in_the_tools_transaction_is_a_finding_that_says_what_happens() {
    let text = "BEGIN;\nCREATE TABLE a (id bigint);\nSAVEPOINT x;\nROLLBACK TO x;\nCOMMIT;\n";
    let goose = format!("-- +goose Up\n{text}");
    for (files, lines) in [
        (vec![("20260101000000_a.sql", text)], vec![1, 5]),
        (vec![("00001_a.sql", goose.as_str())], vec![2, 6]),
        (vec![("V1__a.sql", text)], vec![1, 5]),
        (vec![("1_a.up.sql", text)], vec![]),
        (vec![("sqitch.plan", ""), ("deploy/a.sql", text)], vec![]),
        (vec![("a.sql", text)], vec![]),
    ] {
        let place = folder(&files);
        let judged = lint(place.path());
        let seen: Vec<usize> = refused(&judged).iter().map(|(_, line)| *line).collect();
        assert_eq!(seen, lines, "{files:?}: {judged:?}");
        if let [first, last] = &judged.iter().filter(|one| !one.passes).collect::<Vec<_>>()[..] {
            let said = |one: &Judged| one.findings.last().unwrap().message.clone();
            assert!(said(first).contains("has begun a transaction"), "{first:?}");
            assert!(said(last).contains("ends the transaction of"), "{last:?}");
        }
    }
}

#[test]
fn rows_of_a_dump_are_data_where_psql_reads_them_and_no_sql_elsewhere() {
    let dump =
        "CREATE TABLE a (b text);\nCOPY public.a (b) FROM stdin;\nit's; (\n\\.\n\nDROP TABLE z;\n";
    for name in ["dump.sql", "structure.sql"] {
        let place = folder(&[(name, dump)]);
        let judged = lint(place.path());
        let lines: Vec<usize> = judged.iter().map(|one| one.line).collect();
        assert_eq!(lines, [1, 2, 6], "{judged:?}");
        assert!(!judged.iter().any(|one| one.rules.contains(&"unreadable")));
    }
    let place = folder(&[("20260101000000_a.sql", dump)]);
    let judged = lint(place.path());
    assert_eq!(judged[0].rules, ["unreadable"]);
    assert!(judged[0].findings[0].message.contains("rows of COPY"));
}

#[test]
fn placeholders_are_filled_from_the_configuration_or_noted() {
    let sql = "CREATE TABLE ${schema}.a (id bigint);\nDROP TABLE ${schema}.b;\n";
    let conf = ("flyway.conf", "flyway.placeholders.schema=orders\n");
    let place = folder(&[("sql/V1__a.sql", sql), conf]);
    let judged = lint(&place.path().join("sql"));
    assert!(judged[1].statement.contains("orders.b"), "{judged:?}");
    assert!(!judged[1].rules.contains(&"placeholder"));
    let place = folder(&[("sql/V1__a.sql", sql)]);
    let judged = lint(&place.path().join("sql"));
    assert_eq!(refused(&judged), [("V1__a.sql".to_owned(), 2)]);
    assert!(
        judged[0].passes && judged[0].rules == ["placeholder"],
        "{judged:?}"
    );
    let goose = "-- +goose Up\n-- +goose ENVSUB ON\nDROP TABLE ${APP}_users;\n";
    let place = folder(&[("00001_a.sql", goose)]);
    let judged = lint(place.path());
    assert!(
        judged[0].statement.contains("placeholder_app_users"),
        "{judged:?}"
    );
}

#[test]
fn migrations_in_another_language_are_named() {
    for (files, said) in [
        (
            vec![("V1__a.sql", "SELECT 1;\n"), ("V2__b.rs", "")],
            "V2__b.rs: a migration written in Rust",
        ),
        (
            vec![
                ("00001_a.sql", "-- +goose Up\nSELECT 1;\n"),
                ("00002_b.go", ""),
            ],
            "00002_b.go: a migration written in Go",
        ),
        (
            vec![("1_a.sql", "-- Up Migration\nSELECT 1;\n"), ("2_b.js", "")],
            "2_b.js: a migration written in JavaScript",
        ),
        (
            vec![
                (
                    "a.sql",
                    "--liquibase formatted sql\n--changeset a:1\nSELECT 1;\n",
                ),
                ("b.yaml", "- changeSet:\n"),
            ],
            "b.yaml: a changelog with changes that are no SQL",
        ),
    ] {
        // The others are judged all the same.
        let place = folder(&files);
        let judged = lint(place.path());
        let (name, message) = said.split_once(": ").unwrap();
        let is_it = |one: &&Judged| !one.passes && one.file.ends_with(name);
        let told = judged.iter().find(is_it).unwrap();
        assert_eq!(told.rules, ["unreadable"]);
        assert!(told.findings[0].message.starts_with(message), "{told:?}");
        assert!(judged.iter().any(|one| one.statement == "SELECT 1"));
    }
    let place = folder(&[("V1__a.rs", "")]);
    let alone = Input {
        tool: Some(Tool::Refinery),
        ..input(place.path())
    };
    let told = run(&alone, None, UNKNOWN).unwrap_err();
    assert_eq!(told.exit_code(), 2);
    assert!(told.to_string().contains("written in Rust"), "{told}");
    let wrong = "atlass".parse::<Tool>().unwrap_err();
    assert!(
        wrong.contains("golang-migrate") && wrong.contains("sqitch"),
        "{wrong}"
    );
}

#[test]
fn atlas_keeps_its_sum_beside_the_formats_of_others() {
    let pair = folder(&[
        ("atlas.sum", "h1:x\n"),
        ("1_a.up.sql", "ALTER TABLE t ADD COLUMN a int;\n"),
        ("1_a.down.sql", "ALTER TABLE t DROP COLUMN a;\n"),
    ]);
    assert!(refused(&lint(pair.path())).is_empty());
    let goose = folder(&[
        ("atlas.sum", "h1:x\n"),
        (
            "1_a.sql",
            "-- +goose Up\nALTER TABLE t ADD COLUMN a int;\n-- +goose Down\nDROP TABLE t;\n",
        ),
    ]);
    assert!(refused(&lint(goose.path())).is_empty());
    let flyway = folder(&[
        ("atlas.sum", "h1:x\n"),
        ("V2__a.sql", "CREATE TABLE n (a int);\n"),
        ("V10__b.sql", "ALTER TABLE n ALTER COLUMN a TYPE int;\n"),
        ("U10__b.sql", "DROP TABLE n;\n"),
    ]);
    assert!(refused(&lint(flyway.path())).is_empty());
}

#[test]
fn templates_of_a_program_are_read_as_names() {
    let place = folder(&[(
        "1_a.up.sql",
        "ALTER TABLE {{ index .Options \"Namespace\" }}.users\n  DROP COLUMN a;\n",
    )]);
    let judged = lint(place.path());
    assert_eq!(refused(&judged), [("1_a.up.sql".to_owned(), 1)]);
    assert_eq!(judged[0].rules, ["drop-column", "placeholder"]);
}

#[test]
fn sqitch_runs_in_the_order_of_its_plan() {
    let plan = "%syntax-version=1.0.0\n%project=a\n\nzebra 2026-01-01T00:00:00Z A <a@b.c> # first\napple [zebra] 2026-01-02T00:00:00Z A <a@b.c>\n";
    let place = folder(&[
        ("sqitch.plan", plan),
        (
            "deploy/apple.sql",
            "ALTER TABLE zebra ADD CONSTRAINT c CHECK (id > 0);\n",
        ),
        ("deploy/zebra.sql", "CREATE TABLE zebra (id bigint);\n"),
    ]);
    let files: Vec<String> = lint(place.path())
        .iter()
        .map(|one| one.file.rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(files, ["zebra.sql", "apple.sql"]);
}
