//! Jobs against a real server.

mod adverse;
mod control;
mod failing;
pub(crate) mod forward;
mod keys;
mod lost;
mod mg;
mod refused;

use std::sync::Arc;
use std::time::Duration;

use aegis_backfill::job::control::{Status, status};
use aegis_backfill::job::{
    AtPause, BatchSize, Connecting, JobError, Ports, Report, Spec, Who, Write, run,
};
use aegis_backfill::throttle::Limits;
use aegis_backfill::{SCHEMA, sync};
use aegis_catalog::Name;
use aegis_testkit::TestDb;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_postgres::NoTls;

pub(crate) const CHANGE: &str = "20261129T1030_move";
pub(crate) const BOUND: Duration = Duration::from_mins(1);

/// A database with the tables of jobs, and a schema `app` changed by `sql`.
pub(crate) async fn database(sql: &str) -> TestDb {
    let db = TestDb::empty().await;
    for sql in [
        "CREATE SCHEMA aegis_migrate; CREATE SCHEMA app;",
        sync::SCHEMA,
        SCHEMA,
        sql,
    ] {
        db.admin.batch_execute(sql).await.unwrap();
    }
    db
}

/// `app.t (id, done)` with `rows` rows, none of them done.
pub(crate) async fn counted(rows: i32) -> TestDb {
    database(&format!(
        "CREATE TABLE app.t (id bigint PRIMARY KEY, done int NOT NULL DEFAULT 0);
         INSERT INTO app.t (id) SELECT g FROM generate_series(1, {rows}) g; ANALYZE app.t"
    ))
    .await
}

/// Counts in `done` how often a row was moved: the least forgiving of statements.
pub(crate) fn counting() -> Spec {
    statement("UPDATE t SET done = done + 1 WHERE id > :from AND id <= :to")
}

pub(crate) fn statement(sql: &str) -> Spec {
    Spec {
        change: CHANGE.to_owned(),
        schema: "app".to_owned(),
        table: Name::new("app", "t"),
        key: vec!["id".to_owned()],
        write: Write::Statement {
            file: "backfill.sql".to_owned(),
            sql: sql.to_owned(),
        },
        run_as: None,
        batch: sized(10, 10),
    }
}

pub(crate) fn sized(start: u32, max: u32) -> BatchSize {
    BatchSize {
        start,
        max,
        target_ms: 500,
    }
}

pub(crate) fn who() -> Who {
    Who {
        run: "run-1".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    }
}

fn connect(url: String) -> impl Fn() -> Connecting + Send + Sync {
    move || {
        let url = url.clone();
        Box::pin(async move {
            let (client, connection) = tokio_postgres::connect(&url, NoTls)
                .await
                .map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            client
                .batch_execute("SET application_name = 'a runner'")
                .await
                .map_err(|error| error.to_string())?;
            Ok(client)
        })
    }
}

/// Runs to the end.
pub(crate) async fn ran(db: &TestDb, spec: &Spec) -> Result<Report, JobError> {
    limited(db, spec, Limits::default(), &mut |_| {}).await
}

pub(crate) async fn limited(
    db: &TestDb,
    spec: &Spec,
    limits: Limits,
    told: &mut (dyn FnMut(&Value) + Send),
) -> Result<Report, JobError> {
    let ports = Ports {
        connect: &connect(db.url()),
        limits: &|| Ok(limits.clone()),
        wait: BOUND,
        at_pause: AtPause::Waits,
    };
    run(ports, spec, &who(), told).await
}

/// A runner beside the test; aborted, it is gone like a killed one.
pub(crate) fn beside(
    db: &TestDb,
    spec: &Spec,
    limits: Arc<std::sync::Mutex<Limits>>,
) -> JoinHandle<Result<Report, JobError>> {
    let (url, spec) = (db.url(), spec.clone());
    tokio::spawn(async move {
        let ports = Ports {
            connect: &connect(url),
            limits: &|| Ok(limits.lock().unwrap().clone()),
            wait: BOUND,
            at_pause: AtPause::Waits,
        };
        run(ports, &spec, &who(), &mut |_| {}).await
    })
}

pub(crate) async fn stands(db: &TestDb) -> Status {
    let mut all = status(&db.admin, Some(CHANGE)).await.unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

pub(crate) async fn number(db: &TestDb, sql: &str) -> i64 {
    db.admin.query_one(sql, &[]).await.unwrap().get(0)
}

/// How many rows were moved a number of times that is not `times`.
pub(crate) async fn not_moved(db: &TestDb, times: i32) -> i64 {
    number(
        db,
        &format!("SELECT count(*) FROM app.t WHERE done <> {times}"),
    )
    .await
}
