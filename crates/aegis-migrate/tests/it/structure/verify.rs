//! What verify answers: equal only for what was compared.

use aegis_catalog::{Scope, read};
use aegis_migrate::structure::{Answer, Report, Sealed, verify};
use aegis_testkit::TestDb;

use super::{account, objects, run, step};

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
