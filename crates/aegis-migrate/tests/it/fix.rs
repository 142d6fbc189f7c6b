//! `lint --fix`: what it makes is clean, the same when made again, and gives the structure of the original on a real server.

use std::collections::BTreeMap;
use std::path::Path;

use aegis_migrate::change::{self, Phase};
use aegis_migrate::fix;
use aegis_migrate::lint::{Input, Known, run as lint};
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_testkit::TestDb;

const UNKNOWN: Known<'static> = Known {
    server: 18,
    catalog: None,
};
const ID: &str = "20261130T0900_a";

/// What is there before each change.
const BASE: &str = "CREATE SCHEMA app; SET search_path = app;
    CREATE TABLE orgs (id bigint PRIMARY KEY, code text);
    CREATE TABLE users (id bigint PRIMARY KEY, name text, age int, email text, org_id bigint, born date NOT NULL DEFAULT '2000-01-01');
    CREATE INDEX users_name ON users (name);
    CREATE INDEX users_age ON users (age);
    INSERT INTO orgs VALUES (1, 'a'); INSERT INTO users VALUES (1, 'ada', 36, 'ada@example.org', 1);
    RESET search_path";

struct Case {
    sql: &'static str,
    /// Rules with a reason.
    compatible: &'static [&'static str],
    /// What a backfill would do.
    between: &'static str,
}

const fn case(sql: &'static str, compatible: &'static [&'static str]) -> Case {
    Case {
        sql,
        compatible,
        between: "",
    }
}

fn cases() -> Vec<Case> {
    const WRITES: &[&str] = &["new-write-restriction"];
    const NOT_NULL: &[&str] = &["set-not-null"];
    vec![
        case(
            "-- by org\nCREATE INDEX users_org ON users (org_id); -- beside\nALTER TABLE users ADD COLUMN nick text;",
            &[],
        ),
        case(
            "CREATE INDEX IF NOT EXISTS users_mail ON users USING btree (lower(email)) WHERE age > 0",
            &[],
        ),
        case(
            "CREATE UNIQUE INDEX users_email ON users (email);\nALTER TABLE users ADD CONSTRAINT users_email_u UNIQUE USING INDEX users_email;",
            WRITES,
        ),
        case("DROP INDEX users_name, users_age;", &[]),
        case(
            "ALTER TABLE users ADD CHECK (age > 0), ADD CHECK (age < 200), ADD CHECK (age <> id);",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD FOREIGN KEY (org_id) REFERENCES orgs, ADD FOREIGN KEY (org_id) REFERENCES orgs (id) ON DELETE CASCADE;",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD COLUMN x int DEFAULT 1 CHECK (x > 0) CHECK (x < 9) CHECK (x <> age) CHECK (age > 0);",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD CONSTRAINT users_age_check CHECK (age > 0);\nALTER TABLE users ADD CHECK (age < 200);",
            WRITES,
        ),
        case(
            "CREATE TABLE tags (a int UNIQUE);\nALTER TABLE users ADD UNIQUE (email) INCLUDE (name);\nALTER TABLE users ADD UNIQUE (email) INCLUDE (name, age);\nALTER TABLE users ADD UNIQUE (email);\nALTER TABLE users ADD UNIQUE (email);",
            WRITES,
        ),
        case("REINDEX (VERBOSE) TABLE users;", &[]),
        case(
            "ALTER TABLE users ADD CONSTRAINT adult CHECK (age > 17);",
            WRITES,
        ),
        case("ALTER TABLE users ADD CHECK (age > 17);", WRITES),
        case(
            "ALTER TABLE users ADD CHECK (age > 17 OR name <> '') NO INHERIT;",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD CONSTRAINT org FOREIGN KEY (org_id) REFERENCES orgs (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;",
            WRITES,
        ),
        case(
            "ALTER TABLE ONLY users ADD FOREIGN KEY (org_id) REFERENCES orgs;",
            WRITES,
        ),
        case(
            "ALTER TABLE users ALTER COLUMN name SET NOT NULL;",
            NOT_NULL,
        ),
        case("ALTER TABLE users ALTER COLUMN name SET NOT NULL;", &[]),
        case(
            "ALTER TABLE users ADD CONSTRAINT users_mail UNIQUE (email);",
            WRITES,
        ),
        case("ALTER TABLE users ADD UNIQUE (email, name);", WRITES),
        case(
            "ALTER TABLE users ADD CONSTRAINT users_mail UNIQUE (email) INCLUDE (name) DEFERRABLE INITIALLY DEFERRED;",
            WRITES,
        ),
        case(
            "CREATE TABLE logs (id bigint);\nALTER TABLE logs ADD PRIMARY KEY (id);\nALTER TABLE orgs DROP CONSTRAINT orgs_pkey;",
            &[],
        ),
        case(
            "ALTER TABLE users ADD COLUMN token uuid DEFAULT gen_random_uuid();",
            &[],
        ),
        Case {
            sql: "ALTER TABLE users ADD COLUMN token uuid NOT NULL DEFAULT gen_random_uuid();",
            compatible: &[],
            between: "UPDATE app.users SET token = gen_random_uuid() WHERE token IS NULL",
        },
        Case {
            sql: "ALTER TABLE users ADD COLUMN \"serial\" bigserial NOT NULL UNIQUE;",
            compatible: WRITES,
            between: "UPDATE app.users SET serial = nextval('app.users_serial_seq')",
        },
        case(
            "ALTER TABLE users ADD COLUMN level int DEFAULT 1 CONSTRAINT positive CHECK (level > 0);",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD COLUMN level int CHECK (level > 0) UNIQUE;",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD COLUMN \"Org\" bigint DEFAULT 1 REFERENCES orgs (id) ON DELETE SET NULL;",
            WRITES,
        ),
        case(
            "ALTER TABLE users ADD COLUMN a int, ADD COLUMN b uuid DEFAULT gen_random_uuid(), ADD CONSTRAINT c CHECK (a > 0);",
            WRITES,
        ),
        case(
            "ALTER TABLE orgs ADD CONSTRAINT orgs_code UNIQUE (code);\nALTER TABLE users ADD COLUMN org_code text;\nALTER TABLE users ADD CONSTRAINT by_code FOREIGN KEY (org_code) REFERENCES orgs (code);",
            WRITES,
        ),
        case("ALTER TABLE users DROP COLUMN age;", &[]),
        case(
            "ALTER TABLE users ADD COLUMN nick text;\nDROP TABLE orgs CASCADE;",
            &[],
        ),
        case(
            "CREATE INDEX CONCURRENTLY users_org ON users (org_id);\nCOMMENT ON INDEX users_org IS 'by org';",
            &[],
        ),
        case(
            "ALTER TABLE users ADD CONSTRAINT adult CHECK (age > 17) NOT VALID;\nALTER TABLE users VALIDATE CONSTRAINT adult;",
            WRITES,
        ),
    ]
}

fn write(folder: &Path, case: &Case) {
    let at = folder.join(ID);
    std::fs::create_dir_all(&at).unwrap();
    let reasons: Vec<String> = case
        .compatible
        .iter()
        .map(|rule| format!("{{ rule = \"{rule}\", reason = \"every version does\" }}"))
        .collect();
    let document = format!(
        "# what it is for\nformat = 1\nid = \"{ID}\"\nschema = \"app\"\n\n[expand] # short\nsql = \"expand.sql\"\n{}",
        if reasons.is_empty() {
            String::new()
        } else {
            format!("compatible = [{}]\n", reasons.join(", "))
        }
    );
    std::fs::write(at.join("change.toml"), document).unwrap();
    std::fs::write(at.join("expand.sql"), case.sql).unwrap();
}

fn all_files(folder: &Path) -> BTreeMap<String, String> {
    std::fs::read_dir(folder.join(ID))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn input(path: &Path) -> Input {
    Input {
        path: path.to_path_buf(),
        tool: None,
        schema: "public".to_owned(),
    }
}

#[test]
fn what_is_made_is_clean_and_the_same_when_made_again() {
    let mut wrong = Vec::new();
    for case in cases() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &case);
        let before = lint(&input(place.path()), None, UNKNOWN).unwrap();
        assert!(before.iter().any(|one| !one.passes), "{}", case.sql);
        let fixed = fix::run(place.path(), UNKNOWN).unwrap();
        let first = all_files(place.path());
        if fixed.files.is_empty() || !fixed.told.is_empty() {
            wrong.push(format!("{}: {:?}", case.sql, fixed.told));
        }
        for one in lint(&input(place.path()), None, UNKNOWN).unwrap() {
            if !one.passes {
                wrong.push(format!(
                    "{}:\n  {} {:?}\n  {first:?}",
                    case.sql, one.statement, one.rules
                ));
            }
        }
        let again = fix::run(&place.path().join(ID), UNKNOWN).unwrap();
        if !again.files.is_empty() || all_files(place.path()) != first {
            wrong.push(format!("{}: the second time {:?}", case.sql, again.files));
        }
        let document = &first["change.toml"];
        assert!(document.starts_with("# what it is for\n"), "{document}");
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn what_is_made_gives_the_structure_of_the_original_on_a_server() {
    let mut wrong = Vec::new();
    let db = TestDb::empty().await;
    for case in cases() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &case);
        let mut structures = Vec::new();
        for is_fixed in [false, true] {
            if is_fixed {
                fix::run(place.path(), UNKNOWN).unwrap();
            }
            db.admin
                .batch_execute("DROP SCHEMA IF EXISTS app CASCADE")
                .await
                .unwrap();
            db.admin.batch_execute(BASE).await.unwrap();
            let set = Set::read(place.path()).unwrap();
            let change = change::load(&place.path().join(ID)).unwrap();
            for phase in [Phase::Expand, Phase::Migrate, Phase::Contract] {
                if phase == Phase::Contract {
                    db.admin.batch_execute(case.between).await.unwrap();
                }
                if change.has(phase)
                    && let Err(error) = shadow::apply(&db.admin, &change, phase).await
                {
                    wrong.push(format!(
                        "{}: {error:?}\n{:?}",
                        case.sql,
                        all_files(place.path())
                    ));
                }
            }
            structures.push(shadow::structure(&db.admin, &set, None).await.unwrap());
        }
        let [original, made] = structures.as_slice() else {
            unreachable!();
        };
        let keys = original.elements.keys().chain(made.elements.keys());
        let different: Vec<_> = keys
            .filter(|key| original.elements.get(key) != made.elements.get(key))
            .map(|key| {
                format!(
                    "{key:?}: {:?} / {:?}",
                    original.elements.get(key),
                    made.elements.get(key)
                )
            })
            .collect();
        if !different.is_empty() {
            wrong.push(format!("{}: {}", case.sql, different.join("\n  ")));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_is_sealed_is_told_and_never_edited() {
    let place = tempfile::tempdir().unwrap();
    let case = case("CREATE INDEX users_org ON users (org_id);\n", &[]);
    write(place.path(), &case);
    let set = Set::read(place.path()).unwrap();
    let mut lock = set.lock.clone();
    let at = set.unsealed().remove(0);
    let sha256 = set.changes[&at.id].sha256(at.phase).unwrap();
    lock.append(at, sha256);
    std::fs::write(place.path().join("migrations.lock"), lock.text()).unwrap();
    let before = all_files(place.path());
    let fixed = fix::run(place.path(), UNKNOWN).unwrap();
    assert_eq!(fixed.files, []);
    assert_eq!(all_files(place.path()), before);
    assert_eq!(fixed.told.len(), 1);
    assert!(
        fixed.told[0].what.starts_with("it is sealed") && fixed.told[0].line == 1,
        "{:?}",
        fixed.told
    );
}

#[test]
fn what_needs_a_person_is_told_with_its_place_and_left_as_it_is() {
    for (sql, said) in [
        (
            "ALTER TABLE users ADD CONSTRAINT c CHECK (age > 0) NOT VALID;\n",
            "[new-write-restriction]",
        ),
        ("UPDATE users SET age = 1;\n", "[dml-bulk]"),
        (
            "ALTER TABLE users ALTER age TYPE bigint;\n",
            "[change-type-rewrite]",
        ),
        ("ALTER TABLE users RENAME name TO nick;\n", "[rename]"),
        (
            "ALTER TABLE users ADD n int GENERATED ALWAYS AS IDENTITY;\n",
            "add n as a plain column, and make it an identity when every row has a number",
        ),
        (
            "ALTER TABLE users ADD n int GENERATED ALWAYS AS (age + 1) STORED;\n",
            "VIRTUAL needs no rewrite, where it need not be indexed; or add n as a plain column that a trigger sets",
        ),
        (
            "ALTER TABLE users ATTACH PARTITION orgs FOR VALUES FROM (1) TO (2);\n",
            "with a catalog --fix writes that for a range over one column",
        ),
        ("DROP INDEX users_name CASCADE;\n", "takes no CASCADE"),
        (
            "ALTER TABLE users ADD n int NOT NULL;\n",
            "[add-required-column]",
        ),
    ] {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &case(sql, &[]));
        let before = all_files(place.path());
        let fixed = fix::run(place.path(), UNKNOWN).unwrap();
        assert_eq!(fixed.files, [], "{sql}");
        assert_eq!(all_files(place.path()), before);
        assert_eq!(fixed.told.len(), 1, "{sql}: {:?}", fixed.told);
        let told = &fixed.told[0];
        assert!(told.what.contains(said), "{told:?}");
        assert!(
            told.file.ends_with("expand.sql") && told.line == 1,
            "{told:?}"
        );
    }
}

#[test]
fn what_waits_for_a_backfill_comes_after_it_and_old_files_are_added_to() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path().join(ID);
    let sql = "ALTER TABLE users ADD CONSTRAINT c CHECK (age > 0);\nCREATE INDEX i ON users (age);\nALTER TABLE users DROP COLUMN born;\n";
    write(place.path(), &case(sql, &["new-write-restriction"]));
    let more = "[migrate]\nsql = \"before.sql\"\n[backfill]\ntable = \"users\"\nkey = [\"id\"]\nstatement = \"fill.sql\"\n[contract]\nsql = \"last.sql\"\nobserve = \"1h\"\nevidence = [\"clients\"]\n";
    let document = std::fs::read_to_string(at.join("change.toml")).unwrap() + more;
    std::fs::write(at.join("change.toml"), document).unwrap();
    std::fs::write(at.join("before.sql"), "ANALYZE users -- no end\n").unwrap();
    let fill = "UPDATE users SET age = 1 WHERE id > :from AND id <= :to AND age IS NULL";
    std::fs::write(at.join("fill.sql"), fill).unwrap();
    std::fs::write(at.join("last.sql"), "DROP TABLE orgs;\n").unwrap();
    let fixed = fix::run(place.path(), UNKNOWN).unwrap();
    assert_eq!(fixed.told, []);
    let files = all_files(place.path());
    assert_eq!(
        files["before.sql"],
        "ANALYZE users -- no end\n;\nCREATE INDEX CONCURRENTLY i ON users (age);\n"
    );
    assert_eq!(
        files["after_backfill.sql"],
        "ALTER TABLE users VALIDATE CONSTRAINT c;\n"
    );
    assert_eq!(
        files["last.sql"],
        "DROP TABLE orgs;\nALTER TABLE users DROP COLUMN born;\n"
    );
    assert!(
        lint(&input(place.path()), None, UNKNOWN)
            .unwrap()
            .iter()
            .all(|one| one.passes)
    );
}

#[tokio::test]
async fn what_a_partitioned_table_refuses_is_told_when_the_catalog_says_that_it_is_one() {
    let db = TestDb::empty().await;
    let base = "CREATE SCHEMA app; CREATE TABLE app.users (id bigint NOT NULL, age int) PARTITION BY RANGE (id);
        CREATE TABLE app.users_1 PARTITION OF app.users FOR VALUES FROM (0) TO (100000);
        CREATE INDEX users_age ON app.users (age); CREATE TABLE app.orgs (id bigint PRIMARY KEY)";
    db.admin.batch_execute(base).await.unwrap();
    let scope = aegis_catalog::Scope::schemas(["app".to_owned()]).structure_only();
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    let known = Known {
        server: 17,
        catalog: Some(&catalog),
    };
    for (sql, said) in [
        (
            "CREATE INDEX i ON users (id, age);\n",
            "the table is partitioned",
        ),
        ("DROP INDEX users_age;\n", "cannot be dropped CONCURRENTLY"),
        (
            "ALTER TABLE users ADD UNIQUE (id);\n",
            "the table is partitioned",
        ),
        (
            "ALTER TABLE users ADD FOREIGN KEY (id) REFERENCES orgs (id);\n",
            "can be NOT VALID from 18 on",
        ),
    ] {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &case(sql, &["new-write-restriction"]));
        let fixed = fix::run(place.path(), known).unwrap();
        assert_eq!(fixed.files, [], "{sql}");
        assert!(
            fixed.told[0].what.starts_with(said) || fixed.told[0].what.contains(said),
            "{sql}: {:?}",
            fixed.told
        );
    }
}

#[tokio::test]
async fn a_partition_is_proven_before_it_is_attached_and_keeps_the_structure() {
    let db = TestDb::empty().await;
    let base =
        "CREATE SCHEMA app; CREATE TABLE app.events (id bigint, at date) PARTITION BY RANGE (at);
        CREATE TABLE app.june (id bigint, at date);
        CREATE TABLE app.old (id bigint, at date);
        INSERT INTO app.june VALUES (1, '2026-06-01');";
    let large = "INSERT INTO app.june SELECT n, '2026-06-02' FROM generate_series(1, 500000) n;
        INSERT INTO app.old SELECT n, '2025-06-02' FROM generate_series(1, 500000) n";
    db.admin.batch_execute(base).await.unwrap();
    db.admin.batch_execute(large).await.unwrap();
    let scope = aegis_catalog::Scope::schemas(["app".to_owned()]);
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    let known = Known {
        server: catalog.server_major(),
        catalog: Some(&catalog),
    };
    let sql = "ALTER TABLE events ATTACH PARTITION june FOR VALUES FROM ('2026-06-01') TO ('2026-07-01');\n\
        ALTER TABLE events ATTACH PARTITION old FOR VALUES FROM (MINVALUE) TO ('2026-01-01');\n";
    let place = tempfile::tempdir().unwrap();
    write(place.path(), &case(sql, &["new-write-restriction"]));
    let mut structures = Vec::new();
    for is_fixed in [false, true] {
        if is_fixed {
            let fixed = fix::run(place.path(), known).unwrap();
            assert_eq!(fixed.told, [], "{fixed:?}");
            let judged = lint(&input(place.path()), None, known).unwrap();
            assert!(judged.iter().all(|one| one.passes), "{judged:?}");
            let again = fix::run(&place.path().join(ID), known).unwrap();
            assert_eq!(again.files, []);
            let text = &all_files(place.path())["migrate.sql"];
            assert!(
                text.contains(
                    "CHECK (at IS NOT NULL AND at >= '2026-06-01' AND at < '2026-07-01') NOT VALID"
                ) && text.contains("CHECK (at IS NOT NULL AND at < '2026-01-01') NOT VALID")
                    && text.contains("DROP CONSTRAINT june_bound"),
                "{text}"
            );
        }
        db.admin
            .batch_execute(&format!("DROP SCHEMA app CASCADE; {base}"))
            .await
            .unwrap();
        let set = Set::read(place.path()).unwrap();
        let change = change::load(&place.path().join(ID)).unwrap();
        for phase in Phase::ALL {
            if change.has(phase) {
                shadow::apply(&db.admin, &change, phase).await.unwrap();
            }
        }
        structures.push(shadow::structure(&db.admin, &set, None).await.unwrap());
    }
    assert_eq!(structures[0].elements, structures[1].elements);
}

#[tokio::test]
async fn a_new_type_is_told_as_a_change_that_can_be_copied_and_read() {
    let db = TestDb::empty().await;
    db.admin.batch_execute(BASE).await.unwrap();
    let scope = aegis_catalog::Scope::schemas(["app".to_owned()]).structure_only();
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    for (known, backward) in [
        (
            Known {
                server: catalog.server_major(),
                catalog: Some(&catalog),
            },
            "\"age\" = \"age_new::integer\"\n",
        ),
        (
            UNKNOWN,
            "\"age\" = \"age_new::text\"        # the type that it has now\n",
        ),
    ] {
        let place = tempfile::tempdir().unwrap();
        write(
            place.path(),
            &case("ALTER TABLE users ALTER age TYPE bigint;\n", &[]),
        );
        let told = fix::run(place.path(), known).unwrap().told;
        let (_, skeleton) = told[0].what.split_once("change.toml:\n").unwrap();
        let skeleton = skeleton.split("; [").next().unwrap();
        assert!(skeleton.contains(backward), "{skeleton}");
        let document = format!("format = 1\nid = \"{ID}\"\nschema = \"app\"\n{skeleton}\n");
        let at = place.path().join(ID);
        std::fs::write(at.join("change.toml"), document).unwrap();
        std::fs::write(
            at.join("expand.sql"),
            "ALTER TABLE users ADD COLUMN age_new bigint;\n",
        )
        .unwrap();
        change::load(&at).unwrap();
        let judged = lint(&input(place.path()), None, known).unwrap();
        assert!(judged.iter().all(|one| one.passes), "{judged:?}");
    }
}

#[tokio::test]
async fn a_name_that_the_database_or_an_earlier_change_has_is_not_given_again() {
    let db = TestDb::empty().await;
    let base = "CREATE SCHEMA app; SET search_path = app; CREATE TABLE users (id bigint PRIMARY KEY, b int UNIQUE, age int CHECK (age > 0));
        CREATE SEQUENCE users_n_seq; RESET search_path";
    db.admin.batch_execute(base).await.unwrap();
    let scope = aegis_catalog::Scope::schemas(["app".to_owned()]).structure_only();
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    let sql = "ALTER TABLE users ADD UNIQUE (b);\nALTER TABLE users ADD CHECK (age < 200);\nALTER TABLE users ADD COLUMN n serial;\n";
    let of_catalog = Known {
        server: 18,
        catalog: Some(&catalog),
    };
    for known in [of_catalog, UNKNOWN] {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &case(sql, &["new-write-restriction"]));
        if known.catalog.is_none() {
            let before = place.path().join("20261129T0900_base");
            std::fs::create_dir(&before).unwrap();
            let document = "format = 1\nid = \"20261129T0900_base\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n";
            std::fs::write(before.join("change.toml"), document).unwrap();
            let text = "CREATE TABLE users (id bigint PRIMARY KEY, b int UNIQUE, age int CHECK (age > 0));\nCREATE SEQUENCE users_n_seq;\n";
            std::fs::write(before.join("expand.sql"), text).unwrap();
        }
        fix::run(&place.path().join(ID), known).unwrap();
        let all = all_files(place.path());
        let text = format!("{}{}", all["expand.sql"], all["migrate.sql"]);
        for name in [
            "ADD CONSTRAINT users_b_key1 UNIQUE",
            "ADD CONSTRAINT users_age_check1 CHECK",
            "CREATE SEQUENCE users_n_seq1",
        ] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}

#[test]
fn what_follows_a_drop_of_the_same_thing_is_not_torn_from_it() {
    for sql in [
        "ALTER TABLE users DROP CONSTRAINT users_pkey;\nALTER TABLE users ADD PRIMARY KEY (id, age);\n",
        "ALTER TABLE users DROP CONSTRAINT users_pkey, ADD PRIMARY KEY (id, age);\n",
        "ALTER TABLE users DROP CONSTRAINT c;\nALTER TABLE users ADD CONSTRAINT c CHECK (age > 0);\n",
        "ALTER TABLE users DROP COLUMN age;\nALTER TABLE users ADD COLUMN age text;\n",
        "DROP VIEW v;\nCREATE VIEW v AS SELECT 1;\n",
    ] {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), &case(sql, &[]));
        let fixed = fix::run(place.path(), UNKNOWN).unwrap();
        assert_eq!(fixed.files, [], "{sql}");
        assert!(
            fixed.told[0].what.contains("moved away from it"),
            "{sql}: {:?}",
            fixed.told
        );
    }
}
