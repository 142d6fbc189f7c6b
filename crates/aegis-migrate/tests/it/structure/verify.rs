//! What verify answers: equal only for what was compared.

use aegis_catalog::{Scope, read};
use aegis_migrate::change::Phase;
use aegis_migrate::shadow;
use aegis_migrate::structure::{Answer, Report, Sealed, verify};
use aegis_testkit::TestDb;

use super::{account, objects, run, step};
use crate::folder::Folder;
use crate::run::{ran, sealed};

async fn report(db: &TestDb, sealed: Sealed<'_>) -> Report {
    verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap()
}

fn none() -> Sealed<'static> {
    Sealed::Unknown {
        why: "no schema.15.json".to_owned(),
    }
}

#[tokio::test]
async fn nothing_to_compare_with_is_not_equal() {
    let db = TestDb::empty().await;
    let empty = report(&db, none()).await;
    assert_eq!((empty.outcome(), empty.exit_code()), ("not_compared", 12));
    let Answer::NotCompared { why } = &empty.steps else {
        panic!("{:?}", empty.steps)
    };
    assert!(why.contains("keeps no account"), "{why}");
    let db = account().await;
    let new = report(&db, none()).await;
    assert_eq!(new.outcome(), "not_compared");
    step(&db.admin, "1", "CREATE TABLE t (a int)", &objects(&["t"])).await;
    // The steps hold, but nobody knows what the lock makes.
    let steps = report(&db, none()).await;
    assert!(steps.steps.holds());
    assert_eq!((steps.outcome(), steps.exit_code()), ("not_compared", 12));
    let later = report(
        &db,
        Sealed::Later {
            pending: vec!["x:contract".to_owned()],
        },
    )
    .await;
    assert_eq!((later.outcome(), later.exit_code()), ("steps_hold", 0));
}

#[tokio::test]
async fn drift_is_exit_12_beside_the_steps_and_beside_the_seal() {
    let db = account().await;
    step(
        &db.admin,
        "1",
        "CREATE TABLE t (a int, b text)",
        &objects(&["t"]),
    )
    .await;
    let sealed = read(&db.admin, &Scope::schemas(["app"]).structure_only())
        .await
        .unwrap()
        .structure();
    let equal = report(&db, Sealed::Structure(&sealed)).await;
    assert_eq!((equal.outcome(), equal.exit_code()), ("equal", 0));
    assert_eq!(equal.fingerprint, sealed.fingerprint());
    assert!(equal.differences().is_empty());
    run(
        &db.admin,
        "ALTER TABLE app.t ALTER COLUMN b SET NOT NULL; CREATE TABLE app.more (a int)",
    )
    .await;
    let different = report(&db, Sealed::Structure(&sealed)).await;
    assert_eq!(
        (different.outcome(), different.exit_code()),
        ("different", 12)
    );
    // Once each, though both answers have them; what is wrong stands first.
    let lines: Vec<String> = different
        .differences()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(lines[0], "column b of app.t: NOT NULL is yes, expected no");
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.contains("app.more"))
            .count(),
        1
    );
    let later = report(
        &db,
        Sealed::Later {
            pending: vec!["x:contract".to_owned()],
        },
    )
    .await;
    assert_eq!(later.outcome(), "different");
}

#[tokio::test]
async fn another_servers_words_are_not_compared() {
    let db = account().await;
    step(&db.admin, "1", "CREATE TABLE t (a int)", &objects(&["t"])).await;
    run(
        &db.admin,
        "UPDATE aegis_migrate.structure SET server_major = 13",
    )
    .await;
    let mut sealed = read(&db.admin, &Scope::schemas(["app"]).structure_only())
        .await
        .unwrap()
        .structure();
    // Sealed on the new server: that proves it, though the steps' words are the old server's.
    let moved = report(&db, Sealed::Structure(&sealed)).await;
    assert_eq!(moved.outcome(), "equal");
    let Answer::NotCompared { why } = &moved.steps else {
        panic!("{:?}", moved.steps)
    };
    assert!(
        why.contains("PostgreSQL 13") && why.contains("seal the lock"),
        "{why}"
    );
    sealed.server_major = 13;
    let old = report(&db, Sealed::Structure(&sealed)).await;
    assert_eq!((old.outcome(), old.exit_code()), ("not_compared", 12));
}

/// What a replay makes of a change that runs as a role, and the answer for a database whose schema somebody else has made.
async fn beside_a_given_schema(makes_it: bool) -> Report {
    let id = "20261101T0900_t";
    let sql = if makes_it {
        "CREATE SCHEMA app;\nCREATE TABLE t (a int);\n"
    } else {
        "CREATE TABLE t (a int);\n"
    };
    let toml = format!(
        "format = 1\nid = \"{id}\"\nschema = \"app\"\nrun_as = \"verify_owner\"\n[expand]\nsql = \"expand.sql\"\n"
    );
    let set = sealed(
        &Folder::default()
            .with(&format!("{id}/change.toml"), toml)
            .with(&format!("{id}/expand.sql"), sql),
    );
    let clone = TestDb::empty().await;
    shadow::replay(&clone.connect().await, &set).await.unwrap();
    let mut expected = shadow::structure(&clone.admin, &set, None).await.unwrap();
    shadow::forget_given_owners(&set, &mut expected);
    let db = TestDb::empty().await;
    let grant = "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO verify_owner', current_database()); END $$";
    run(&db.admin, grant).await;
    if !makes_it {
        let given = "CREATE SCHEMA app; GRANT ALL ON SCHEMA app TO verify_owner";
        run(&db.admin, given).await;
    }
    ran(&db, &set, Phase::Expand).await.unwrap();
    if makes_it {
        run(&db.admin, "ALTER SCHEMA app OWNER TO CURRENT_USER").await;
    }
    report(&db, Sealed::Structure(&expected)).await
}

#[tokio::test]
async fn the_owner_of_a_schema_that_no_change_makes_is_the_platforms() {
    let given = beside_a_given_schema(false).await;
    assert_eq!(given.outcome(), "equal", "{:?}", given.differences());
    // One that a change makes is what the change has made.
    let made = beside_a_given_schema(true).await;
    assert_eq!(made.outcome(), "different");
}
