//! The sources of the throttle against a real server.

use aegis_backfill::throttle::{Limits, Look, Sampler};
use aegis_testkit::TestDb;

async fn look(db: &TestDb, limits: &Limits) -> Look {
    let mut client = db.connect().await;
    let mut sampler = Sampler::default();
    let first = sampler
        .look(&mut client, limits, 0, "public", None)
        .await
        .unwrap();
    if limits.max_wal_bytes_s.is_none() {
        return first;
    }
    assert_eq!(first, Look::default(), "the first look knows no rate");
    db.admin
        .batch_execute("CREATE TABLE IF NOT EXISTS w AS SELECT repeat('x', 100) FROM generate_series(1, 20000)")
        .await
        .unwrap();
    sampler
        .look(&mut client, limits, 0, "public", None)
        .await
        .unwrap()
}

fn waits(look: &Look) -> &str {
    look.wait.as_deref().unwrap_or("nothing")
}

#[tokio::test]
async fn a_source_that_gives_no_answer_is_never_a_good_one() {
    let db = TestDb::empty().await;
    let unknown = [
        Limits {
            max_lag_bytes: Some(1 << 40),
            ..Limits::default()
        },
        Limits {
            query: Some("SELECT 1 / 0 = 1".to_owned()),
            ..Limits::default()
        },
        Limits {
            query: Some("SELECT NULL::bool".to_owned()),
            ..Limits::default()
        },
        Limits {
            query: Some("SELECT 1".to_owned()),
            ..Limits::default()
        },
        Limits {
            query: Some("SELECT true WHERE false".to_owned()),
            ..Limits::default()
        },
        // It may only look.
        Limits {
            query: Some("DELETE FROM pg_description RETURNING true".to_owned()),
            ..Limits::default()
        },
    ];
    for limits in unknown {
        let paused = look(&db, &limits).await;
        assert!(
            waits(&paused).contains("no answer"),
            "{limits:?}: {paused:?}"
        );
        let go_on = Limits {
            go_on_unknown: true,
            ..limits
        };
        let passed = look(&db, &go_on).await;
        assert_eq!((passed.wait, passed.unknown.len()), (None, 1), "{go_on:?}");
    }
}

#[tokio::test]
async fn each_source_holds_it_back_above_its_limit_and_not_below() {
    let db = TestDb::empty().await;
    let file = std::env::temp_dir().join(format!("aegis_throttle_{}", db.name()));
    let file = file.to_str().unwrap().to_owned();
    // A session that works, for as long as the test holds a lock.
    db.admin
        .batch_execute("SELECT pg_advisory_lock(77)")
        .await
        .unwrap();
    let other = db.connect().await;
    let busy = tokio::spawn(async move {
        other
            .batch_execute("SELECT pg_advisory_lock(77)")
            .await
            .ok();
    });
    aegis_testkit::wait_until("a session works", crate::job::BOUND, async || {
        let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted";
        crate::job::number(&db, sql).await == 1
    })
    .await;
    let of = |limits: Limits| limits;
    let cases: [(&str, Limits, Limits); 4] = [
        (
            "sessions are active",
            of(Limits {
                max_active: Some(0),
                ..Limits::default()
            }),
            of(Limits {
                max_active: Some(10_000),
                ..Limits::default()
            }),
        ),
        (
            "bytes of WAL a second",
            of(Limits {
                max_wal_bytes_s: Some(1),
                ..Limits::default()
            }),
            of(Limits {
                max_wal_bytes_s: Some(1 << 50),
                ..Limits::default()
            }),
        ),
        (
            "query: it answers true",
            of(Limits {
                query: Some("SELECT true".to_owned()),
                ..Limits::default()
            }),
            of(Limits {
                query: Some("SELECT false".to_owned()),
                ..Limits::default()
            }),
        ),
        (
            "exists",
            of(Limits {
                file: Some("/".to_owned()),
                ..Limits::default()
            }),
            of(Limits {
                file: Some(file),
                ..Limits::default()
            }),
        ),
    ];
    for (said, over, under) in cases {
        let found = look(&db, &over).await;
        assert!(waits(&found).contains(said), "{over:?}: {found:?}");
        let found = look(&db, &under).await;
        assert_eq!(found, Look::default(), "{under:?}");
    }
    db.admin
        .batch_execute("SELECT pg_advisory_unlock(77)")
        .await
        .unwrap();
    busy.await.unwrap();
}

#[tokio::test]
async fn what_a_role_may_not_see_is_no_answer() {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute("DO $$ BEGIN CREATE ROLE backfill_blind LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$")
        .await
        .unwrap();
    let mut client = db.connect_as("backfill_blind").await;
    let limits = Limits {
        max_active: Some(10_000),
        ..Limits::default()
    };
    let look = Sampler::default()
        .look(&mut client, &limits, 0, "public", None)
        .await
        .unwrap();
    assert!(waits(&look).contains("hidden"), "{look:?}");
}

#[tokio::test]
async fn a_vacuum_of_the_table_and_a_slot_that_holds_wal_back_hold_it_back() {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute(
            "CREATE TABLE t AS SELECT g AS id, repeat('x', 500) AS fill FROM generate_series(1, 20000) g; DELETE FROM t WHERE id % 2 = 0",
        )
        .await
        .unwrap();
    let oid: u32 = db
        .admin
        .query_one("SELECT 't'::regclass::oid", &[])
        .await
        .unwrap()
        .get(0);
    let limits = Limits {
        autovacuum: true,
        ..Limits::default()
    };
    let mut client = db.connect().await;
    let mut look = async |table: u32, limits: &Limits| {
        Sampler::default()
            .look(&mut client, limits, table, "public", None)
            .await
            .unwrap()
    };
    assert_eq!(look(oid, &limits).await, Look::default());
    // So slow that it is at work for as long as the test looks.
    let other = db.connect().await;
    let cancel = other.cancel_token();
    let vacuum = tokio::spawn(async move {
        other
            .batch_execute("SET vacuum_cost_delay = '100ms'; SET vacuum_cost_limit = 1")
            .await
            .unwrap();
        other.batch_execute("VACUUM t").await
    });
    aegis_testkit::wait_until("the vacuum works", crate::job::BOUND, async || {
        let found = look(oid, &limits).await;
        waits(&found).contains("a vacuum works on the table")
    })
    .await;
    assert_eq!(
        look(oid + 1, &limits).await,
        Look::default(),
        "another table"
    );
    cancel.cancel_query(tokio_postgres::NoTls).await.unwrap();
    vacuum.await.unwrap().unwrap_err();

    let slot = format!("backfill_{}", std::process::id());
    let made = format!("SELECT pg_create_physical_replication_slot('{slot}', true)");
    db.admin.batch_execute(&made).await.unwrap();
    db.admin
        .batch_execute("CREATE TABLE w AS SELECT repeat('x', 100) FROM generate_series(1, 1000)")
        .await
        .unwrap();
    let of = |bytes| Limits {
        max_slot_bytes: Some(bytes),
        ..Limits::default()
    };
    let over = look(oid, &of(1)).await;
    let under = look(oid, &of(1 << 50)).await;
    let gone = format!("SELECT pg_drop_replication_slot('{slot}')");
    db.admin.batch_execute(&gone).await.unwrap();
    assert!(waits(&over).contains("bytes of WAL back"), "{over:?}");
    assert_eq!(under, Look::default());
}
