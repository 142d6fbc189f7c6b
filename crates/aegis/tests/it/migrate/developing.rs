//! `dev`: a developer's own database.

use aegis_testkit::{TestDb, process_slot};
use serde_json::json;

use super::folder::Folder;

const A: &str = "20261129T1030_a";
const B: &str = "20261129T1031_b";

async fn columns(db: &TestDb) -> Vec<String> {
    let sql = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'app' ORDER BY 1";
    db.admin
        .query(sql, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect()
}

#[tokio::test]
async fn process_a_marked_database_follows_the_folder_after_every_edit() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(A, "CREATE TABLE users (id bigint);\n");
    let db = TestDb::empty().await;
    let url = Some(db.url());
    let url = url.as_deref();
    for (words, told) in [
        (&["dev"][..], "is not marked dev"),
        (
            &["dev", "--mark", "production"],
            "--mark production does not name this database",
        ),
    ] {
        let ran = folder.run(url, words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (17, ""), "{ran:?}");
        assert!(ran.stderr.contains(told), "{ran:?}");
    }
    assert!(columns(&db).await.is_empty());
    let done = folder.json(url, &["dev", "--mark", db.name()]).await;
    assert_eq!(done["applied"], json!([format!("{A}:expand")]));
    db.admin
        .batch_execute("INSERT INTO app.users VALUES (1)")
        .await
        .unwrap();

    folder.change(B, "BEGIN;\nALTER TABLE users ADD COLUMN name text;\n");
    let ran = folder.run(url, &["dev"]).await;
    assert!(
        ran.code == 3
            && ran
                .stderr
                .contains("expand.sql:1: [transaction-in-file] BEGIN"),
        "{ran:?}"
    );
    assert_eq!(columns(&db).await, ["id"]);
    // One more keeps the rows; nothing new is nothing.
    folder.change(B, "ALTER TABLE users ADD COLUMN name text;\n");
    let done = folder.json(url, &["dev"]).await;
    assert_eq!(
        (&done["applied"], &done["made_again_because"]),
        (&json!([format!("{B}:expand")]), &json!(null))
    );
    let row = db
        .admin
        .query_one("SELECT count(*) FROM app.users", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    assert_eq!(folder.json(url, &["dev"]).await["outcome"], "nothing");

    // A statement that fails leaves a phase that is not taken for applied, and the next time makes all of it again.
    folder.change(
        B,
        "ALTER TABLE users ADD COLUMN nick text;\nALTER TABLE usrs ADD COLUMN x text;\n",
    );
    let ran = folder.run(url, &["dev"]).await;
    assert_eq!(ran.code, 20, "{ran:?}");
    assert!(
        ran.stderr
            .contains("expand.sql:2: relation \"usrs\" does not exist"),
        "{ran:?}"
    );
    folder.change(B, "ALTER TABLE users ADD COLUMN nick text;\n");
    let done = folder.json(url, &["dev"]).await;
    assert_eq!(done["applied"].as_array().unwrap().len(), 2);
    assert_eq!(columns(&db).await, ["id", "nick"]);
}
