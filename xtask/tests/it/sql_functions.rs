//! The generated functions themselves, sent both ways.

use deadpool_postgres::ClientWrapper;
use jiff::Timestamp;
use tokio_postgres::NoTls;
use uuid::Uuid;

use crate::generated::ALL;
use crate::generated::probe::{self, FlagsParams};
use crate::generated::task::{self, SubmitParams};
use crate::session::{Conn, Mode, Session};
use crate::{fixture, server_url};

/// A database of its own with the fixture's tables.
async fn connect(name: &str) -> ClientWrapper {
    let (admin, connection) = tokio_postgres::connect(&server_url("postgres"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    admin
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    let (client, connection) = tokio_postgres::connect(&server_url(name), NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(async { connection.await.unwrap() });
    let schema =
        std::fs::read_to_string(fixture().join("migrations/20260101T0000_tables/expand.sql"))
            .unwrap();
    client.batch_execute(&schema).await.unwrap();
    client
        .batch_execute("SET search_path TO aegis")
        .await
        .unwrap();
    ClientWrapper::new(client, connection)
}

async fn round_trip(session: &impl Session) {
    let (owner, ids) = (Uuid::from_u128(7), [Uuid::from_u128(1), Uuid::from_u128(2)]);
    let run_at = Timestamp::from_second(1_700_000_000).unwrap();
    for (id, label) in ids.into_iter().zip([None, Some("two")]) {
        let meta = serde_json::json!({ "n": 1 });
        let params = SubmitParams {
            id,
            label,
            state: 0,
            owner: Uuid::nil(),
            epoch: 0,
            run_at,
            result: None,
            tags: &["a", "b"],
            meta: &meta,
        };
        assert_eq!(task::submit(session, &params).await.unwrap(), 1);
    }

    // The text for one row gives one; a larger one gives what is left.
    let first = task::acquire(session, 1, owner).await.unwrap();
    assert_eq!(first.len(), 1);
    let rest = task::acquire(session, 7, owner).await.unwrap();
    assert_eq!(rest.len(), 1);

    let results = [Some(&b"done"[..]), None];
    let other = task::complete(session, &ids, Uuid::nil(), &results)
        .await
        .unwrap();
    assert_eq!(other, [], "the guard matches only the owner");
    let mut done = task::complete(session, &ids, owner, &results)
        .await
        .unwrap();
    done.sort_by_key(|row| row.id);
    assert_eq!(done[0].result.as_deref(), Some(&b"done"[..]));
    assert_eq!((done[1].result.as_deref(), done[1].epoch), (None, 1));

    let found = task::find(session, ids[1]).await.unwrap().unwrap();
    assert_eq!(
        (found.label.as_deref(), found.state, found.run_at),
        (Some("two"), 2, run_at)
    );
    assert_eq!(
        (found.tags, found.meta["n"].as_i64(), found.r#type),
        (vec!["a".into(), "b".into()], Some(1), true)
    );
    assert_eq!(task::find(session, Uuid::nil()).await.unwrap(), None);

    let count = probe::count(session, "yes").await.unwrap();
    assert_eq!(
        (count.tasks, count.quoted.as_str(), count.dollars.as_str()),
        (2, ":no \"no\" $1", " :no ")
    );
    assert_eq!(
        (count.odd, count.slice),
        (vec![None, Some("yes".to_owned())], vec![1, 2])
    );
}

async fn prepared(client: &ClientWrapper) -> i64 {
    let row = client
        .query_one("SELECT count(*) FROM pg_prepared_statements", &[])
        .await
        .unwrap();
    // The question itself is prepared, too.
    row.get::<_, i64>(0) - 1
}

#[test]
fn every_statement_is_listed_by_name() {
    let names = ALL.map(|statement| statement.name);
    let expected = [
        "probe/count",
        "probe/flags",
        "task/acquire",
        "task/complete",
        "task/find",
        "task/submit",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn unnamed_statements_leave_nothing_prepared() {
    let client = connect("unnamed").await;
    round_trip(&Conn::pooled(&client, Mode::Unnamed)).await;
    assert_eq!(prepared(&client).await, 0);
}

#[tokio::test]
async fn named_statements_are_prepared_once_each() {
    let mut client = connect("named").await;
    round_trip(&Conn::pooled(&client, Mode::Named)).await;
    // All but flags were sent, and acquire in two sizes.
    let once = i64::try_from(ALL.len()).unwrap();
    assert_eq!(prepared(&client).await, once);

    client.batch_execute("TRUNCATE task").await.unwrap();
    let transaction = client.transaction().await.unwrap();
    round_trip(&Conn::in_transaction(&transaction, Mode::Named)).await;
    transaction.rollback().await.unwrap();
    assert_eq!(
        prepared(&client).await,
        once,
        "a transaction shares what its connection prepared"
    );
    let conn = Conn::pooled(&client, Mode::Named);
    assert_eq!(probe::count(&conn, "").await.unwrap().tasks, 0);
}

#[tokio::test]
async fn a_bare_connection_and_its_transaction_are_unnamed() {
    let mut wrapper = connect("bare").await;
    let client: &mut tokio_postgres::Client = &mut wrapper;
    let transaction = client.transaction().await.unwrap();
    round_trip(&transaction).await;
    transaction.rollback().await.unwrap();
    round_trip(&*client).await;
    assert_eq!(prepared(&wrapper).await, 0);
}

#[tokio::test]
async fn many_booleans_travel_in_a_struct() {
    let client = connect("flags").await;
    let params = FlagsParams {
        a: true,
        b: false,
        c: true,
        r#type: false,
    };
    let row = probe::flags(&Conn::pooled(&client, Mode::Unnamed), &params)
        .await
        .unwrap();
    assert_eq!(
        (row.a, row.b, row.c, row.r#type),
        (true, false, true, false)
    );
}

#[tokio::test]
async fn too_few_and_too_many_rows_are_errors() {
    let client = connect("rows").await;
    for mode in [Mode::Unnamed, Mode::Named] {
        let conn = Conn::pooled(&client, mode);
        let none = conn
            .query_one(&task::FIND, 0, &[&Uuid::nil()])
            .await
            .unwrap_err();
        assert!(
            none.to_string().contains("unexpected number of rows"),
            "{none}"
        );
    }
    client
        .batch_execute(
            "INSERT INTO task (id, owner) SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 2)",
        )
        .await
        .unwrap();
    for mode in [Mode::Unnamed, Mode::Named] {
        let conn = Conn::pooled(&client, mode);
        let two = conn
            .query_opt(&task::ACQUIRE, 1, &[&Uuid::nil()])
            .await
            .unwrap_err();
        assert!(
            two.to_string().contains("unexpected number of rows"),
            "{two}"
        );
        client
            .batch_execute("UPDATE task SET state = 0")
            .await
            .unwrap();
    }
}
