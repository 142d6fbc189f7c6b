//! One runner at a time: who waits, who is named, who was overtaken.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::run::{Outcome, run};

use crate::run::{held, ladder, ran, set, used};

#[tokio::test]
async fn mg_01_and_mg_09_two_runners_one_runs_and_the_other_reads_the_ledger_after_it() {
    let db = used().await;
    let set = set(
        "CREATE TABLE app.a (id int);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let (one, two) = tokio::join!(
        ran(&db, &set, Phase::Migrate),
        ran(&db, &set, Phase::Migrate)
    );
    let mut outcomes = [one.unwrap().outcome, two.unwrap().outcome];
    outcomes.sort_by_key(|outcome| *outcome == Outcome::Nothing);
    assert_eq!(outcomes, [Outcome::Applied, Outcome::Nothing]);
}

#[tokio::test]
async fn mg_11_six_runners_race_for_a_ledger_that_is_not_there() {
    let db = used().await;
    let set = set("CREATE TABLE app.a (id int);", None);
    let outcomes =
        futures_util::future::join_all((0..6).map(|_| ran(&db, &set, Phase::Expand))).await;
    let applied = outcomes
        .iter()
        .filter(|one| one.as_ref().unwrap().outcome == Outcome::Applied)
        .count();
    assert_eq!(applied, 1);
}

#[tokio::test]
async fn mg_04_who_holds_the_mutex_is_named_and_the_wait_is_bounded() {
    let db = used().await;
    let first = held(&db, Duration::ZERO).await.unwrap();
    let error = held(&db, Duration::from_millis(200))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("process {}", first.session.pid)),
        "{error}"
    );
    assert!(error.contains("aegis migrate/r1/run-1"), "{error}");
    // mg_08: a holder that is gone holds nothing.
    drop(first);
    held(&db, Duration::from_secs(20)).await.unwrap();
}

#[tokio::test]
async fn who_was_overtaken_writes_nothing_more() {
    let db = used().await;
    let mut old = held(&db, Duration::ZERO).await.unwrap();
    db.admin
        .batch_execute("UPDATE aegis_migrate.ledger SET epoch = epoch + 1")
        .await
        .unwrap();
    let set = set("CREATE TABLE app.a (id int);", None);
    let error = run(&mut old, &set, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 16, "{error}");
    let there: Option<String> = db
        .admin
        .query_one("SELECT to_regclass('app.a')::text", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(there, None);
}

#[tokio::test]
async fn mg_07_a_lost_session_stops_the_run_and_nothing_goes_on_without_the_lock() {
    let db = used().await;
    let mut old = held(&db, Duration::ZERO).await.unwrap();
    db.admin
        .query(
            "SELECT pg_terminate_backend($1, 10000)",
            &[&old.session.pid],
        )
        .await
        .unwrap();
    let set = set("CREATE TABLE app.a (id int);", None);
    run(&mut old, &set, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    let there: Option<String> = db
        .admin
        .query_one("SELECT to_regclass('app.a')::text", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(there, None);
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 1);
}
