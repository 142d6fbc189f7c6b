//! Two sets in one database: the engine's and an application's. Neither sees, waits for or counts the other's.

use std::time::Duration;

use aegis_migrate::change::{Files, Phase};
use aegis_migrate::ledger::{self, LedgerName};
use aegis_migrate::mutex::{Held, MutexError, RunName};
use aegis_migrate::run::{Ladder, Outcome, run};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_migrate::standing::recorded;
use aegis_schema::{install, install_set};
use aegis_store::install::SCHEMA;
use aegis_testkit::TestDb;
use tokio_postgres::NoTls;

use crate::support::{config, one, with_next};

/// One table, whose id is a version of the engine's too.
fn application() -> Set {
    const ID: &str = "20261129T2243_tables";
    let toml =
        format!("format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n");
    let (toml_at, sql_at) = (format!("{ID}/change.toml"), format!("{ID}/expand.sql"));
    let sql = b"CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY);\n".as_slice();
    let files = [(toml_at.as_str(), toml.as_bytes()), (&sql_at, sql)];
    let unsealed = Set::of(Files::embedded("app", files)).unwrap();
    let hash = unsealed
        .changes
        .values()
        .next()
        .unwrap()
        .sha256(Phase::Expand);
    let lock = format!("{ID} expand {}\n", hash.unwrap());
    let files = files
        .into_iter()
        .chain([("migrations.lock", lock.as_bytes())]);
    Set::of(Files::embedded("app", files)).unwrap()
}

async fn held(db: &TestDb, of: LedgerName, wait: Duration) -> Result<Held, MutexError> {
    let name = RunName {
        run: "run-1".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    };
    let config = db.url().parse().unwrap();
    let session = Direct::connect(&config, NoTls, &name.application_name())
        .await
        .unwrap();
    Held::take_in(session, of, &name, wait).await
}

/// MG-12: two sets in one database, with changes of one id, in one process.
#[tokio::test]
async fn mg_12_an_application_and_the_engine_keep_separate_books() {
    let db = TestDb::empty().await;
    install(&config(&db), 2).await.unwrap();
    let mut held = held(&db, LedgerName::Application, Duration::from_secs(20))
        .await
        .unwrap();
    assert!(!held.ledger.fresh, "the engine's tables are somebody's");
    let set = application();
    let done = run(
        &mut held,
        &set,
        Phase::Expand,
        &Ladder::default(),
        &mut |_| {},
    )
    .await
    .unwrap();
    assert_eq!((done.outcome, done.version), (Outcome::Applied, 1));
    // The engine's next change runs while the application's mutex is held.
    let next = with_next("ALTER TABLE aegis.worker ADD COLUMN colour text;\n");
    let installed = install_set(&config(&db), &next, 2).await.unwrap();
    assert_eq!(installed.applied, [SCHEMA + 1]);
    held.release().await;
    assert_eq!(recorded(&db.admin).await.unwrap().len(), 1);
    let engine: i64 = one(&db.admin, "select count(*) from aegis_ledger.phase").await;
    assert_eq!(engine, i64::from(SCHEMA + 1));
    let id = async |of| ledger::find_in(&db.admin, of).await.unwrap().unwrap().id;
    assert_ne!(
        id(LedgerName::Application).await,
        id(LedgerName::Engine).await
    );
}

/// An application that was there first does not make the engine's first install one with gates.
#[tokio::test]
async fn the_engine_is_installed_beside_tables_that_are_in_use() {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute("CREATE SCHEMA app; CREATE TABLE app.users (id bigint PRIMARY KEY)")
        .await
        .unwrap();
    let done = install(&config(&db), 2).await.unwrap();
    assert_eq!(done.applied.len(), usize::try_from(SCHEMA).unwrap());
}

/// The engine's mutex is one: a second holder of it waits, and is told who has it.
#[tokio::test]
async fn the_engines_mutex_is_its_own_and_only_one() {
    let db = TestDb::empty().await;
    let first = held(&db, LedgerName::Engine, Duration::from_secs(20))
        .await
        .unwrap();
    let other = held(&db, LedgerName::Application, Duration::ZERO).await;
    other.unwrap().release().await;
    let busy = held(&db, LedgerName::Engine, Duration::ZERO)
        .await
        .unwrap_err();
    assert!(matches!(busy, MutexError::Busy { .. }), "{busy:?}");
    assert!(
        busy.to_string().contains("aegis migrate/r1/run-1"),
        "{busy}"
    );
    first.release().await;
}
