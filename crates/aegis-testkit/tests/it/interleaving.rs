//! The stepper: blocked is seen, the order is kept, and a wrong expectation fails.

use aegis_testkit::{Stepper, TestDb};

async fn two(db: &TestDb) -> (aegis_testkit::StepConn, aegis_testkit::StepConn) {
    let stepper = Stepper::new(db).await;
    let (a, b) = (stepper.conn("a").await, stepper.conn("b").await);
    a.run("create table t as select 1 as id, 0 as n").await;
    (a, b)
}

#[tokio::test]
async fn a_blocked_update_sees_the_row_after_the_commit() {
    let db = TestDb::empty().await;
    let (a, b) = two(&db).await;
    a.run("begin").await;
    a.run("update t set n = n + 1").await;
    let waits = b.spawn("update t set n = n + 10 returning n");
    assert_eq!(waits.blocked().await, ["a"]);
    assert!(!waits.is_done());
    a.run("commit").await;
    let rows = waits.done().await.unwrap();
    assert_eq!(rows[0].get::<_, i32>(0), 11);
}

#[tokio::test]
async fn three_connections_queue_in_order() {
    let db = TestDb::empty().await;
    let stepper = Stepper::new(&db).await;
    let conns = [
        stepper.conn("a").await,
        stepper.conn("b").await,
        stepper.conn("c").await,
    ];
    let [a, b, c] = &conns;
    a.run("select pg_advisory_lock(1)").await;
    let second = b.spawn("select pg_advisory_lock(1)");
    assert_eq!(second.blocked().await, ["a"]);
    let third = c.spawn("select pg_advisory_lock(1)");
    assert_eq!(third.blocked().await, ["a", "b"]);
    a.run("select pg_advisory_unlock(1)").await;
    second.done().await.unwrap();
    assert_eq!(third.blocked().await, ["b"]);
    b.run("select pg_advisory_unlock(1)").await;
    third.done().await.unwrap();
}

#[tokio::test]
async fn a_deadlock_is_an_error_of_one_of_them() {
    let db = TestDb::empty().await;
    let (a, b) = two(&db).await;
    a.run("insert into t values (2, 0)").await;
    for conn in [&a, &b] {
        conn.run("begin").await;
    }
    a.run("update t set n = 1 where id = 1").await;
    b.run("update t set n = 2 where id = 2").await;
    let first = a.spawn("update t set n = 1 where id = 2");
    assert_eq!(first.blocked().await, ["b"]);
    let second = b.spawn("update t set n = 2 where id = 1");
    let (first, second) = tokio::join!(first.done(), second.done());
    let codes: Vec<String> = [first.err(), second.err()]
        .into_iter()
        .flatten()
        .map(|error| error.code().unwrap().code().to_owned())
        .collect();
    assert_eq!(codes, ["40P01"]);
}

#[tokio::test]
async fn a_call_of_several_statements_can_be_stepped() {
    let db = TestDb::empty().await;
    let (a, b) = two(&db).await;
    a.run("begin").await;
    a.run("lock table t").await;
    let call = b.spawn_with("count and add", async |client| {
        let n: i64 = client
            .query_one("select count(*) from t", &[])
            .await?
            .get(0);
        client
            .execute("update t set n = n + $1", &[&i32::try_from(n).unwrap()])
            .await
    });
    call.blocked().await;
    a.run("rollback").await;
    assert_eq!(call.done().await.unwrap(), 1);
}

#[tokio::test]
async fn what_does_not_block_fails_the_expectation() {
    let db = TestDb::empty().await;
    let (a, _b) = two(&db).await;
    let free = a.spawn("update t set n = 1");
    let judged = tokio::spawn(async move { free.blocked().await }).await;
    let panic = judged.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("a: update t set n = 1 ended"), "{said}");
}

#[tokio::test]
async fn a_statement_that_works_first_and_blocks_later_is_waited_for() {
    let db = TestDb::empty().await;
    let (a, b) = two(&db).await;
    a.run("begin").await;
    a.run("update t set n = 1").await;
    // It reads for a while before it wants the row.
    let busy =
        "with busy as materialized (select count(pg_sleep(0.2))) update t set n = n + 1 from busy";
    let later = b.spawn(busy);
    assert_eq!(later.blocked().await, ["a"]);
    a.run("rollback").await;
    later.done().await.unwrap();
}
