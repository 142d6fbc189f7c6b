//! A run and the lines before it: edited, older, newer, missing.

use aegis_migrate::change::Phase;
use aegis_migrate::run::{Outcome, RunError};

use crate::folder::Folder;
use crate::run::{ID, change, ran, sealed, used};

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
