//! A database per test: separate, with the schema, gone afterwards.

use std::time::Duration;

use aegis_testkit::{TestDb, server_url, wait_until};

#[tokio::test]
async fn two_tests_do_not_see_each_other() {
    let (one, two) = (TestDb::new().await, TestDb::new().await);
    assert_ne!(one.name(), two.name());
    one.admin
        .batch_execute("create table mine (n int)")
        .await
        .unwrap();
    let seen = two
        .connect()
        .await
        .query_one("select to_regclass('mine') is null", &[])
        .await
        .unwrap();
    assert!(seen.get::<_, bool>(0));
}

#[tokio::test]
async fn the_schema_is_there_and_an_empty_database_is_empty() {
    let sql = "select to_regclass('aegis.task') is not null";
    let with = TestDb::new().await;
    assert!(
        with.admin
            .query_one(sql, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
    );
    let without = TestDb::empty().await;
    assert!(
        !without
            .admin
            .query_one(sql, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
    );
}

#[tokio::test]
async fn a_role_connects_under_its_own_name() {
    let db = TestDb::empty().await;
    let role = format!("role_of_{}", db.name());
    db.admin
        .batch_execute(&format!("create role {role} login"))
        .await
        .unwrap();
    let row = db
        .connect_as(&role)
        .await
        .query_one("select current_user::text", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, String>(0), role);
}

#[tokio::test]
async fn a_database_is_dropped_with_its_test_even_while_connected() {
    let db = TestDb::empty().await;
    let name = db.name().to_owned();
    let _still_open = db.connect().await;
    drop(db);
    let other = TestDb::empty().await;
    wait_until(
        "the database is gone",
        Duration::from_secs(30),
        async || {
            let found = other
                .admin
                .query_opt("select 1 from pg_database where datname = $1", &[&name])
                .await
                .unwrap();
            found.is_none()
        },
    )
    .await;
    assert!(server_url().await.starts_with("postgres"));
}
