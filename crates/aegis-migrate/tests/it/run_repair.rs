//! `repair`: every state has an exit, and none of them is a lie.

use std::time::Duration;

use aegis_migrate::change::{Phase, PhaseOf};
use aegis_migrate::repair::{
    RepairError, accept_checksum, mark_applied, needs_replay, replayed_with, retry,
};
use aegis_migrate::run::Outcome;
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_testkit::TestDb;

use crate::folder::Folder;
use crate::run::{change, held, ran, sealed};

const BOUND: Duration = Duration::from_secs(20);
const FIRST: &str = "20261101T0900_first";
const SECOND: &str = "20261102T0900_second";

/// A first change, that makes everything, and a second one.
fn two(expand: &str, migrate: Option<&str>) -> Set {
    let first = change(
        Folder::default(),
        FIRST,
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text);",
        None,
    );
    sealed(&change(first, SECOND, expand, migrate))
}

/// A database in which the first is applied, and somebody uses it.
async fn first_applied() -> TestDb {
    let db = TestDb::empty().await;
    let first = change(
        Folder::default(),
        FIRST,
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text);",
        None,
    );
    ran(&db, &sealed(&first), Phase::Expand).await.unwrap();
    db
}

fn at(phase: &str) -> PhaseOf {
    format!("{SECOND}:{phase}").parse().unwrap()
}

/// What a set makes from nothing, on the same server.
async fn replayed(set: &Set) -> aegis_catalog::Structure {
    let db = TestDb::empty().await;
    shadow::replay(&db.admin, set).await.unwrap();
    shadow::structure(&db.admin, set, None).await.unwrap()
}

async fn accept(db: &TestDb, set: &Set) -> Result<&'static str, RepairError> {
    let mut mine = held(db, BOUND).await.unwrap();
    let at = at("expand");
    let structure = if needs_replay(&mine, set, &at).await? {
        Some(replayed(&replayed_with(&mine, set, &at).await?).await)
    } else {
        None
    };
    let accepted = accept_checksum(&mut mine, set, &at, structure.as_ref(), "reviewed").await;
    mine.release().await;
    accepted.map(|accepted| accepted.proof)
}

async fn kept(db: &TestDb) -> i64 {
    let sql = "SELECT count(*) FROM aegis_migrate.repair";
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn mg_16_a_reviewed_edit_is_accepted_when_a_replay_shows_that_it_makes_the_same() {
    let db = first_applied().await;
    let before = two("CREATE TABLE app.t (a int, b int);", None);
    ran(&db, &before, Phase::Expand).await.unwrap();
    // Another text of the same: the hash differs, the structure does not.
    let after = two(
        "CREATE TABLE app.t (a integer);\nALTER TABLE app.t ADD COLUMN b integer;",
        None,
    );
    let error = ran(&db, &after, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    accept(&db, &after).await.unwrap();
    assert_eq!(
        ran(&db, &after, Phase::Expand).await.unwrap().outcome,
        Outcome::Nothing
    );
    assert_eq!(kept(&db).await, 1);
}

#[tokio::test]
async fn mg_17_an_edit_that_never_ran_is_not_accepted() {
    let db = first_applied().await;
    let before = two("CREATE TABLE app.t (a int);", None);
    ran(&db, &before, Phase::Expand).await.unwrap();
    for (never_ran, told) in [
        // Its structure is not there.
        (
            "CREATE TABLE app.t (a int, b int);",
            "is not what the lock makes",
        ),
        // Its rows are in no structure.
        (
            "CREATE TABLE app.t (a int);\nINSERT INTO app.t (a) VALUES (1);",
            "never ran here",
        ),
    ] {
        let after = two(never_ran, None);
        let error = accept(&db, &after).await.unwrap_err();
        assert_eq!(error.exit_code(), 12, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        let still = ran(&db, &after, Phase::Expand).await.unwrap_err();
        assert_eq!(still.exit_code(), 11, "{still}");
    }
    assert_eq!(kept(&db).await, 0);
}

#[tokio::test]
async fn mg_26_a_statement_that_can_never_work_is_mended_in_the_file_and_the_run_goes_on() {
    let db = first_applied().await;
    let wrong = two(
        "CREATE TABLE app.a (id int);\nALTER TABLE users ADD COLUMN b nonsense;",
        None,
    );
    let error = ran(&db, &wrong, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    let right = two(
        "CREATE TABLE app.a (id int);\nALTER TABLE users ADD COLUMN b int;",
        None,
    );
    let error = ran(&db, &right, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 11, "{error}");
    // What is done may not be touched by the edit.
    let touching = two(
        "CREATE TABLE app.other (id int);\nALTER TABLE users ADD COLUMN b int;",
        None,
    );
    let error = accept(&db, &touching).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    accept(&db, &right).await.unwrap();
    let done = ran(&db, &right, Phase::Expand).await.unwrap();
    assert_eq!((done.outcome, done.applied), (Outcome::Applied, 1));
}

#[tokio::test]
async fn mg_18_what_was_done_by_hand_is_marked_only_when_it_is_there() {
    let db = first_applied().await;
    let set = two(
        "CREATE TABLE app.t (a int);\nCREATE INDEX i ON app.t (a);",
        None,
    );
    let mark = async || -> Result<u32, RepairError> {
        let mut mine = held(&db, BOUND).await.unwrap();
        let part = replayed_with(&mine, &set, &at("expand")).await?;
        let structure = replayed(&part).await;
        let marked = mark_applied(&mut mine, &set, &at("expand"), &structure, "by hand").await;
        mine.release().await;
        marked
    };
    let error = mark().await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    db.admin
        .batch_execute("CREATE TABLE app.t (a int); CREATE INDEX i ON app.t (a) WHERE a > 1")
        .await
        .unwrap();
    // The name is there, and is something else.
    let error = mark().await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    db.admin
        .batch_execute("DROP INDEX app.i; CREATE INDEX i ON app.t (a)")
        .await
        .unwrap();
    assert_eq!(mark().await.unwrap(), 2);
    assert_eq!(
        ran(&db, &set, Phase::Expand).await.unwrap().outcome,
        Outcome::Nothing
    );
    // From now on it is what is expected.
    db.admin.batch_execute("DROP INDEX app.i").await.unwrap();
    let sealed = aegis_migrate::structure::Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let report = aegis_migrate::structure::verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    assert!(report.steps.is_wrong(), "{report:?}");
}

#[tokio::test]
async fn rows_that_nobody_can_show_are_not_marked() {
    let db = first_applied().await;
    let set = two("INSERT INTO app.users (id, name) VALUES (5, 'x');", None);
    let mut mine = held(&db, BOUND).await.unwrap();
    let part = replayed_with(&mine, &set, &at("expand")).await.unwrap();
    let structure = replayed(&part).await;
    let error = mark_applied(&mut mine, &set, &at("expand"), &structure, "by hand")
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    assert!(error.to_string().contains("no structure shows"), "{error}");
}

#[tokio::test]
async fn mg_26_a_step_whose_end_nobody_can_tell_is_begun_anew_when_somebody_has_looked() {
    let db = first_applied().await;
    let set = two(
        "CREATE TABLE app.t (a int);",
        Some("CREATE INDEX CONCURRENTLY ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let mut mine = held(&db, BOUND).await.unwrap();
    let error = retry(&mut mine, &at("migrate"), 1, "looked")
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    mine.release().await;
    // As a killed run leaves it: an intent, and an index whose name the server has chosen.
    db.admin
        .batch_execute(&format!(
            "INSERT INTO aegis_migrate.step SELECT change, 'migrate', 1, 'intent', '{}', 'r', 's', 'f', 1, 's', 'C', 1, epoch, run, by_whom,
                 release, server_version, started_at, NULL, NULL, NULL FROM aegis_migrate.step WHERE change = '{SECOND}' LIMIT 1",
            set.lock.line(&at("migrate")).unwrap().sha256
        ))
        .await
        .unwrap();
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 15, "{error}");
    let mut mine = held(&db, BOUND).await.unwrap();
    retry(&mut mine, &at("migrate"), 1, "looked, nothing is there")
        .await
        .unwrap();
    mine.release().await;
    assert_eq!(ran(&db, &set, Phase::Migrate).await.unwrap().applied, 1);
    assert_eq!(kept(&db).await, 1);
    let mut mine = held(&db, BOUND).await.unwrap();
    let error = retry(&mut mine, &at("migrate"), 1, "again")
        .await
        .unwrap_err();
    assert_eq!(
        error.exit_code(),
        2,
        "an applied step is not retried: {error}"
    );
}
