//! What a build has left: ours is cured, what is as it should be counts, what is of others stays.

use aegis_migrate::change::Phase;

use crate::run::{ran, set, used};

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
