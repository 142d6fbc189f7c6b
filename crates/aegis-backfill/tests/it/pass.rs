//! Passes against a real server.

use aegis_backfill::job::{JobError, Spec, Who, Write};
use aegis_backfill::pass::{Asked, Count, Kind, PassError, What, newest, run};
use aegis_backfill::sync::Rule;
use aegis_testkit::{TestDb, wait_until};
use tokio::task::JoinHandle;

use crate::job::forward::{PLAIN, filled, make, make_of, rule, spec};
use crate::job::{BOUND, CHANGE, number, ran, who};

fn asked(what: What) -> Asked {
    Asked {
        change: CHANGE.to_owned(),
        schema: "app".to_owned(),
        run_as: None,
        key: vec!["id".to_owned()],
        what,
    }
}

fn sides() -> Asked {
    asked(What::Sides(rule()))
}

async fn passed(db: &TestDb, asked: &Asked) -> Result<Vec<Count>, PassError> {
    let mut client = db.connect().await;
    let who: Who = who();
    run(&mut client, asked, &who, &mut |_| {}).await
}

/// As the rule, by a function that lets a pass wait.
fn slow() -> Rule {
    let mut slow = rule();
    slow.forward =
        std::iter::once(("cents".to_owned(), "(held(price) * 100)::bigint".to_owned())).collect();
    slow
}

/// A pass that has begun to read, and goes on when the lock 78 is free. The trigger is that of the slow rule.
async fn held_pass(db: &TestDb) -> JoinHandle<Result<Vec<Count>, PassError>> {
    db.admin
        .batch_execute(
            "CREATE FUNCTION app.held(n numeric) RETURNS numeric STABLE LANGUAGE plpgsql AS $$
             BEGIN IF current_setting('application_name') = 'a pass' THEN PERFORM pg_advisory_xact_lock_shared(78); END IF; RETURN n; END $$;
             SELECT pg_advisory_lock(78)",
        )
        .await
        .unwrap();
    make_of(db, &slow()).await;
    let mut client = db.connect().await;
    client
        .batch_execute("SET application_name = 'a pass'")
        .await
        .unwrap();
    let reads = tokio::spawn(async move {
        run(
            &mut client,
            &asked(What::Sides(slow())),
            &who(),
            &mut |_| {},
        )
        .await
    });
    wait_until("the pass reads", BOUND, async || {
        number(db, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 78 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").await == 1
    })
    .await;
    reads
}

fn keys(count: &Count) -> Vec<&str> {
    count.samples.iter().map(|one| one.key.as_str()).collect()
}

#[tokio::test]
async fn mg_31_rows_that_were_lost_are_counted_and_named_and_zero_is_zero() {
    let db = filled(PLAIN, 1000).await;
    ran(&db, &spec()).await.unwrap();
    let counts = passed(&db, &sides()).await.unwrap();
    assert!(counts.iter().all(Count::is_zero), "{counts:?}");
    assert!(counts.iter().all(|count| count.rows == Some(1000)));
    // Written past the trigger: by a restore, a replica role, somebody's copy of the table.
    db.admin
        .batch_execute(
            "SET session_replication_role = replica;
             UPDATE app.t SET cents = NULL WHERE id = 17;
             UPDATE app.t SET price = 1000000 WHERE id IN (500, 999);
             RESET session_replication_role;
             UPDATE app.t SET cents = 5 WHERE id = 3",
        )
        .await
        .unwrap();
    let [forward, agrees] = <[Count; 2]>::try_from(passed(&db, &sides()).await.unwrap()).unwrap();
    assert_eq!((agrees.kind, agrees.mismatch), (Kind::Agrees, 3));
    assert_eq!(
        agrees
            .samples
            .iter()
            .map(|one| one.what)
            .collect::<Vec<_>>(),
        ["mismatch"; 3]
    );
    let mut found = keys(&agrees);
    found.sort_unstable();
    assert_eq!(found, ["17", "500", "999"]);
    // 0.05 × 100 is 5: what the new side has written and forward gives back is right in both directions.
    assert_eq!((forward.kind, forward.mismatch), (Kind::Forward, 3));
    let kept = newest(&db.admin, CHANGE, Kind::Agrees)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (kept.is_zero, kept.wrong, kept.rows),
        (false, 3, Some(1000))
    );
    assert_eq!(kept.asked_sha256, sides().sha256());
    assert!(kept.trigger_sha256.is_some());
}

#[tokio::test]
async fn what_the_new_side_has_written_is_no_mismatch_of_both_and_one_of_forward() {
    let db = filled(PLAIN, 100).await;
    ran(&db, &spec()).await.unwrap();
    let mut one_way = rule();
    one_way.forward =
        std::iter::once(("cents".to_owned(), "(price * 100)::bigint + 1".to_owned())).collect();
    make_of(&db, &one_way).await;
    let counts = passed(&db, &asked(What::Sides(one_way))).await.unwrap();
    let wrong: Vec<i64> = counts.iter().map(|count| count.mismatch).collect();
    assert_eq!(wrong, [100, 0]);
    assert_eq!(counts[0].samples.len(), 20, "a few are named");
}

#[tokio::test]
async fn a_pass_reads_every_piece_of_a_large_table_and_only_one_state() {
    let db = filled(
        "CREATE TABLE app.t (id bigint PRIMARY KEY, price numeric, fill text DEFAULT repeat('x', 7000)); ALTER TABLE app.t ALTER fill SET STORAGE plain",
        8200,
    )
    .await;
    let pages = "SELECT pg_relation_size('app.t') / 8192";
    assert!(number(&db, pages).await > 8192, "more than a piece");
    // All rows are apart, and stay so in the state that is read while somebody mends them.
    let reads = held_pass(&db).await;
    let moves = Spec {
        write: Write::Forward(slow()),
        ..spec()
    };
    ran(&db, &moves).await.unwrap();
    db.admin
        .batch_execute("SELECT pg_advisory_unlock(78)")
        .await
        .unwrap();
    let counts = reads.await.unwrap().unwrap();
    assert_eq!((counts[1].rows, counts[1].mismatch), (Some(8200), 8200));
    make(&db).await;
    let counts = passed(&db, &sides()).await.unwrap();
    assert_eq!((counts[1].rows, counts[1].mismatch), (Some(8200), 0));
    db.admin
        .batch_execute(
            "SET session_replication_role = replica;
             UPDATE app.t SET cents = 0 WHERE ctid = ANY (SELECT min(ctid) FROM app.t UNION SELECT max(ctid) FROM app.t
                 UNION SELECT ctid FROM app.t WHERE ctid >= '(16380,0)' AND ctid < '(16390,0)');
             RESET session_replication_role",
        )
        .await
        .unwrap();
    let wrong = number(&db, "SELECT count(*) FROM app.t WHERE cents = 0").await;
    assert!(wrong >= 3, "{wrong}");
    let counts = passed(&db, &sides()).await.unwrap();
    assert_eq!((counts[1].mismatch, counts[1].rows), (wrong, Some(8200)));
}

#[tokio::test]
async fn a_query_of_the_change_tells_what_is_missing_mismatching_and_orphaned() {
    let db = filled(PLAIN, 10).await;
    let query = |sql: &str| {
        asked(What::Query {
            file: "reconcile.sql".to_owned(),
            sql: sql.to_owned(),
            trigger: Some(rule()),
        })
    };
    let sql = "SELECT id, CASE WHEN id < 3 THEN 'missing' WHEN id < 6 THEN 'mismatch' ELSE 'orphaned' END FROM t WHERE id < 8; -- all\n;\n";
    let sql = sql.replace("-- all", "");
    let counts = passed(&db, &query(&sql)).await.unwrap();
    let [count] = <[Count; 1]>::try_from(counts).unwrap();
    assert_eq!(
        (count.missing, count.mismatch, count.orphaned, count.rows),
        (2, 3, 2, None)
    );
    assert_eq!(count.samples.len(), 7);
    let zero = passed(&db, &query("SELECT id, 'missing' FROM t WHERE false"))
        .await
        .unwrap();
    assert!(zero[0].is_zero());
    let error = passed(&db, &query("SELECT id, 'gone' FROM t"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("reconcile.sql") && error.to_string().contains("gone"),
        "{error}"
    );
    passed(&db, &query("SELECT id FROM t")).await.unwrap_err();
    let kept = newest(&db.admin, CHANGE, Kind::Sql).await.unwrap().unwrap();
    assert!(kept.is_zero, "what failed is no result");
    assert!(kept.trigger_sha256.is_some());
    assert_eq!(
        number(&db, "SELECT count(*) FROM aegis_migrate.reconcile_pass").await,
        2
    );
}

#[tokio::test]
async fn a_trigger_that_is_touched_meanwhile_makes_no_result_and_a_result_is_not_edited() {
    let db = filled(PLAIN, 10).await;
    let reads = held_pass(&db).await;
    db.admin
        .batch_execute("ALTER TABLE app.t DISABLE TRIGGER USER")
        .await
        .unwrap();
    db.admin
        .batch_execute("SELECT pg_advisory_unlock(78)")
        .await
        .unwrap();
    let error = reads.await.unwrap().unwrap_err();
    assert!(matches!(error, PassError::Touched { .. }), "{error}");
    assert!(
        newest(&db.admin, CHANGE, Kind::Agrees)
            .await
            .unwrap()
            .is_none()
    );
    passed(&db, &sides()).await.unwrap();
    let kept = newest(&db.admin, CHANGE, Kind::Agrees)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.trigger_sha256, None, "it is disabled");
    for sql in [
        "UPDATE aegis_migrate.reconcile_pass SET mismatch = 0",
        "DELETE FROM aegis_migrate.reconcile_pass",
        "TRUNCATE aegis_migrate.reconcile_pass",
    ] {
        let error = db.admin.batch_execute(sql).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "AEG11", "{sql}");
    }
}

#[tokio::test]
async fn a_trigger_of_other_expressions_is_counted_by_no_pass_and_followed_by_no_batch() {
    let db = filled(PLAIN, 10).await;
    let mut edited = rule();
    edited.backward = std::iter::once(("price".to_owned(), "cents / 100".to_owned())).collect();
    let query = What::Query {
        file: "reconcile.sql".to_owned(),
        sql: "SELECT id, 'missing' FROM t WHERE false".to_owned(),
        trigger: Some(edited.clone()),
    };
    let moves = Spec {
        write: Write::Forward(edited.clone()),
        ..spec()
    };
    for what in [What::Sides(edited.clone()), query.clone()] {
        let error = passed(&db, &asked(what)).await.unwrap_err();
        assert!(
            matches!(error, PassError::OtherExpressions { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("repair sync"), "{error}");
    }
    let kept = "SELECT count(*) FROM aegis_migrate.reconcile_pass";
    assert_eq!(number(&db, kept).await, 0);
    let error = ran(&db, &moves).await.unwrap_err();
    assert!(matches!(error, JobError::Precondition(_)), "{error}");
    assert!(error.to_string().contains("repair sync"), "{error}");
    assert_eq!(number(&db, "SELECT count(cents) FROM app.t").await, 0);
    // Made again of the edited ones, it counts.
    make_of(&db, &edited).await;
    ran(&db, &moves).await.unwrap();
    for what in [What::Sides(edited), query] {
        let counts = passed(&db, &asked(what)).await.unwrap();
        assert!(counts.iter().all(Count::is_zero), "{counts:?}");
    }
}
