//! The runner against a real server.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::ledger;
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::mutex::{Held, MutexError, RunName};
use aegis_migrate::run::{Ladder, Outcome, RunError, Summary, run};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_testkit::TestDb;
use tokio_postgres::NoTls;

use crate::folder::Folder;

pub(crate) const ID: &str = "20261129T1030_one";

/// A change with these files, sealed.
pub(crate) fn set(expand: &str, migrate: Option<&str>) -> Set {
    sealed(&change(Folder::default(), ID, expand, migrate))
}

pub(crate) fn change(folder: Folder, id: &str, expand: &str, migrate: Option<&str>) -> Folder {
    let mut toml = format!(
        "format = 1\nid = \"{id}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\ncompatible = [{{ rule = \"add-column\", reason = \"clients name their columns\" }}]\n"
    );
    if !expand.contains("ADD COLUMN") {
        toml = toml.replace(
            "compatible = [{ rule = \"add-column\", reason = \"clients name their columns\" }]\n",
            "",
        );
    }
    let mut folder = folder.with(&format!("{id}/expand.sql"), expand);
    if let Some(sql) = migrate {
        toml.push_str("[migrate]\nsql = \"migrate.sql\"\n");
        if sql.contains("UNIQUE") {
            toml.push_str("compatible = [{ rule = \"new-write-restriction\", reason = \"nobody writes duplicates\" }]\n");
        }
        folder = folder.with(&format!("{id}/migrate.sql"), sql);
    }
    folder.with(&format!("{id}/change.toml"), toml)
}

pub(crate) fn sealed(folder: &Folder) -> Set {
    let open = folder.set().unwrap();
    let mut lock = open.lock.clone();
    for at in open.unsealed() {
        let hash = open.changes[&at.id].sha256(at.phase).unwrap();
        lock.append(at, hash);
    }
    folder
        .clone()
        .with("migrations.lock", lock.text())
        .set()
        .unwrap()
}

pub(crate) async fn held(db: &TestDb, wait: Duration) -> Result<Held, MutexError> {
    held_in(db, LedgerName::Application, wait).await
}

pub(crate) async fn held_in(
    db: &TestDb,
    of: LedgerName,
    wait: Duration,
) -> Result<Held, MutexError> {
    let config = db.url().parse().unwrap();
    let name = RunName {
        run: "run-1".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    };
    let session = Direct::connect(&config, NoTls, &name.application_name())
        .await
        .unwrap();
    Held::take_in(session, of, &name, wait).await
}

pub(crate) fn ladder() -> Ladder {
    Ladder {
        tries: 3,
        budget: Duration::from_secs(20),
        ..Ladder::default()
    }
}

pub(crate) async fn ran(db: &TestDb, set: &Set, phase: Phase) -> Result<Summary, RunError> {
    let mut held = held(db, Duration::from_secs(20)).await.unwrap();
    let outcome = run(&mut held, set, phase, &ladder(), &mut |_| {}).await;
    held.release().await;
    outcome
}

/// A database that somebody uses.
pub(crate) async fn used() -> TestDb {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute("CREATE SCHEMA app; CREATE TABLE app.users (id bigint PRIMARY KEY, name text); INSERT INTO app.users VALUES (1, 'Ada')")
        .await
        .unwrap();
    db
}

pub(crate) async fn state(db: &TestDb, ordinal: i32) -> (String, i32) {
    let row = db
        .admin
        .query_one(
            "SELECT state, attempt FROM aegis_migrate.step WHERE ordinal = $1",
            &[&ordinal],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_phase_is_applied_once_and_the_second_run_has_nothing_to_do() {
    let db = used().await;
    let set = set(
        "ALTER TABLE users ADD COLUMN a int;\nCREATE TABLE app.more (id int);",
        None,
    );
    let first = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(
        (first.outcome, first.applied, first.version, first.fresh),
        (Outcome::Applied, 2, 1, false)
    );
    let second = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!((second.outcome, second.applied), (Outcome::Nothing, 0));
    assert_eq!(second.epoch, first.epoch + 1);
    let kept: i64 = db
        .admin
        .query_one("SELECT count(*) FROM aegis_migrate.event", &[])
        .await
        .unwrap()
        .get(0);
    assert!(kept >= 4, "{kept} events");
}

#[tokio::test]
async fn a_fresh_database_gets_everything_in_one_go_and_is_fresh_only_once() {
    let db = TestDb::empty().await;
    let set = set(
        "CREATE SCHEMA app;\nCREATE TABLE app.t (a int);\nCREATE INDEX i ON app.t (a);",
        Some("CREATE INDEX CONCURRENTLY j ON app.t (a);\nALTER TABLE t ALTER a SET NOT NULL;"),
    );
    let first = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!((first.applied, first.version, first.fresh), (5, 2, true));
    let second = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!((second.outcome, second.fresh), (Outcome::Nothing, false));
}

#[tokio::test]
async fn a_statement_that_fails_leaves_what_was_before_it_and_the_next_run_goes_on_there_mg_14() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.a (id int);\nCREATE TABLE app.users (id int);\nCREATE TABLE app.c (id int);",
        None,
    );
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 20);
    assert!(
        error.to_string().contains(":2:") && error.to_string().contains("42P07"),
        "{error}"
    );
    assert_eq!(state(&db, 1).await, ("applied".to_owned(), 1));
    assert_eq!(state(&db, 2).await, ("failed".to_owned(), 1));
    db.admin
        .batch_execute("DROP TABLE app.users")
        .await
        .unwrap();
    let again = ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!((again.applied, again.version), (2, 1));
    assert_eq!(state(&db, 1).await, ("applied".to_owned(), 1));
    assert_eq!(state(&db, 2).await, ("applied".to_owned(), 2));
}

#[tokio::test]
async fn a_class_is_decided_again_under_the_lock() {
    let db = used().await;
    // Above 16 MiB, from where on a table is not small.
    db.admin
        .batch_execute("INSERT INTO app.users SELECT g, repeat('x', 2000) FROM generate_series(2, 20000) g; ALTER TABLE app.users ALTER name SET STORAGE plain")
        .await
        .unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET name = repeat(md5(id::text), 60) WHERE id > 1")
        .await
        .unwrap();
    let set = set("CREATE INDEX i ON app.users (name);", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 13, "{error}");
    assert!(
        error.to_string().contains("create-index-not-concurrent"),
        "{error}"
    );
    let there: Option<String> = db
        .admin
        .query_one("SELECT to_regclass('app.i')::text", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(there, None);
}

#[tokio::test]
async fn an_override_that_nothing_needs_is_refused_before_the_first_statement() {
    for (rule, said) in [
        ("rename", "rename: nothing here needs it"),
        ("renames", "renames: there is no such rule"),
        (
            "create-index-not-concurrent",
            "create-index-not-concurrent: it is about locks",
        ),
    ] {
        let toml = format!(
            "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\ncompatible = [{{ rule = \"{rule}\", reason = \"x\" }}]\n"
        );
        let folder = Folder::default()
            .with(&format!("{ID}/change.toml"), toml.as_str())
            .with(
                &format!("{ID}/expand.sql"),
                "CREATE TABLE app.more (id int);",
            );
        let set = sealed(&folder);
        let db = used().await;
        let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
        assert_eq!(error.exit_code(), 13, "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("{ID}/change.toml: `expand.compatible`: {said}")),
            "{text}"
        );
        let there: Option<String> = db
            .admin
            .query_one("SELECT to_regclass('app.more')::text", &[])
            .await
            .unwrap()
            .get(0);
        assert_eq!(there, None);
        // What is sealed cannot be edited, and rules become sharper: a new database is made of it all the same.
        let new = TestDb::empty().await;
        new.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
        assert_eq!(ran(&new, &set, Phase::Expand).await.unwrap().applied, 1);
    }
}

#[tokio::test]
async fn locks_that_are_not_had_end_with_the_budget_and_change_nothing() {
    let db = used().await;
    let mut other = db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader.query("SELECT * FROM app.users", &[]).await.unwrap();
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 14, "{error}");
    assert!(error.to_string().contains("3 tries"), "{error}");
    reader.rollback().await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn mg_02_and_mg_38_a_leftover_of_our_own_build_is_cured_and_another_ones_is_not_touched() {
    let db = used().await;
    db.admin
        .batch_execute("INSERT INTO app.users VALUES (2, 'Ada')")
        .await
        .unwrap();
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("CREATE UNIQUE INDEX CONCURRENTLY u ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    let valid = async || -> Option<bool> {
        db.admin
            .query_opt(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('app.u')",
                &[],
            )
            .await
            .unwrap()
            .map(|row| row.get(0))
    };
    assert_eq!(
        valid().await,
        Some(false),
        "the build left an invalid index"
    );
    db.admin
        .batch_execute("DELETE FROM app.users WHERE id = 2")
        .await
        .unwrap();
    assert_eq!(ran(&db, &set, Phase::Migrate).await.unwrap().applied, 1);
    assert_eq!(valid().await, Some(true));

    // The same leftover without a trace of ours.
    let other = used().await;
    other
        .admin
        .batch_execute("INSERT INTO app.users VALUES (2, 'Ada')")
        .await
        .unwrap();
    other
        .admin
        .batch_execute("CREATE UNIQUE INDEX CONCURRENTLY u ON app.users (name)")
        .await
        .unwrap_err();
    other
        .admin
        .batch_execute("DELETE FROM app.users WHERE id = 2")
        .await
        .unwrap();
    ran(&other, &set, Phase::Expand).await.unwrap();
    let error = ran(&other, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 15, "{error}");
    assert!(
        error.to_string().contains("DROP INDEX CONCURRENTLY"),
        "{error}"
    );
}

#[tokio::test]
async fn an_index_that_is_there_as_it_should_be_is_reconciled_and_another_one_is_told_with_both_shapes()
 {
    let db = used().await;
    db.admin
        .batch_execute("CREATE INDEX u ON app.users (name)")
        .await
        .unwrap();
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("CREATE INDEX CONCURRENTLY u ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let found = ran(&db, &set, Phase::Migrate).await.unwrap();
    assert_eq!((found.applied, found.reconciled), (0, 1));

    let other = used().await;
    other
        .admin
        .batch_execute("CREATE INDEX u ON app.users (id)")
        .await
        .unwrap();
    ran(&other, &set, Phase::Expand).await.unwrap();
    let error = ran(&other, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
}

#[tokio::test]
async fn mg_01_and_mg_09_two_runners_one_runs_and_the_other_reads_the_ledger_after_it() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.a (id int);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let (one, two) = tokio::join!(
        ran(&db, &set, Phase::Migrate),
        ran(&db, &set, Phase::Migrate)
    );
    let mut outcomes = [one.unwrap().outcome, two.unwrap().outcome];
    outcomes.sort_by_key(|outcome| *outcome == Outcome::Nothing);
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Nothing]);
}

#[tokio::test]
async fn mg_11_six_runners_race_for_a_ledger_that_is_not_there() {
    let db = used().await;
    let set = set("CREATE TABLE app.a (id int);", None);
    let outcomes =
        futures_util::future::join_all((0..6).map(|_| ran(&db, &set, Phase::Expand))).await;
    let applied = outcomes
        .iter()
        .filter(|one| one.as_ref().unwrap().outcome == Outcome::Applied)
        .count();
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn mg_04_who_holds_the_mutex_is_named_and_the_wait_is_bounded() {
    let db = used().await;
    let first = held(&db, Duration::ZERO).await.unwrap();
    let error = held(&db, Duration::from_millis(200))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("process {}", first.session.pid)),
        "{error}"
    );
    assert!(error.contains("aegis migrate/r1/run-1"), "{error}");
    // mg_08: a holder that is gone holds nothing.
    drop(first);
    held(&db, Duration::from_secs(20)).await.unwrap();
}

#[tokio::test]
async fn who_was_overtaken_writes_nothing_more() {
    let db = used().await;
    let mut old = held(&db, Duration::ZERO).await.unwrap();
    db.admin
        .batch_execute("UPDATE aegis_migrate.ledger SET epoch = epoch + 1")
        .await
        .unwrap();
    let set = set("CREATE TABLE app.a (id int);", None);
    let error = run(&mut old, &set, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 16, "{error}");
    let there: Option<String> = db
        .admin
        .query_one("SELECT to_regclass('app.a')::text", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(there, None);
}

#[tokio::test]
async fn an_edited_history_a_newer_database_and_an_older_line_are_three_answers() {
    let db = used().await;
    let first = change(Folder::default(), ID, "CREATE TABLE app.a (id int);", None);
    ran(&db, &sealed(&first), Phase::Expand).await.unwrap();
    let edited = sealed(&change(
        Folder::default(),
        ID,
        "CREATE TABLE app.b (id int);",
        None,
    ));
    assert_eq!(
        ran(&db, &edited, Phase::Expand)
            .await
            .unwrap_err()
            .exit_code(),
        11
    );

    let both = sealed(&change(
        first.clone(),
        "20261130T0900_two",
        "CREATE TABLE app.c (id int);",
        None,
    ));
    ran(&db, &both, Phase::Expand).await.unwrap();
    // The image of before: it has all that it needs.
    assert_eq!(
        ran(&db, &sealed(&first), Phase::Expand)
            .await
            .unwrap()
            .outcome,
        Outcome::Ahead
    );
    let sql = "SELECT event #>> '{summary,outcome}' FROM aegis_migrate.event WHERE event ->> 'event' = 'ended' ORDER BY at DESC LIMIT 1";
    let last: String = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(last, "ahead");
    let other = sealed(&change(
        first,
        "20261201T0900_three",
        "CREATE TABLE app.d (id int);",
        None,
    ));
    assert_eq!(
        ran(&db, &other, Phase::Expand)
            .await
            .unwrap_err()
            .exit_code(),
        19
    );
}

#[tokio::test]
async fn a_folder_that_lacks_what_came_before_its_last_change_is_another_history() {
    let db = used().await;
    let first = change(Folder::default(), ID, "CREATE TABLE app.a (id int);", None);
    let and = |folder: Folder, id: &str, table: &str| {
        change(
            folder,
            id,
            &format!("CREATE TABLE app.{table} (id int);"),
            None,
        )
    };
    let last = "20261201T0900_three";
    let all = and(and(first.clone(), "20261130T0900_two", "b"), last, "c");
    ran(&db, &sealed(&all), Phase::Expand).await.unwrap();
    let gap = sealed(&and(first.clone(), last, "c"));
    for phase in [Phase::Expand, Phase::Migrate] {
        let error = ran(&db, &gap, phase).await.unwrap_err();
        assert_eq!(error.exit_code(), 19, "{error}");
        assert!(
            error.to_string().contains("20261130T0900_two:expand"),
            "{error}"
        );
    }
    let behind = ran(&db, &sealed(&first), Phase::Expand).await.unwrap();
    assert_eq!(behind.outcome, Outcome::Ahead);
}

#[tokio::test]
async fn a_line_before_one_that_is_applied_runs_on_a_database_of_a_developer_only() {
    let db = used().await;
    let last = change(
        Folder::default(),
        "20261201T0900_three",
        "CREATE TABLE app.c (id int);",
        None,
    );
    ran(&db, &sealed(&last), Phase::Expand).await.unwrap();
    let merged = sealed(&change(last, ID, "CREATE TABLE app.a (id int);", None));
    let error = ran(&db, &merged, Phase::Expand).await.unwrap_err();
    assert!(matches!(error, RunError::OutOfOrder(_)), "{error}");
    assert_eq!(error.exit_code(), 2);
    db.admin
        .batch_execute("UPDATE aegis_migrate.ledger SET dev = true")
        .await
        .unwrap();
    assert_eq!(ran(&db, &merged, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn a_fresh_database_without_the_schema_of_its_first_change_says_so() {
    let db = TestDb::empty().await;
    let set = set("CREATE TABLE users (id bigint PRIMARY KEY);", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 21, "{error}");
    assert!(
        error.to_string().contains("CREATE SCHEMA \"app\""),
        "{error}"
    );
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
    // Made where only the server can see it.
    let db = TestDb::empty().await;
    let set = self::set(
        "DO $$BEGIN EXECUTE 'CREATE SCHEMA app'; END$$;\nCREATE TABLE app.t (id int);",
        None,
    );
    let ended = ran(&db, &set, Phase::Expand).await;
    let asked = ended.as_ref().err().map(RunError::exit_code);
    assert!(asked != Some(21), "{ended:?}");
}

#[tokio::test]
async fn what_a_step_made_is_in_the_structure_that_verify_expects() {
    let db = used().await;
    ran(
        &db,
        &set("ALTER TABLE users ADD COLUMN a int;", None),
        Phase::Expand,
    )
    .await
    .unwrap();
    let sealed = aegis_migrate::structure::Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let report = aegis_migrate::structure::verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    assert!(report.steps.holds(), "{report:?}");
    db.admin
        .batch_execute("ALTER TABLE app.users DROP COLUMN a")
        .await
        .unwrap();
    let sealed = aegis_migrate::structure::Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let drifted = aegis_migrate::structure::verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    assert!(drifted.steps.is_wrong(), "{drifted:?}");
    let found = ledger::find(&db.admin).await.unwrap().unwrap();
    assert!(!found.fresh && found.epoch == 1);
}

#[tokio::test]
async fn a_step_outside_of_a_transaction_is_judged_too_and_the_ledger_keeps_the_class() {
    let db = used().await;
    let wrong = set("CREATE INDEX CONCURRENTLY i ON app.users (name);", None);
    let error = ran(&db, &wrong, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 13, "{error}");
    let class: String = {
        let right = set(
            "CREATE TABLE app.x (id int);",
            Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
        );
        let other = used().await;
        ran(&other, &right, Phase::Expand).await.unwrap();
        ran(&other, &right, Phase::Migrate).await.unwrap();
        other
            .admin
            .query_one(
                "SELECT string_agg(class, '' ORDER BY phase) FROM aegis_migrate.step",
                &[],
            )
            .await
            .unwrap()
            .get(0)
    };
    assert_eq!(class, "AC");
}

#[tokio::test]
async fn a_commit_that_the_server_refuses_is_a_failure_and_no_unknown() {
    let db = used().await;
    db.admin
        .batch_execute(
            "CREATE TABLE app.child (id bigint, u bigint REFERENCES app.users (id) DEFERRABLE INITIALLY DEFERRED)",
        )
        .await
        .unwrap();
    let set = set("INSERT INTO app.child (id, u) VALUES (1, 99);", None);
    let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    assert_eq!(state(&db, 1).await, ("failed".to_owned(), 1));
}

#[tokio::test]
async fn an_invalid_index_that_came_after_our_failure_is_not_ours() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some("CREATE UNIQUE INDEX CONCURRENTLY u ON app.users (name, missing);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(
        ran(&db, &set, Phase::Migrate)
            .await
            .unwrap_err()
            .exit_code(),
        20
    );
    assert_eq!(
        db.admin
            .query_one(
                "SELECT state FROM aegis_migrate.step WHERE phase = 'migrate'",
                &[]
            )
            .await
            .unwrap()
            .get::<_, String>(0),
        "failed"
    );
}

#[tokio::test]
async fn a_database_that_is_set_to_read_only_is_left_alone() {
    let db = used().await;
    db.admin
        .batch_execute(&format!(
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            db.name()
        ))
        .await
        .unwrap();
    let config = db.url().parse().unwrap();
    let error = Direct::connect(&config, NoTls, "a test").await.unwrap_err();
    assert!(error.to_string().contains("read only"), "{error}");
}

#[tokio::test]
async fn mg_07_a_lost_session_stops_the_run_and_nothing_goes_on_without_the_lock() {
    let db = used().await;
    let mut old = held(&db, Duration::ZERO).await.unwrap();
    db.admin
        .query(
            "SELECT pg_terminate_backend($1, 10000)",
            &[&old.session.pid],
        )
        .await
        .unwrap();
    let set = set("CREATE TABLE app.a (id int);", None);
    run(&mut old, &set, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    let there: Option<String> = db
        .admin
        .query_one("SELECT to_regclass('app.a')::text", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(there, None);
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}

#[tokio::test]
async fn a_schema_that_is_missing_or_shut_is_told_before_anything_is_made_elsewhere() {
    let db = used().await;
    db.admin
        .batch_execute("DROP SCHEMA app CASCADE")
        .await
        .unwrap();
    let made = set(
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';\n",
        None,
    );
    // Something is in the database, so it is no fresh one.
    let sql = "CREATE SCHEMA other; CREATE TABLE other.t (id int)";
    db.admin.batch_execute(sql).await.unwrap();
    let mut held = held(&db, Duration::from_secs(20)).await.unwrap();
    held.ledger.fresh = false;
    let error = run(&mut held, &made, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    held.release().await;
    assert_eq!(error.exit_code(), 21, "{error}");
    assert!(
        error
            .to_string()
            .contains("the schema app is not in this database"),
        "{error}"
    );
    // It may be the wrong database: what is left there is said.
    assert!(
        error
            .to_string()
            .contains("only the ledger's tables are here"),
        "{error}"
    );
}

#[tokio::test]
async fn a_phase_with_a_statement_that_is_refused_anyway_begins_with_none() {
    let db = used().await;
    let made = set(
        "ALTER TABLE users ADD COLUMN age int;\nALTER TABLE users DROP COLUMN name;\n",
        None,
    );
    let error = ran(&db, &made, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 13, "{error}");
    let sql = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attname = 'age'";
    let count: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(count, 0, "{error}");
}

#[tokio::test]
async fn what_nobody_has_sealed_is_not_passed_over() {
    let db = used().await;
    let open = change(
        Folder::default(),
        ID,
        "ALTER TABLE users ADD COLUMN age int;\n",
        None,
    );
    let unsealed = open.clone().with("migrations.lock", "").set().unwrap();
    let error = ran(&db, &unsealed, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    let error = ran(&db, &open.set().unwrap(), Phase::Expand)
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
}
