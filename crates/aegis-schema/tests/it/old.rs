//! Databases of the installer of before: taken over when their structure is what the lock makes, left alone when it is not.

use aegis_migrate::ledger::LedgerName;
use aegis_migrate::standing::{recorded_in, standing};
use aegis_schema::{SchemaError, install, install_set, set};
use aegis_store::install::{OLD_STEPS, SCHEMA};
use aegis_store::{Store, StoreError};
use aegis_testkit::TestDb;

use crate::support::{config, engine, install_as_before, one, structure, with_next};

async fn of_before(steps: usize) -> TestDb {
    let db = TestDb::empty().await;
    // The roles first, as whoever installs at the same moment does.
    let mut client = db.connect().await;
    client
        .batch_execute("select pg_advisory_lock(1)")
        .await
        .unwrap();
    install_as_before(&mut client, steps).await;
    db
}

async fn has_ledger(db: &TestDb) -> bool {
    let there = "select to_regnamespace('aegis_ledger') is not null";
    one(&db.admin, there).await
}

#[tokio::test]
async fn a_database_of_before_is_taken_over_without_a_statement_run_again() {
    let db = of_before(OLD_STEPS.len()).await;
    let before = structure(&db.admin).await;
    let done = install(&config(&db), 2).await.unwrap();
    assert_eq!((done.applied, done.schema), (vec![], SCHEMA));
    assert_eq!(
        structure(&db.admin).await.compare(&before).unwrap(),
        [],
        "taking over changed the structure"
    );
    let rows = recorded_in(&db.admin, LedgerName::Engine).await.unwrap();
    let stands = standing(&set().unwrap(), &rows);
    assert_eq!(stands.version(), usize::try_from(SCHEMA).unwrap());
    let steps: i64 = one(&db.admin, "select count(*) from aegis_ledger.step").await;
    assert_eq!(steps, 0, "a step was executed");
    let how: String = one(
        &db.admin,
        "select string_agg(distinct how, ' ') from aegis_ledger.baseline",
    )
    .await;
    assert_eq!(how, "compared");
    // What releases of before compare stands as they wrote it.
    let old: i64 = one(&db.admin, "select count(*) from aegis.schema_step").await;
    assert_eq!(old, i64::from(SCHEMA));
    Store::connect(engine(&db)).await.unwrap();
    // And it goes on from there, as a database in use.
    let next = with_next("ALTER TABLE aegis.worker ADD COLUMN colour text;\n");
    let done = install_set(&config(&db), &next, 2).await.unwrap();
    assert_eq!((done.applied, done.schema), (vec![SCHEMA + 1], SCHEMA + 1));
}

/// The lock makes what the installer of before made: the same structure, whichever way a database came to it.
#[tokio::test]
async fn the_set_makes_exactly_what_the_installer_of_before_made() {
    let (old, new) = (of_before(OLD_STEPS.len()).await, TestDb::empty().await);
    install(&config(&new), 2).await.unwrap();
    let (old, new) = (structure(&old.admin).await, structure(&new.admin).await);
    assert_eq!(old.compare(&new).unwrap(), []);
    assert_eq!(old.fingerprint(), new.fingerprint());
    assert!(old.elements.len() > 500, "{}", old.elements.len());
}

/// What the old runner would compare on this database is what it wrote itself: it applies nothing again.
#[tokio::test]
async fn the_installer_of_before_finds_its_steps_in_a_new_database() {
    let db = TestDb::new().await;
    let rows = db
        .admin
        .query(
            "select version, name, checksum from aegis.schema_step order by version",
            &[],
        )
        .await
        .unwrap();
    let found: Vec<(i32, String, String)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let wanted: Vec<(i32, String, String)> = (1..)
        .zip(OLD_STEPS)
        .map(|(at, old)| (at, old.name.to_owned(), old.checksum.to_owned()))
        .collect();
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn a_structure_that_is_another_is_refused_with_what_is_different() {
    let db = of_before(OLD_STEPS.len()).await;
    db.admin
        .batch_execute("ALTER TABLE aegis.worker DROP COLUMN name")
        .await
        .unwrap();
    let error = install(&config(&db), 2).await.unwrap_err();
    let SchemaError::Differs {
        schema,
        differences,
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(schema, SCHEMA);
    assert!(
        differences.contains("column name of aegis.worker"),
        "{differences}"
    );
    assert!(!has_ledger(&db).await, "a refusal left something");
}

#[tokio::test]
async fn an_edited_step_of_before_is_refused_by_its_number() {
    let db = of_before(OLD_STEPS.len()).await;
    db.admin
        .batch_execute("UPDATE aegis.schema_step SET checksum = 'x' WHERE version = 6")
        .await
        .unwrap();
    let error = install(&config(&db), 2).await.unwrap_err();
    assert!(
        matches!(
            error,
            SchemaError::Store(StoreError::StepEdited { version: 6 })
        ),
        "{error:?}"
    );
    assert!(!has_ledger(&db).await, "a refusal left something");
}

#[tokio::test]
async fn a_database_that_the_installer_of_before_left_behind_is_refused() {
    let db = of_before(8).await;
    let error = install(&config(&db), 2).await.unwrap_err();
    assert!(
        matches!(
            error,
            SchemaError::Behind {
                found: 8,
                taken: 10
            }
        ),
        "{error:?}"
    );
    assert!(!has_ledger(&db).await, "a refusal left something");
}
