//! The new side of a table, filled while an old and a new program write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aegis_backfill::job::{Spec, Write};
use aegis_backfill::sync::{Rule, Sides};
use aegis_catalog::Name;
use aegis_testkit::TestDb;

use super::{CHANGE, beside, database, number, ran, sized, statement};

pub(crate) fn rule() -> Rule {
    let map = |column: &str, from: &str| BTreeMap::from([(column.to_owned(), from.to_owned())]);
    Rule {
        change: CHANGE.to_owned(),
        table: Name::new("app", "t"),
        old: vec!["price".to_owned()],
        new: vec!["cents".to_owned()],
        reject_both: false,
        forward: map("cents", "(price * 100)::bigint"),
        backward: map("price", "cents / 100.0"),
    }
}

pub(crate) fn spec() -> Spec {
    Spec {
        write: Write::Forward(rule()),
        batch: sized(20, 50),
        ..statement("")
    }
}

/// A table with `rows` rows of the old side, whose trigger is there.
pub(crate) async fn filled(table: &str, rows: i32) -> TestDb {
    let db = database(&format!(
        "{table};
         INSERT INTO app.t (id, price) SELECT g, g * 1.25 FROM generate_series(1, {rows}) g;
         ALTER TABLE app.t ADD cents bigint"
    ))
    .await;
    make(&db).await;
    db
}

pub(crate) async fn make(db: &TestDb) {
    make_of(db, &rule()).await;
}

pub(crate) async fn make_of(db: &TestDb, rule: &Rule) {
    let sides = Sides::read(&db.admin, rule).await.unwrap();
    for statement in sides.pin(&db.admin).await.unwrap().create() {
        db.admin.batch_execute(&statement).await.unwrap();
    }
}

pub(crate) const PLAIN: &str = "CREATE TABLE app.t (id bigint PRIMARY KEY, price numeric)";

/// Rows for which neither direction holds.
pub(crate) async fn apart(db: &TestDb) -> i64 {
    let sides = Sides::read(&db.admin, &rule()).await.unwrap();
    let sql = format!("SELECT count(*) FROM app.t WHERE NOT {}", sides.agrees());
    number(db, &sql).await
}

#[tokio::test]
async fn only_rows_that_neither_direction_holds_for_are_written_and_the_trigger_is_silent() {
    let db = filled(PLAIN, 1000).await;
    // What a new program has written is not the old side's any more: backward holds, forward would be another.
    db.admin
        .batch_execute("UPDATE app.t SET cents = 5 WHERE id <= 10; UPDATE app.t SET price = 3 WHERE id BETWEEN 11 AND 20")
        .await
        .unwrap();
    let report = ran(&db, &spec()).await.unwrap();
    assert_eq!((report.rows_seen, report.rows_changed), (1000, 980));
    assert_eq!(apart(&db).await, 0);
    assert_eq!(
        number(&db, "SELECT count(*) FROM app.t WHERE cents = 5").await,
        10
    );
    let sighted = "SELECT count(*) FROM aegis_migrate.sighting WHERE side = 'new' AND application_name = 'a runner'";
    assert_eq!(number(&db, sighted).await, 0);
    assert_eq!(
        number(&db, "SELECT sum(price)::bigint FROM app.t WHERE id > 20").await,
        625_363
    );
}

#[tokio::test]
async fn programs_that_write_meanwhile_lose_nothing() {
    let db = filled(PLAIN, 3000).await;
    let runner = beside(&db, &spec(), Arc::default());
    let ends = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for number in 1..=2_i64 {
        let (client, ends) = (db.connect().await, ends.clone());
        writers.push(tokio::spawn(async move {
            let mut id = number;
            let mut last = BTreeMap::new();
            while !ends.load(Ordering::Relaxed) {
                id = (id * 7919 + 13) % 1500 * 2 + number;
                let set = if id % 3 == 0 {
                    "cents = $2::bigint * 100"
                } else {
                    "price = $2::bigint"
                };
                let sql = format!("UPDATE app.t SET {set} WHERE id = $1");
                client.execute(&sql, &[&id, &(id * 3)]).await.unwrap();
                last.insert(id, id * 3);
            }
            last
        }));
    }
    let report = runner.await.unwrap().unwrap();
    assert_eq!(report.rows_seen, 3000);
    ends.store(true, Ordering::Relaxed);
    for writer in writers {
        for (id, price) in writer.await.unwrap() {
            let sql = format!(
                "SELECT count(*) FROM app.t WHERE id = {id} AND price = {price} AND cents = {price} * 100"
            );
            assert_eq!(number(&db, &sql).await, 1, "id {id}");
        }
    }
    assert_eq!(apart(&db).await, 0);
}

#[tokio::test]
async fn partitions_are_walked_one_by_one_and_one_that_goes_meanwhile_has_nothing_to_move() {
    let table = "CREATE TABLE app.t (id bigint PRIMARY KEY, price numeric) PARTITION BY RANGE (id);
         CREATE TABLE app.t_a PARTITION OF app.t FOR VALUES FROM (0) TO (300);
         CREATE TABLE app.t_b PARTITION OF app.t FOR VALUES FROM (300) TO (1000) PARTITION BY HASH (id);
         CREATE TABLE app.\"t_B 1\" PARTITION OF app.t_b FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE app.t_b2 PARTITION OF app.t_b FOR VALUES WITH (MODULUS 2, REMAINDER 1);
         CREATE TABLE app.t_c PARTITION OF app.t FOR VALUES FROM (1000) TO (2000)";
    let db = filled(table, 900).await;
    db.admin
        .batch_execute("INSERT INTO app.t (id, price) VALUES (1001, 1)")
        .await
        .unwrap();
    // Stopped by one row before its end, so that a partition can go in between.
    db.admin
        .batch_execute("ALTER TABLE app.t_a ADD CHECK (cents IS NULL OR id <> 250)")
        .await
        .unwrap();
    ran(&db, &spec()).await.unwrap_err();
    db.admin
        .batch_execute(
            "ALTER TABLE app.t_a DROP CONSTRAINT t_a_check;
             UPDATE aegis_migrate.backfill_leaf SET state = 'open', cursor_key = NULL WHERE leaf LIKE '%t_c%';
             UPDATE aegis_migrate.backfill SET state = 'running', ended_at = NULL;
             ALTER TABLE app.t DETACH PARTITION app.t_c",
        )
        .await
        .unwrap();
    ran(&db, &spec()).await.unwrap();
    assert_eq!(apart(&db).await, 0);
    let leaves = "SELECT count(*) FILTER (WHERE state = 'done') + 10 * count(*) FILTER (WHERE state = 'gone') FROM aegis_migrate.backfill_leaf";
    assert_eq!(number(&db, leaves).await, 13);
}

#[tokio::test]
async fn without_its_trigger_nothing_begins_and_a_forward_that_is_never_right_is_found() {
    let db = database(PLAIN).await;
    db.admin
        .batch_execute("ALTER TABLE app.t ADD cents bigint; INSERT INTO app.t SELECT g, g FROM generate_series(1, 50) g")
        .await
        .unwrap();
    let said = ran(&db, &spec()).await.unwrap_err().to_string();
    assert!(said.contains("--phase expand"), "{said}");
    make(&db).await;
    db.admin
        .batch_execute("ALTER TABLE app.t DISABLE TRIGGER USER")
        .await
        .unwrap();
    let said = ran(&db, &spec()).await.unwrap_err().to_string();
    assert!(said.contains("repair sync"), "{said}");
    db.admin
        .batch_execute("ALTER TABLE app.t ENABLE TRIGGER USER")
        .await
        .unwrap();
    let mut moving = rule();
    moving.forward = BTreeMap::from([(
        "cents".to_owned(),
        "(price * 1000 * random())::bigint".to_owned(),
    )]);
    make_of(&db, &moving).await;
    let moving = Spec {
        write: Write::Forward(moving),
        ..spec()
    };
    let said = ran(&db, &moving).await.unwrap_err().to_string();
    assert!(said.contains("another value each time"), "{said}");
    assert_eq!(number(&db, "SELECT count(cents) FROM app.t").await, 0);
    assert_eq!(
        number(&db, "SELECT count(*) FROM aegis_migrate.backfill").await,
        0
    );
    make(&db).await;
    ran(&db, &spec()).await.unwrap();
    assert_eq!(apart(&db).await, 0);
}
