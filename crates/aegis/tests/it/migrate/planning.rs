//! `plan` and `snapshot`.

use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};

use super::folder::Folder;

#[tokio::test]
async fn process_a_plan_tells_class_lock_and_size_of_the_live_table() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change("20261129T1030_a", "ALTER TABLE users ADD COLUMN age int;\n");
    folder.change(
        "20261129T1031_b",
        "SELECT 1;\nALTER TABLE users DROP COLUMN name;\n",
    );
    let db = TestDb::empty().await;
    db.admin
        .batch_execute(
            "CREATE SCHEMA app; CREATE TABLE app.users (id bigint, name text);
             INSERT INTO app.users SELECT n, repeat('x', 100) FROM generate_series(1, 1000) n",
        )
        .await
        .unwrap();
    let made = folder
        .json(Some(&db.url()), &["snapshot", "--out", "catalog.json"])
        .await;
    let text = std::fs::read_to_string(folder.path().join("catalog.json")).unwrap();
    assert!(
        text.contains("users") && !text.contains("xxxx"),
        "no row of the data"
    );
    assert_eq!(made["fingerprint"].as_str().unwrap().len(), 64);

    let ran = folder
        .run(
            None,
            &["plan", "--catalog", "catalog.json", "--output", "json"],
        )
        .await;
    assert_eq!(ran.code, 3, "one of them is refused: {ran:?}");
    let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let drop = plan
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["line"] == 2)
        .unwrap();
    assert_eq!(
        (drop["class"].as_str(), drop["passes"].as_bool()),
        (Some("D"), Some(false)),
        "{drop}"
    );
    let lock = &drop["locks"][0];
    assert_eq!(
        (lock["mode"].as_str(), lock["relation"].as_str()),
        (Some("ACCESS EXCLUSIVE"), Some("users"))
    );
    assert!(lock["bytes"].as_i64().unwrap() > 100_000, "{lock}");

    let words = ["plan", "20261129T1031_b", "--format", "markdown"];
    let ran = folder.run(None, &words).await;
    assert!(
        ran.stdout.contains("### 20261129T1031_b:expand")
            && ran.stdout.contains("sizes are unknown"),
        "{ran:?}"
    );
    let live = folder.run(Some(&db.url()), &words).await;
    assert!(
        live.stdout.contains("ACCESS EXCLUSIVE on users (") && live.stdout.contains("KiB"),
        "{live:?}"
    );
    let ran = folder
        .run(None, &["plan", "--catalog", "nowhere.json"])
        .await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(
        ran.stderr
            .contains("`aegis migrate snapshot --out FILE` writes one"),
        "{ran:?}"
    );
    let ran = folder.run(None, &["plan", "20261129T1039_z"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[tokio::test]
async fn process_a_plan_for_a_database_leaves_out_what_is_applied_there() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change("20261129T1030_a", "CREATE TABLE one (id int);\n");
    let db = TestDb::empty().await;
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    let url = db.url();
    folder.json(None, &["seal"]).await;
    let ran = folder.run(Some(&url), &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    folder.change("20261129T1031_b", "CREATE TABLE two (id int);\n");
    let of = async |words: &[&str]| -> Vec<String> {
        let plan = folder.json(Some(&url), words).await;
        let items = plan.as_array().unwrap().iter();
        items
            .map(|item| item["statement"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(of(&["plan"]).await, ["CREATE TABLE two (id int)"]);
    assert_eq!(of(&["plan", "--all"]).await.len(), 2);
    assert_eq!(of(&["plan", "20261129T1030_a"]).await.len(), 0);
}

#[tokio::test]
async fn process_a_plan_tells_how_many_statements_a_minute_would_queue() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change("20261129T1030_a", "ALTER TABLE users ADD COLUMN age int;\n");
    let db = TestDb::empty().await;
    db.admin
        .batch_execute("CREATE SCHEMA app; CREATE TABLE app.users (id bigint)")
        .await
        .unwrap();
    db.admin
        .batch_execute("INSERT INTO app.users SELECT generate_series(1, 240)")
        .await
        .unwrap();
    let path = folder.path().join("catalog.json");
    let snapshot = async || -> serde_json::Value {
        let words = ["snapshot", "--out", "catalog.json"];
        folder.json(Some(&db.url()), &words).await;
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
    };
    // The server writes its counters down at leisure.
    wait_until("the rows are counted", Duration::from_mins(1), async || {
        let rates = snapshot().await;
        let mut rates = rates["rates"].as_array().unwrap().iter();
        rates.any(|one| one["inserted"] == 240)
    })
    .await;
    let plan = async |seconds: f64| -> String {
        let mut catalog = snapshot().await;
        catalog["rates_window"]["seconds"] = seconds.into();
        std::fs::write(&path, catalog.to_string()).unwrap();
        let words = ["plan", "--catalog", "catalog.json", "--format", "markdown"];
        let ran = folder.run(None, &words).await;
        assert!(ran.stdout.contains("ACCESS EXCLUSIVE on users"), "{ran:?}");
        ran.stdout
    };
    // Two hundred and forty in two minutes; what was counted over seconds is no rate.
    let told = "about 120 statements a minute would queue";
    let long = plan(120.0).await;
    assert!(long.contains(told), "{long}");
    let short = plan(5.0).await;
    assert!(!short.contains("would queue"), "{short}");
}
