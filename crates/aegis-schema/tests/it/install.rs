//! Once whoever installs, whole or going on where it was cut, versions side by side.

use aegis_schema::{SchemaError, install, install_set};
use aegis_store::install::{SCHEMA, verify_against};
use aegis_store::{Store, StoreError};
use aegis_testkit::TestDb;

use crate::support::{changed, config, engine, one, structure, through, with_next};

/// A change of the next version, for tests only.
const NEXT: &str = "ALTER TABLE aegis.worker ADD COLUMN colour text;\nALTER TABLE aegis.worker ADD COLUMN shade text;\n";

#[tokio::test]
async fn rl_22_two_installers_at_once_apply_each_step_once() {
    let db = TestDb::empty().await;
    let (a, b) = (config(&db), config(&db));
    let (a, b) = tokio::join!(install(&a, 2), install(&b, 2));
    let (a, b) = (a.unwrap(), b.unwrap());
    let mut applied = [a.applied.clone(), b.applied.clone()].concat();
    applied.sort_unstable();
    assert_eq!(applied, (1..=SCHEMA).collect::<Vec<_>>());
    assert_eq!((a.schema, b.schema), (SCHEMA, SCHEMA));
    // Yesterday, today and two days more, for each of the seven tables.
    assert_eq!(a.partitions + b.partitions, 4 * 7);
    let again = install(&config(&db), 2).await.unwrap();
    assert_eq!((again.applied.len(), again.partitions), (0, 0));
    let locks = "select count(*) from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())";
    let left: i64 = one(&db.admin, locks).await;
    assert_eq!(left, 0, "a lock outlived its install");
    Store::connect(engine(&db)).await.unwrap();
}

/// The roles belong to the cluster: installs in two databases at once meet there.
#[tokio::test]
async fn installs_in_two_databases_at_once_share_the_roles() {
    let (one, two) = (TestDb::empty().await, TestDb::empty().await);
    let (a, b) = (config(&one), config(&two));
    let (a, b) = tokio::join!(install(&a, 0), install(&b, 0));
    assert_eq!(a.unwrap().applied, b.unwrap().applied);
}

/// The change is one transaction; the number says what is whole, so no program takes half a schema for one.
#[tokio::test]
async fn a_step_that_fails_leaves_nothing_half_done() {
    let db = TestDb::empty().await;
    let broken = with_next(
        "CREATE TABLE aegis.half (n int);\nALTER TABLE aegis.nothing ADD COLUMN n int;\n",
    );
    let error = install_set(&config(&db), &broken, 2).await.unwrap_err();
    assert!(matches!(error, SchemaError::Run(_)), "{error:?}");
    assert!(error.to_string().contains("expand.sql:2"), "{error}");
    let half: bool = one(&db.admin, "select to_regclass('aegis.half') is not null").await;
    assert!(!half, "a part of the change was left");
    let error = verify_against(&db.admin, SCHEMA).await.unwrap_err();
    assert!(
        matches!(error, StoreError::SchemaTooOld { found: 0, .. }),
        "{error:?}"
    );
    let done = install(&config(&db), 2).await.unwrap();
    assert_eq!((done.applied.len(), done.schema), (0, SCHEMA));
    verify_against(&db.admin, SCHEMA).await.unwrap();
}

/// A database that has a number is in use, though the first run of its ledger never ended whole: what breaks others is refused.
#[tokio::test]
async fn a_database_with_a_number_has_gates() {
    let db = TestDb::new().await;
    db.admin
        .batch_execute("update aegis_ledger.ledger set fresh = true")
        .await
        .unwrap();
    let next = with_next("DROP TABLE aegis.parked;\nDROP VIEW aegis.task_input;\n");
    let error = install_set(&config(&db), &next, 2).await.unwrap_err();
    assert!(error.to_string().contains("class D"), "{error}");
}

/// What a killed installer has left is gone on with: the next one begins where its ledger ends.
#[tokio::test]
async fn an_install_that_was_cut_is_ended_by_the_next() {
    let db = TestDb::empty().await;
    let done = install_set(&config(&db), &through(4), 2).await.unwrap();
    assert_eq!(done.applied, [1, 2, 3, 4]);
    // As if it had been killed before it came to the number.
    db.admin
        .batch_execute("update aegis.schema_version set schema = 0; delete from aegis.schema_step; update aegis_ledger.ledger set fresh = true")
        .await
        .unwrap();
    let done = install(&config(&db), 2).await.unwrap();
    assert_eq!(done.applied, (5..=SCHEMA).collect::<Vec<_>>());
    assert_eq!(done.schema, SCHEMA);
    let steps: i64 = one(&db.admin, "select count(*) from aegis.schema_step").await;
    assert_eq!(steps, i64::from(SCHEMA));
}

#[tokio::test]
async fn an_edited_step_is_refused_by_its_number() {
    let db = TestDb::new().await;
    let edited = changed(&[(
        "20261129T2245_verbs/expand.sql",
        b"CREATE TABLE aegis.edited (n int);\n",
    )]);
    let error = install_set(&config(&db), &edited, 2).await.unwrap_err();
    assert!(
        matches!(
            error,
            SchemaError::Store(StoreError::StepEdited { version: 3 })
        ),
        "{error:?}"
    );
}

/// Changes only expand: a program that started before any of them starts after all of them, until somebody switches. From the
/// sixth on each runs here as on a database in use, with every gate.
#[tokio::test]
async fn no_step_raises_min_schema() {
    let db = TestDb::empty().await;
    install_set(&config(&db), &through(5), 2).await.unwrap();
    for known in 6..=usize::try_from(SCHEMA).unwrap() {
        let done = install_set(&config(&db), &through(known), 2).await.unwrap();
        assert_eq!(done.applied, [i32::try_from(known).unwrap()]);
        let admitted: i32 = one(&db.admin, "SELECT min_schema FROM aegis.schema_version").await;
        assert_eq!(admitted, 0, "step {known}");
    }
    let whole = TestDb::new().await;
    let differences = structure(&whole.admin)
        .await
        .compare(&structure(&db.admin).await)
        .unwrap();
    assert_eq!(
        differences,
        [],
        "step by step is another schema than in one go"
    );
}

/// Version N has expanded; N - 1 starts, installs (nothing) and works beside it.
#[tokio::test]
async fn the_version_before_works_beside_the_next_one() {
    let db = TestDb::new().await;
    let installed = install_set(&config(&db), &with_next(NEXT), 2)
        .await
        .unwrap();
    assert_eq!(
        (installed.applied, installed.schema),
        (vec![SCHEMA + 1], SCHEMA + 1)
    );
    verify_against(&db.admin, SCHEMA + 1).await.unwrap();
    verify_against(&db.admin, SCHEMA).await.unwrap();
    let before = install(&config(&db), 2).await.unwrap();
    assert_eq!((before.applied.len(), before.schema), (0, SCHEMA + 1));
    let store = Store::connect(engine(&db)).await.unwrap();
    let status = store.database_status().await.unwrap();
    // A new database begins switched to inline inputs, which schema 7 reads; the next change raises nothing.
    assert_eq!((status.schema, status.min_schema), (SCHEMA + 1, 7));
}

/// A database that needs more than this binary knows is left alone.
#[tokio::test]
async fn a_binary_that_is_too_old_installs_nothing() {
    let db = TestDb::new().await;
    let raise = format!(
        "update aegis.schema_version set schema = {0}, min_schema = {0}",
        SCHEMA + 3
    );
    db.admin.batch_execute(&raise).await.unwrap();
    let error = install(&config(&db), 40).await.unwrap_err();
    let SchemaError::Store(StoreError::BinaryTooOld { known, min_schema }) = error else {
        panic!("{error:?}");
    };
    assert_eq!((known, min_schema), (SCHEMA, SCHEMA + 3));
}
