//! A trigger that was made of other expressions than the folder has now, or in the books of a tenant.

use std::time::Duration;

use aegis_backfill::job::Who;
use aegis_migrate::change::{Phase, PhaseOf};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::repair::{self, RepairError, accept_checksum, needs_replay, replayed_with};
use aegis_migrate::run::{Ladder, Outcome, RunError, data, run};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_migrate::shadow;
use aegis_testkit::TestDb;
use tokio_postgres::NoTls;

use crate::folder::Folder;
use crate::run::{held, held_in, ladder, ran, sealed};
use crate::run_rows::{ID, folder, number};

const BOUND: Duration = Duration::from_secs(20);

/// The change with the table itself, so that a replay makes all.
fn from_nothing() -> Folder {
    folder(100)
        .edited(
            &format!("{ID}/expand.sql"),
            "ALTER TABLE t ADD COLUMN cents bigint;",
            "CREATE TABLE t (id bigint PRIMARY KEY, price numeric, cents bigint);",
        )
        .edited(
            &format!("{ID}/change.toml"),
            "compatible = [{ rule = \"add-column\", reason = \"clients name their columns\" }]\n",
            "",
        )
}

/// Accepts, with what a replay of the lines makes.
async fn accept(db: &TestDb, set: &Set) -> Result<(), RepairError> {
    let mut mine = held(db, BOUND).await.unwrap();
    let at: PhaseOf = format!("{ID}:expand").parse().unwrap();
    let replayed = if needs_replay(&mine, set, &at).await? {
        let lines = replayed_with(&mine, set, &at).await?;
        let fresh = TestDb::empty().await;
        shadow::replay(&fresh.admin, &lines).await.unwrap();
        Some(shadow::structure(&fresh.admin, &lines, None).await.unwrap())
    } else {
        None
    };
    let accepted = accept_checksum(&mut mine, set, &at, replayed.as_ref(), "reviewed").await;
    mine.release().await;
    accepted.map(|_| ())
}

async fn repaired(db: &TestDb, set: &Set) -> Result<String, RepairError> {
    let mut held = held(db, BOUND).await.unwrap();
    let id = ID.parse().unwrap();
    let done = repair::sync(&mut held, set, &id, &Ladder::default(), "an edit").await;
    held.release().await;
    done
}

async fn counted(db: &TestDb, set: &Set) -> Result<usize, RunError> {
    let session = Direct::connect(&db.url().parse().unwrap(), NoTls, "a pass")
        .await
        .unwrap();
    let who = Who {
        run: "run-1".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    };
    let change = &set.changes[&ID.parse().unwrap()];
    let counts = data::reconcile(session, change, &who, &mut |_| {}).await?;
    Ok(counts.iter().filter(|count| count.is_zero()).count())
}

#[tokio::test]
async fn an_edit_of_the_expressions_is_accepted_and_counted_only_when_the_trigger_is_made_of_it() {
    let db = TestDb::empty().await;
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    let before = sealed(&from_nothing());
    ran(&db, &before, Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("INSERT INTO app.t (id, price) SELECT g, g FROM generate_series(1, 50) g")
        .await
        .unwrap();
    let edited = from_nothing().edited(
        &format!("{ID}/change.toml"),
        "price = \"cents / 100.0\"",
        "price = \"cents * 0.01\"",
    );
    let edited = sealed(&edited);
    assert_eq!(
        ran(&db, &edited, Phase::Expand)
            .await
            .unwrap_err()
            .exit_code(),
        11
    );
    let error = accept(&db, &edited).await.unwrap_err();
    let text = error.to_string();
    assert_eq!(error.exit_code(), 12, "{text}");
    for part in [
        "other expressions",
        "repair sync",
        ID,
        "count the rows again",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Nor is a pass made with them, while the trigger writes by the others.
    let error = counted(&db, &edited).await.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{error}");
    assert!(error.to_string().contains("repair sync"), "{error}");
    // A backfill that is under way moves rows by the others: it is fenced with the repair.
    let job = "INSERT INTO aegis_migrate.backfill (change, spec_sha256, state, epoch, batch_rows, state_by, run, release)
        VALUES ($1, 'x', 'running', 7, 10, 'ana', 'run-1', 'r1')";
    db.admin.execute(job, &[&ID]).await.unwrap();
    assert!(
        repaired(&db, &edited)
            .await
            .unwrap()
            .contains("other expressions")
    );
    assert_eq!(
        number(&db, "SELECT epoch FROM aegis_migrate.backfill").await,
        8
    );
    accept(&db, &edited).await.unwrap();
    assert_eq!(counted(&db, &edited).await.unwrap(), 2);
    let again = ran(&db, &edited, Phase::Expand).await.unwrap();
    assert_eq!(again.outcome, Outcome::Nothing);
    // The folder of before is refused the same way.
    let error = counted(&db, &before).await.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{error}");
    let nothing = repaired(&db, &edited).await.unwrap_err();
    assert_eq!(nothing.exit_code(), 2, "{nothing}");
}

#[tokio::test]
async fn a_trigger_in_the_books_of_a_tenant_is_looked_at_too() {
    let db = TestDb::empty().await;
    let set = sealed(&from_nothing());
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    // Where the trigger tells who writes.
    held(&db, BOUND).await.unwrap().release().await;
    let tenant = LedgerName::of_schema("app");
    let ran = async || {
        let mut held = held_in(&db, tenant, BOUND).await.unwrap();
        let done = run(&mut held, &set, Phase::Expand, &ladder(), &mut |_| {}).await;
        held.release().await;
        done
    };
    ran().await.unwrap();
    assert_eq!(ran().await.unwrap().outcome, Outcome::Nothing);
    db.admin
        .batch_execute("ALTER TABLE app.t DISABLE TRIGGER USER")
        .await
        .unwrap();
    let error = ran().await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    assert!(error.to_string().contains("repair sync"), "{error}");
}
