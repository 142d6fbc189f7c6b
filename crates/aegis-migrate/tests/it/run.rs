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
