//! A database with one of everything that is modelled, on whatever server the tests run.

use aegis_catalog::{Catalog, Scope, read};
use aegis_testkit::TestDb;
use tokio_postgres::Client;

/// An empty database with the zoo in it.
pub(crate) async fn zoo() -> TestDb {
    let db = TestDb::empty().await;
    fill(&db).await;
    db
}

/// Puts the zoo into a database.
pub(crate) async fn fill(db: &TestDb) {
    let major = major(&db.admin).await;
    run(&db.admin, &of(db, include_str!("zoo.sql"))).await;
    if major >= 15 {
        run(&db.admin, include_str!("zoo_15.sql")).await;
    }
    if major >= 18 {
        run(&db.admin, include_str!("zoo_18.sql")).await;
    }
    run(&db.admin, "RESET search_path").await;
}

/// Roles belong to the server: each database has its own.
pub(crate) fn of(db: &TestDb, sql: &str) -> String {
    sql.replace("%SUFFIX%", suffix(db))
}

/// What the roles of this database end with.
pub(crate) fn suffix(db: &TestDb) -> &str {
    db.name().trim_start_matches("aegis_test_")
}

/// The server's major version.
pub(crate) async fn major(client: &Client) -> u32 {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int / 10000",
            &[],
        )
        .await
        .unwrap();
    u32::try_from(row.get::<_, i32>(0)).unwrap()
}

/// Runs a script.
pub(crate) async fn run(client: &Client, sql: &str) {
    client
        .batch_execute(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

/// Reads everything.
pub(crate) async fn all(client: &Client) -> Catalog {
    read(client, &Scope::everything())
        .await
        .unwrap_or_else(|error| panic!("read: {error:?}"))
}
