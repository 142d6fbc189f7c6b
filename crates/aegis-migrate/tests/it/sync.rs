//! The generated trigger as a part of a change: in a run, on a fresh database, in a replay, and its end.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::repair::{self, RepairError};
use aegis_migrate::run::{Ladder, Outcome, RunError};
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_testkit::TestDb;

use crate::folder::Folder;
use crate::run::{held, ran, sealed};

const BOUND: Duration = Duration::from_secs(10);
const USERS: &str = "20261101T0900_users";
const SPLIT: &str = "20261129T1030_split";

const CHANGE: &str = r#"format = 1
id = "20261129T1030_split"
schema = "app"
[expand]
sql = "expand.sql"
compatible = [{ rule = "add-column", reason = "clients name their columns" }]
[sync]
table = "users"
old = ["name"]
new = ["first_name", "last_name"]
[sync.forward]
first_name = "split_part(name, ' ', 1) -- the first word"
last_name = "split_part(name, ' ', 2)"
[sync.backward]
name = "concat_ws(' ', first_name, last_name)"
"#;

const CONTRACT: &str = r#"[contract]
sql = "contract.sql"
observe = "1m"
evidence = ["sightings"]
"#;

fn users() -> Folder {
    let toml =
        format!("format = 1\nid = \"{USERS}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n");
    Folder::default()
        .with(&format!("{USERS}/change.toml"), toml)
        .with(
            &format!("{USERS}/expand.sql"),
            "CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL);\n",
        )
}

fn split(contract: bool) -> Folder {
    let toml = format!("{CHANGE}{}", if contract { CONTRACT } else { "" });
    let folder = users()
        .with(&format!("{SPLIT}/change.toml"), toml)
        .with(
            &format!("{SPLIT}/expand.sql"),
            "ALTER TABLE users ADD COLUMN first_name text;\nALTER TABLE users ADD COLUMN last_name text;\n",
        );
    if contract {
        folder.with(
            &format!("{SPLIT}/contract.sql"),
            "ALTER TABLE users DROP COLUMN name;\n",
        )
    } else {
        folder
    }
}

/// A database in use, in which the table of before stands.
async fn in_use() -> TestDb {
    let db = TestDb::empty().await;
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    ran(&db, &sealed(&users()), Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("INSERT INTO app.users VALUES (1, 'Ada Lovelace')")
        .await
        .unwrap();
    db
}

async fn row(db: &TestDb, id: i64) -> Vec<Option<String>> {
    let sql = "SELECT name, first_name, last_name FROM app.users WHERE id = $1";
    let row = db.admin.query_one(sql, &[&id]).await.unwrap();
    (0..3).map(|at| row.get(at)).collect()
}

fn words(words: [&str; 3]) -> Vec<Option<String>> {
    words.map(|word| Some(word.to_owned())).into()
}

#[tokio::test]
async fn a_run_makes_the_trigger_as_its_last_steps_of_class_a() {
    let db = in_use().await;
    let set = sealed(&split(false));
    let summary = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!((summary.outcome, summary.applied), (Outcome::Applied, 5));
    db.admin
        .batch_execute("INSERT INTO app.users (id, name) VALUES (2, 'Grace Hopper'); INSERT INTO app.users (id, first_name, last_name) VALUES (3, 'Barbara', 'Liskov')")
        .await
        .unwrap();
    assert_eq!(
        row(&db, 2).await,
        words(["Grace Hopper", "Grace", "Hopper"])
    );
    assert_eq!(
        row(&db, 3).await,
        words(["Barbara Liskov", "Barbara", "Liskov"])
    );
    let steps = "SELECT count(*) FROM aegis_migrate.step WHERE file LIKE '%[sync]' AND class = 'A' AND state = 'applied'";
    let count: i64 = db.admin.query_one(steps, &[]).await.unwrap().get(0);
    assert_eq!(count, 3);
    let again = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(again.outcome, Outcome::Nothing);
}

#[tokio::test]
async fn a_run_tells_what_the_new_side_cannot_give_back_and_no_value_of_it() {
    for (name, lost) in [("Grace Hopper", None), ("Grace Brewster Hopper", Some(1))] {
        let db = in_use().await;
        let insert = "INSERT INTO app.users (id, name) VALUES (2, $1)";
        db.admin.execute(insert, &[&name]).await.unwrap();
        let set = sealed(&split(false));
        ran(&db, &set, Phase::Expand).await.unwrap();
        let told = "SELECT event FROM aegis_migrate.event WHERE event ->> 'event' = 'sync_loses'";
        let rows = db.admin.query(told, &[]).await.unwrap();
        let events: Vec<serde_json::Value> = rows.iter().map(|row| row.get(0)).collect();
        let found: Vec<_> = events.iter().map(|event| event["lost"].as_i64()).collect();
        assert_eq!(found, lost.map(Some).into_iter().collect::<Vec<_>>());
        for event in events {
            assert_eq!(
                (&event["rows"], &event["key"]),
                (&2.into(), &"(0,2)".into())
            );
            assert!(!event.to_string().contains("Brewster"), "{event}");
        }
    }
}

#[tokio::test]
async fn an_expression_that_fails_for_a_row_that_is_there_makes_no_trigger() {
    let db = in_use().await;
    let folder = split(false).edited(
        &format!("{SPLIT}/change.toml"),
        "split_part(name, ' ', 2)",
        "(name::int)::text",
    );
    let error = ran(&db, &sealed(&folder), Phase::Expand).await.unwrap_err();
    assert!(matches!(error, RunError::Sync { .. }), "{error}");
    assert_eq!(error.exit_code(), 2);
    let text = error.to_string();
    assert!(
        text.contains("invalid input syntax for type integer"),
        "{text}"
    );
    let sql = "INSERT INTO app.users (id, name) VALUES (2, 'still written')";
    db.admin.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn a_replay_has_the_trigger_until_the_contract_ends_it() {
    for (contract, triggers) in [(false, 2_i64), (true, 0)] {
        let set = sealed(&split(contract));
        let count = "SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relname = 'users'";
        let db = TestDb::empty().await;
        shadow::replay(&db.connect().await, &set).await.unwrap();
        let replayed = shadow::structure(&db.admin, &set, None).await.unwrap();
        let found: i64 = db.admin.query_one(count, &[]).await.unwrap().get(0);
        assert_eq!(found, triggers);
        // A fresh database gets the same by a run.
        let db = TestDb::empty().await;
        db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
        ran(&db, &set, Phase::Expand).await.unwrap();
        let run = shadow::structure(&db.admin, &set, None).await.unwrap();
        assert_eq!(run.fingerprint(), replayed.fingerprint());
        let insert = if contract {
            "INSERT INTO app.users (id, first_name) VALUES (5, 'x')"
        } else {
            "INSERT INTO app.users (id, name) VALUES (5, 'x y')"
        };
        db.admin.batch_execute(insert).await.unwrap();
    }
}

/// Each part of the trigger that a person may meddle with, and a word of what is told.
const BROKEN: [(&str, &str); 4] = [
    (
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'app.users'::regclass AND tgname LIKE 'zz%' LOOP EXECUTE format('DROP TRIGGER %I ON app.users', t); END LOOP; END $$",
        "not there",
    ),
    (
        "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'app.users'::regclass AND tgname LIKE 'zz%insert' LOOP EXECUTE format('DROP TRIGGER %I ON app.users', t); END LOOP; END $$",
        "insert",
    ),
    ("ALTER TABLE app.users DISABLE TRIGGER USER", "disabled"),
    (
        "DO $$ DECLARE f regproc; BEGIN SELECT tgfoid INTO f FROM pg_trigger WHERE tgrelid = 'app.users'::regclass LIMIT 1; EXECUTE format('CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$BEGIN RETURN NEW; END$f$', f); END $$",
        "function",
    ),
];

#[tokio::test]
async fn a_trigger_that_somebody_took_away_disabled_or_replaced_stops_a_run_until_it_is_made_again()
{
    let db = in_use().await;
    let set = sealed(&split(false));
    ran(&db, &set, Phase::Expand).await.unwrap();
    for (number, (sql, said)) in BROKEN.into_iter().enumerate() {
        let rule = set.changes[&SPLIT.parse().unwrap()].sync_rule().unwrap();
        let before = rule.state(&db.admin).await.unwrap().unwrap();
        db.admin.batch_execute(sql).await.unwrap();
        for phase in [Phase::Expand, Phase::Migrate] {
            let error = ran(&db, &set, phase).await.unwrap_err();
            let text = error.to_string();
            assert_eq!(error.exit_code(), 12, "{text}");
            for part in [SPLIT, "app.users", said, "repair sync"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        let was = repaired(&db, &set).await.unwrap();
        assert!(was.contains(said), "{was}");
        // What was counted with the one of before is no evidence: it is another one now.
        let after = rule.state(&db.admin).await.unwrap().unwrap();
        assert!(after.enabled);
        assert_ne!(before.definition, after.definition);
        let again = ran(&db, &set, Phase::Expand).await.unwrap();
        assert_eq!(again.outcome, Outcome::Nothing);
        let id = 10 + i64::try_from(number).unwrap();
        let insert = format!("INSERT INTO app.users (id, name) VALUES ({id}, 'Grace Hopper')");
        db.admin.batch_execute(&insert).await.unwrap();
        assert_eq!(
            row(&db, id).await,
            words(["Grace Hopper", "Grace", "Hopper"])
        );
    }
    let count = "SELECT count(*) FROM aegis_migrate.repair r JOIN aegis_migrate.event e ON e.run = r.run AND e.event->>'event' = 'sync_again' WHERE r.verb = 'sync' AND r.reason = 'a test'";
    let kept: i64 = db.admin.query_one(count, &[]).await.unwrap().get(0);
    assert!(kept >= 4, "{kept}");
    let error = repaired(&db, &set).await.unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
}

/// What a run says of a table that has no such column, and what a repair of the trigger says.
async fn lacks_a_column(db: &TestDb, set: &Set, says: &[&str]) {
    let mut told = Vec::new();
    for phase in [Phase::Expand, Phase::Migrate] {
        let error = ran(db, set, phase).await.unwrap_err();
        told.push((error.exit_code(), error.to_string()));
    }
    let error = repaired(db, set).await.unwrap_err();
    told.push((error.exit_code(), error.to_string()));
    for (code, text) in told {
        assert_eq!(code, 12, "{text}");
        for part in says {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("is not what this change has made"), "{text}");
    }
}

#[tokio::test]
async fn a_column_that_somebody_renamed_or_dropped_is_told_as_such_with_what_does_help() {
    let db = in_use().await;
    let set = sealed(&split(false));
    ran(&db, &set, Phase::Expand).await.unwrap();
    let sql = async |sql: &str| db.admin.batch_execute(sql).await;
    for (column, by_hand) in [("first_name", "firstname"), ("name", "full name")] {
        let rename = format!("ALTER TABLE app.users RENAME COLUMN \"{column}\" TO \"{by_hand}\"");
        sql(&rename).await.unwrap();
        let has_not = format!(
            "has no column {column}, which [sync] names; it has {by_hand}, which no change made"
        );
        let helps =
            format!("ALTER TABLE \"app\".\"users\" RENAME COLUMN \"{by_hand}\" TO \"{column}\"");
        lacks_a_column(&db, &set, &["app.users", &has_not, &helps]).await;
        // As it says: a write for which the trigger fires fails.
        sql("INSERT INTO app.users (id, last_name) VALUES (7, 'Liskov')")
            .await
            .unwrap_err();
        // And what it names does help.
        sql(&helps).await.unwrap();
        let again = ran(&db, &set, Phase::Expand).await.unwrap();
        assert_eq!(again.outcome, Outcome::Nothing);
    }
    sql("ALTER TABLE app.users DROP COLUMN last_name CASCADE")
        .await
        .unwrap();
    let dropped =
        "has no column last_name, which [sync] names: somebody has renamed or dropped it by hand";
    lacks_a_column(&db, &set, &[dropped, "repair sync", "reconcile"]).await;
    sql("ALTER TABLE app.users ADD COLUMN last_name text")
        .await
        .unwrap();
    repaired(&db, &set).await.unwrap();
    ran(&db, &set, Phase::Expand).await.unwrap();
    sql("ALTER TABLE app.users RENAME TO people").await.unwrap();
    let moved = "there is no table app.users, which [sync] names";
    lacks_a_column(&db, &set, &[moved, "RENAME TO \"users\""]).await;
}

async fn repaired(db: &TestDb, set: &Set) -> Result<String, RepairError> {
    let mut held = held(db, BOUND).await.unwrap();
    let id = SPLIT.parse().unwrap();
    let done = repair::sync(&mut held, set, &id, &Ladder::default(), "a test").await;
    held.release().await;
    done
}

/// Partitions, and the set that makes them and the trigger.
async fn in_parts() -> (TestDb, Set) {
    let folder = split(false).edited(
        &format!("{USERS}/expand.sql"),
        "name text NOT NULL);",
        "name text NOT NULL) PARTITION BY RANGE (id);\nCREATE TABLE users_one PARTITION OF users FOR VALUES FROM (0) TO (100);\nCREATE TABLE users_two PARTITION OF users FOR VALUES FROM (100) TO (200);",
    );
    let db = TestDb::empty().await;
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    let set = sealed(&folder);
    ran(&db, &set, Phase::Expand).await.unwrap();
    (db, set)
}

#[tokio::test]
async fn a_trigger_that_one_partition_disables_is_seen_and_made_again() {
    let (db, set) = in_parts().await;
    let sql = "ALTER TABLE app.users_two DISABLE TRIGGER USER";
    db.admin.batch_execute(sql).await.unwrap();
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    repaired(&db, &set).await.unwrap();
    ran(&db, &set, Phase::Expand).await.unwrap();
    let insert = "INSERT INTO app.users (id, name) VALUES (101, 'Grace Hopper')";
    db.admin.batch_execute(insert).await.unwrap();
    assert_eq!(
        row(&db, 101).await,
        words(["Grace Hopper", "Grace", "Hopper"])
    );
}

#[tokio::test]
async fn what_may_have_brought_rows_into_a_partition_without_the_trigger_makes_it_another_one() {
    let (db, set) = in_parts().await;
    let rule = set.changes[&SPLIT.parse().unwrap()].sync_rule().unwrap();
    let columns = "(id bigint NOT NULL, name text NOT NULL, first_name text, last_name text, PRIMARY KEY (id))";
    let cases = [
        (
            "ALTER TABLE app.users_two DISABLE TRIGGER USER; ALTER TABLE app.users_two ENABLE TRIGGER USER".to_owned(),
            true,
        ),
        (
            format!("CREATE TABLE app.users_three {columns}; INSERT INTO app.users_three VALUES (201, 'Ada Lovelace'); ALTER TABLE app.users ATTACH PARTITION app.users_three FOR VALUES FROM (200) TO (300)"),
            true,
        ),
        (
            "CREATE TABLE app.users_four PARTITION OF app.users FOR VALUES FROM (300) TO (400)".to_owned(),
            false,
        ),
        (
            "CREATE TABLE app.users_five PARTITION OF app.users FOR VALUES FROM (400) TO (500) PARTITION BY RANGE (id); CREATE TABLE app.users_six PARTITION OF app.users_five FOR VALUES FROM (400) TO (450)".to_owned(),
            false,
        ),
        // Disabled and enabled where it was born with the partition.
        (
            "ALTER TABLE app.users_six DISABLE TRIGGER USER; ALTER TABLE app.users_six ENABLE TRIGGER USER".to_owned(),
            true,
        ),
        ("ALTER TABLE app.users_four ALTER first_name SET STATISTICS 10; ANALYZE app.users".to_owned(), false),
        ("DROP TABLE app.users_four; DROP TABLE app.users_one".to_owned(), false),
        (
            "BEGIN; ALTER TABLE app.users DETACH PARTITION app.users_two; ALTER TABLE app.users ATTACH PARTITION app.users_two FOR VALUES FROM (100) TO (200); COMMIT".to_owned(),
            true,
        ),
    ];
    for (sql, is_another) in cases {
        let before = rule.state(&db.admin).await.unwrap().unwrap();
        db.admin.batch_execute(&sql).await.unwrap();
        let after = rule.state(&db.admin).await.unwrap().unwrap();
        assert!(before.enabled && after.enabled, "{sql}");
        assert_eq!(before.definition != after.definition, is_another, "{sql}");
    }
}

#[tokio::test]
async fn a_table_from_which_others_inherit_gets_no_trigger_and_an_heir_of_later_stops_a_run() {
    let db = in_use().await;
    db.admin
        .batch_execute("CREATE TABLE app.heir () INHERITS (app.users)")
        .await
        .unwrap();
    let set = sealed(&split(false));
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 21, "{error}");
    for part in ["app.heir", "NO INHERIT", "[sync]"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let triggers = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_aegis_sync_%'";
    let count: i64 = db.admin.query_one(triggers, &[]).await.unwrap().get(0);
    assert_eq!(count, 0);
    let out = "ALTER TABLE app.heir NO INHERIT app.users";
    db.admin.batch_execute(out).await.unwrap();
    ran(&db, &set, Phase::Expand).await.unwrap();
    // One of later, by hand: its rows have no side of the other.
    db.admin
        .batch_execute("CREATE TABLE app.later () INHERITS (app.users)")
        .await
        .unwrap();
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    assert!(error.to_string().contains("app.later"), "{error}");
    let error = repaired(&db, &set).await.unwrap_err();
    assert_eq!(error.exit_code(), 21, "{error}");
    let out = "ALTER TABLE app.later NO INHERIT app.users";
    db.admin.batch_execute(out).await.unwrap();
    let again = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(again.outcome, Outcome::Nothing);
}

#[tokio::test]
async fn a_trigger_that_the_contract_has_ended_is_not_missed() {
    let db = TestDb::empty().await;
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    let set = sealed(&split(true));
    ran(&db, &set, Phase::Expand).await.unwrap();
    let again = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(again.outcome, Outcome::Nothing);
}
