//! What an application and its server do to a job: deadlocks, triggers that raise, restarts, new partitions.

use std::sync::Arc;

use aegis_backfill::job::control::{Command, failed_rows, tell};
use aegis_backfill::job::{AtPause, JobError, Ports, run};
use aegis_backfill::throttle::Limits;
use aegis_backfill::{SCHEMA, sync};
use aegis_devpg::{Options, Server};
use aegis_testkit::{process_slot, wait_until};
use serde_json::Value;
use tokio_postgres::NoTls;

use super::forward::{apart, filled, spec};
use super::{
    BOUND, CHANGE, beside, connect, counted, counting, not_moved, number, ran, stands, who,
};

#[tokio::test]
async fn a_deadlock_with_the_application_costs_the_batch_and_never_the_application() {
    let db = counted(100).await;
    // The batch stops at row 5, with the rows before it locked, until the test lets it go on to row 8.
    db.admin
        .batch_execute(
            "ALTER TABLE app.t ADD note text;
             CREATE FUNCTION app.held() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN WHILE NOT pg_try_advisory_xact_lock_shared(79) LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN NEW; END $$;
             CREATE TRIGGER held BEFORE UPDATE OF done ON app.t FOR EACH ROW WHEN (OLD.id = 5) EXECUTE FUNCTION app.held();
             DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 10', current_database()); END $$;
             SELECT pg_advisory_lock(79)",
        )
        .await
        .unwrap();
    let mut application = db.connect().await;
    application
        .batch_execute("SET deadlock_timeout = '1h'")
        .await
        .unwrap();
    let transaction = application.transaction().await.unwrap();
    let write = "UPDATE app.t SET note = 'mine' WHERE id = 8";
    transaction.batch_execute(write).await.unwrap();
    let runner = beside(&db, &counting(), Arc::default());
    wait_until("the batch has the rows before", BOUND, async || {
        let held = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'a runner' AND wait_event = 'PgSleep' AND datname = current_database()";
        number(&db, held).await == 1
    })
    .await;
    let lets_go = async {
        wait_until("the application waits for a row", BOUND, async || {
            let waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%note = ''its''%' AND wait_event_type = 'Lock' AND datname = current_database()";
            number(&db, waits).await == 1
        })
        .await;
        db.admin
            .batch_execute("SELECT pg_advisory_unlock(79)")
            .await
            .unwrap();
    };
    let write = transaction.batch_execute("UPDATE app.t SET note = 'its' WHERE id = 3");
    let (written, ()) = tokio::join!(write, lets_go);
    written.unwrap();
    transaction.commit().await.unwrap();
    runner.await.unwrap().unwrap();
    assert_eq!(not_moved(&db, 1).await, 0);
    let notes = "SELECT count(*) FROM app.t WHERE note IS NOT NULL";
    assert_eq!(number(&db, notes).await, 2);
    wait_until("it was a deadlock", BOUND, async || {
        let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        number(&db, deadlocks).await >= 1
    })
    .await;
}

#[tokio::test]
async fn a_trigger_of_the_user_that_raises_is_a_row_that_is_named_and_a_generated_column_follows() {
    let db = counted(300).await;
    db.admin
        .batch_execute(
            "ALTER TABLE app.t ADD twice int GENERATED ALWAYS AS (done * 2) STORED;
             CREATE FUNCTION app.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'row % is closed', OLD.id; END $$;
             CREATE TRIGGER no BEFORE UPDATE ON app.t FOR EACH ROW WHEN (OLD.id = 137) EXECUTE FUNCTION app.no()",
        )
        .await
        .unwrap();
    let error = ran(&db, &counting()).await.unwrap_err();
    assert!(matches!(error, JobError::Failed { .. }), "{error}");
    let failed = failed_rows(&db.admin, CHANGE, 10).await.unwrap();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(
        (&failed[0].key[0], &*failed[0].sqlstate),
        (&"137".to_owned(), "P0001")
    );
    assert_eq!(not_moved(&db, 1).await, 1);
    let follows = "SELECT count(*) FROM app.t WHERE twice = 2";
    assert_eq!(number(&db, follows).await, 299);
    db.admin
        .batch_execute("DROP TRIGGER no ON app.t")
        .await
        .unwrap();
    tell(&db.admin, CHANGE, Command::Retry, "bob", "")
        .await
        .unwrap();
    ran(&db, &counting()).await.unwrap();
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn partitions_that_come_while_it_runs_are_kept_by_the_trigger_or_found_by_the_count() {
    let table = "CREATE TABLE app.t (id bigint PRIMARY KEY, price numeric) PARTITION BY RANGE (id);
         CREATE TABLE app.t_a PARTITION OF app.t FOR VALUES FROM (0) TO (5000)";
    let db = filled(table, 4000).await;
    let runner = beside(&db, &spec(), Arc::default());
    wait_until("some are moved", BOUND, async || {
        let seen = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill";
        number(&db, seen).await >= 100
    })
    .await;
    tell(&db.admin, CHANGE, Command::Pause, "bob", "")
        .await
        .unwrap();
    assert_eq!(stands(&db).await.state, "paused", "in the middle of it");
    db.admin
        .batch_execute(
            "CREATE TABLE app.t_new PARTITION OF app.t FOR VALUES FROM (5000) TO (6000);
             INSERT INTO app.t (id, price) SELECT g, 1.5 FROM generate_series(5000, 5049) g;
             CREATE TABLE app.t_old (LIKE app.t INCLUDING ALL);
             INSERT INTO app.t_old (id, price) SELECT g, 2.5 FROM generate_series(6000, 6029) g;
             ALTER TABLE app.t ATTACH PARTITION app.t_old FOR VALUES FROM (6000) TO (7000)",
        )
        .await
        .unwrap();
    tell(&db.admin, CHANGE, Command::Resume, "bob", "")
        .await
        .unwrap();
    runner.await.unwrap().unwrap();
    // The rows of before that were attached, and no other.
    assert_eq!(apart(&db).await, 30);
    // As `retry --restart`, without the table of events, which is another crate's.
    db.admin
        .batch_execute("DELETE FROM aegis_migrate.backfill")
        .await
        .unwrap();
    ran(&db, &spec()).await.unwrap();
    assert_eq!(apart(&db).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_a_server_that_crashes_and_one_that_restarts_cost_no_row() {
    let _slot = process_slot();
    let server = Server::start(&Options::for_tests()).unwrap();
    let url = server.url(server.superuser(), "postgres");
    let asked = async || {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    let client = asked().await;
    for sql in [
        "CREATE SCHEMA aegis_migrate; CREATE SCHEMA app;",
        sync::SCHEMA,
        SCHEMA,
        "CREATE TABLE app.t (id bigint PRIMARY KEY, done int NOT NULL DEFAULT 0);
         INSERT INTO app.t (id) SELECT generate_series(1, 20000); ANALYZE app.t",
    ] {
        client.batch_execute(sql).await.unwrap();
    }
    let own = url.clone();
    let (tell, mut told) = tokio::sync::watch::channel(Value::Null);
    let mut runner = tokio::spawn(async move {
        let ports = Ports {
            connect: &connect(own),
            limits: &|| Ok(Limits::default()),
            wait: BOUND,
            at_pause: AtPause::Waits,
        };
        run(ports, &counting(), &who(), &mut |event| {
            tell.send_replace(event.clone());
        })
        .await
    });
    let seen = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill";
    for (time, crashes) in [true, false, true].into_iter().enumerate() {
        let client = asked().await;
        let from = i64::try_from(time).unwrap() * 3000;
        let moved = wait_until("it has moved more", BOUND, async || {
            let row = client.query_one(seen, &[]).await.unwrap();
            row.get::<_, i64>(0) > from
        });
        tokio::select! {
            () = moved => {}
            ended = &mut runner => panic!("its end before the next fault: {ended:?}; it told {:?}", *told.borrow_and_update()),
        }
        let of: i64 = client.query_one(seen, &[]).await.unwrap().get(0);
        assert!(of < 20_000, "it is not at its end");
        if crashes {
            server.crash().unwrap();
        }
        server.restart().unwrap();
    }
    assert_eq!(runner.await.unwrap().unwrap().rows_changed, 20_000);
    let wrong = "SELECT count(*) FROM app.t WHERE done <> 1";
    let wrong: i64 = asked().await.query_one(wrong, &[]).await.unwrap().get(0);
    assert_eq!(wrong, 0);
    server.stop();
}
