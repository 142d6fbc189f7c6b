//! What steps did, their sum, verify, and what a build that was cut short has left.

mod fold;
mod reach;
mod standing;
mod verify;

use aegis_catalog::{Delta, Name};
use aegis_migrate::structure::{Reach, SCHEMA, before};
use aegis_testkit::TestDb;
use tokio_postgres::Client;

/// A database with the account of steps, and the schema `app`.
pub(super) async fn account() -> TestDb {
    let db = TestDb::empty().await;
    run(&db.admin, "CREATE SCHEMA aegis_migrate; CREATE SCHEMA app").await;
    run(&db.admin, SCHEMA).await;
    db
}

pub(super) async fn run(client: &Client, sql: &str) {
    client
        .batch_execute(sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

pub(super) fn app(name: &str) -> Name {
    Name::new("app", name)
}

/// A step as the runner does it: look, do, record, in one transaction.
pub(super) async fn step(client: &Client, name: &str, sql: &str, reach: &Reach) -> Delta {
    run(client, "BEGIN; SET LOCAL search_path = app, pg_catalog").await;
    let before = before(client, reach).await.unwrap();
    run(client, sql).await;
    let delta = before
        .record(client, aegis_migrate::ledger::LedgerName::Application, name)
        .await
        .unwrap();
    run(client, "COMMIT").await;
    delta
}

pub(super) fn objects(names: &[&str]) -> Reach {
    Reach::Objects(names.iter().map(|name| app(name)).collect())
}
