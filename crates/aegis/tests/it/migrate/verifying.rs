//! `verify`: a database beside what was applied to it.

use aegis_testkit::{TestDb, process_slot};
use serde_json::json;

use super::folder::Folder;

const A: &str = "20261129T1030_a";
const B: &str = "20261129T1031_b";

#[tokio::test]
async fn process_verify_is_equal_only_for_what_was_compared() {
    let _slot = process_slot();
    let folder = Folder::new();
    let made = "CREATE TABLE users (id bigint PRIMARY KEY, name text);\n";
    folder.change(A, made);
    folder.json(None, &["seal"]).await;
    let db = TestDb::empty().await;
    let url = db.url();
    let by_hand = format!("CREATE SCHEMA app; SET search_path = app; {made}");
    db.admin.batch_execute(&by_hand).await.unwrap();
    // Nothing is recorded here: nothing can be said.
    let ran = folder.run(Some(&url), &["verify"]).await;
    assert_eq!(ran.code, 12, "{ran:?}");
    assert!(
        ran.stderr.contains("AEG-0024") && ran.stderr.contains("not compared whole"),
        "{ran:?}"
    );

    let at = format!("{A}:expand");
    let words = ["baseline", "--through", &at, "--reason", "made by hand"];
    folder.json(Some(&url), &words).await;
    assert_eq!(
        folder.json(Some(&url), &["verify"]).await["outcome"],
        "equal"
    );
    assert_eq!(
        folder.json(Some(&url), &["verify", "--shadow"]).await["outcome"],
        "equal"
    );
    let left = "SELECT count(*) FROM pg_database WHERE datname LIKE 'aegis_shadow_%'";
    let left = db.admin.query_one(left, &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0, "the second database is dropped");

    db.admin
        .batch_execute("ALTER TABLE app.users ALTER COLUMN name TYPE varchar(9)")
        .await
        .unwrap();
    let ran = folder.run(Some(&url), &["verify"]).await;
    assert_eq!(ran.code, 12, "{ran:?}");
    let line = "wrong: column name of app.users: type is character varying(9), expected text";
    assert!(ran.stderr.contains(line), "{ran:?}");
    db.admin
        .batch_execute("ALTER TABLE app.users ALTER COLUMN name TYPE text")
        .await
        .unwrap();

    // A line that is still to come: the sealed structure is for later, the applied lines can be replayed.
    folder.change(B, "CREATE INDEX CONCURRENTLY users_name ON users (name);\n");
    folder.json(None, &["seal"]).await;
    let ran = folder.run(Some(&url), &["verify"]).await;
    assert_eq!(ran.code, 12, "{ran:?}");
    assert!(
        ran.stderr
            .contains(&format!("not applied here yet: {B}:expand")),
        "{ran:?}"
    );
    assert_eq!(
        folder.json(Some(&url), &["verify", "--shadow"]).await["outcome"],
        json!("equal")
    );
}

#[tokio::test]
async fn process_verify_refuses_a_shadow_that_would_act_on_the_whole_server() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(A, "CREATE TABLE users (id bigint PRIMARY KEY);\n");
    folder.write("shadow.sql", "CREATE ROLE somebody;\n");
    folder.json(None, &["seal"]).await;
    let db = TestDb::empty().await;
    let ran = folder.run(Some(&db.url()), &["verify", "--shadow"]).await;
    assert_eq!(ran.code, 13, "{ran:?}");
    assert!(ran.stderr.contains("shadow.sql:1"), "{ran:?}");
    let roles = "SELECT count(*) FROM pg_roles WHERE rolname = 'somebody'";
    assert_eq!(
        db.admin
            .query_one(roles, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        0
    );
}
