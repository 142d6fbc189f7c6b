//! A run that is cut, at each COMMIT and at frames all along it, and the run after it: everything is there once.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::run::{RunError, Summary, run};
use aegis_migrate::session::Direct;
use aegis_migrate::set::Set;
use aegis_migrate::structure::{Sealed, verify};
use aegis_testkit::{TestDb, wait_until};
use tokio_postgres::NoTls;
use tokio_postgres::config::Config;

use crate::folder::Folder;
use crate::proxy::{Frame, Place, Proxy};
use crate::run::{ladder, ran, sealed, set, used};

const BOUND: Duration = Duration::from_secs(30);
/// More than a run has; a loop that does not end is a failure.
const COMMITS_MAX: usize = 100;
/// Places, spread evenly over a run, at which it is killed.
const KILLS: usize = 16;

pub(crate) async fn ran_through(
    config: &Config,
    set: &Set,
    phase: Phase,
) -> Result<Summary, RunError> {
    let name = RunName {
        run: "cut".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    };
    let session = Direct::connect(config, NoTls, &name.application_name()).await?;
    let mut mine = Held::take(session, &name, BOUND).await?;
    let done = run(&mut mine, set, phase, &ladder(), &mut |_| {}).await?;
    Ok(done)
}

/// A database with rows that a step which ran twice would double.
pub(crate) async fn stage() -> TestDb {
    let db = used().await;
    db.admin
        .batch_execute("CREATE TABLE app.log (id int)")
        .await
        .unwrap();
    db
}

pub(crate) fn two_phases() -> Set {
    set(
        "ALTER TABLE users ADD COLUMN a int;\nINSERT INTO app.log (id) VALUES (1);",
        Some(
            "CREATE INDEX CONCURRENTLY i ON app.users (name);\nINSERT INTO app.log (id) VALUES (2);",
        ),
    )
}

/// After the run that was not cut: all of it, once, and nothing that nobody expects.
pub(crate) async fn whole(db: &TestDb, what: &str) {
    let row = db
        .admin
        .query_one(
            "SELECT (SELECT count(*) FROM app.log WHERE id = 1), (SELECT count(*) FROM app.log WHERE id = 2),
                 (SELECT bool_and(indisvalid AND indisready) FROM pg_index WHERE indexrelid = 'app.i'::regclass),
                 (SELECT count(*) FROM aegis_migrate.step WHERE state NOT IN ('applied', 'reconciled')),
                 (SELECT count(*) FROM aegis_migrate.phase)",
            &[],
        )
        .await
        .unwrap();
    let found: (i64, i64, bool, i64, i64) =
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
    assert_eq!(found, (1, 1, true, 0, 2), "{what}");
    let sealed = Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let report = verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    assert!(report.steps.holds(), "{what}: {report:?}");
}

/// Cuts one run of both phases there, and runs again. False: it was not cut, since it has no such frame.
async fn cut(set: &Set, which: Frame, number: usize, place: Place) -> bool {
    let what = format!("{which:?} {number} {place:?}");
    let db = stage().await;
    let mut is_cut = false;
    let mut before = 0;
    for phase in [Phase::Expand, Phase::Migrate] {
        if !is_cut {
            let number = number.saturating_sub(before);
            let proxy = Proxy::before(&db, which, number, place).await;
            let ended = ran_through(&proxy.config, set, phase).await;
            before += proxy.seen();
            is_cut = before >= number && proxy.seen() >= number;
            if is_cut {
                let error = ended.unwrap_err();
                // Lost, or not known: never a refusal of the server, and never "done".
                assert!(matches!(error.exit_code(), 15 | 17), "{what}: {error}");
            } else {
                ended.unwrap();
                continue;
            }
        }
        ran(&db, set, phase).await.unwrap();
    }
    whole(&db, &what).await;
    is_cut
}

#[tokio::test]
async fn a_run_that_loses_its_connection_at_any_commit_is_ended_by_the_next() {
    let set = two_phases();
    for place in [Place::Before, Place::Replied] {
        let mut number = 1;
        while cut(&set, Frame::Commit, number, place).await {
            number += 1;
            assert!(number < COMMITS_MAX);
        }
        assert!(number > 8, "only {number} commits were cut");
    }
}

/// The expand of [`two_phases`] as one transaction.
fn atomic() -> Set {
    let plain = two_phases();
    let mut folder = Folder::default();
    for (id, change) in &plain.changes {
        let toml = format!(
            "format = 1\nid = \"{id}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\natomic = true\ncompatible = [{{ rule = \"add-column\", reason = \"clients name their columns\" }}]\n[migrate]\nsql = \"migrate.sql\"\n"
        );
        folder = folder.with(&format!("{id}/change.toml"), toml);
        for name in ["expand.sql", "migrate.sql"] {
            let text = change.file(name).unwrap().text.clone();
            folder = folder.with(&format!("{id}/{name}"), text);
        }
    }
    sealed(&folder)
}

#[tokio::test]
async fn a_run_of_an_atomic_file_that_loses_its_connection_at_any_commit_is_ended_by_the_next() {
    let set = atomic();
    let db = stage().await;
    let proxy = Proxy::before(&db, Frame::Commit, 0, Place::Before).await;
    ran_through(&proxy.config, &set, Phase::Expand)
        .await
        .unwrap();
    let commits = proxy.seen();
    assert!(commits > 3, "only {commits}");
    for number in 1..=commits {
        // By turns: one transaction has no third outcome.
        let place = if number % 2 == 0 {
            Place::Before
        } else {
            Place::Replied
        };
        assert!(cut(&set, Frame::Commit, number, place).await);
    }
}

#[tokio::test]
async fn a_run_that_is_killed_anywhere_is_ended_by_the_next() {
    let set = two_phases();
    let db = stage().await;
    let mut frames = 0;
    for phase in [Phase::Expand, Phase::Migrate] {
        let proxy = Proxy::before(&db, Frame::Any, 0, Place::After).await;
        ran_through(&proxy.config, &set, phase).await.unwrap();
        frames += proxy.seen();
    }
    assert!(frames > 100, "only {frames} frames");
    for kill in 1..KILLS {
        let number = frames * kill / KILLS;
        assert!(cut(&set, Frame::Any, number, Place::After).await);
    }
}

#[tokio::test]
async fn mg_08_and_mg_10_a_runner_that_is_gone_in_the_middle_of_a_statement_is_gone_for_the_server_in_seconds()
 {
    let db = used().await;
    let proxy = Proxy::before(&db, Frame::Any, 0, Place::Before).await;
    let name = RunName {
        run: "gone".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    };
    let session = Direct::connect(&proxy.config, NoTls, &name.application_name())
        .await
        .unwrap();
    let mine = Held::take(session, &name, BOUND).await.unwrap();
    let pid = mine.session.pid;
    let asked = async || -> Option<String> {
        db.admin
            .query_opt(
                "SELECT coalesce(wait_event, '') FROM pg_stat_activity WHERE pid = $1",
                &[&pid],
            )
            .await
            .unwrap()
            .map(|row| row.get(0))
    };
    let sleeps = mine.session.client.batch_execute("SELECT pg_sleep(600)");
    tokio::select! {
        ended = sleeps => panic!("{ended:?}"),
        () = wait_until("the session is at work", BOUND, async || asked().await.as_deref() == Some("PgSleep")) => {}
    }
    proxy.end();
    // client_connection_check_interval: no time-out of TCP has to pass, and nobody has to end it.
    wait_until(
        "the server has noticed",
        Duration::from_secs(10),
        async || asked().await.is_none(),
    )
    .await;
    crate::run::held(&db, Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn a_fresh_database_stays_fresh_through_kills_until_a_run_has_ended_whole() {
    let set = set(
        "CREATE SCHEMA app;\nCREATE TABLE app.t (a int);\nCREATE INDEX i ON app.t (a);",
        Some("CREATE INDEX CONCURRENTLY j ON app.t (a);"),
    );
    for killed_behind in 1..=3 {
        let db = TestDb::empty().await;
        let mut mine = crate::run::held(&db, BOUND).await.unwrap();
        let reached = tokio::sync::Notify::new();
        let mut applied = 0;
        let mut told = |event: &serde_json::Value| {
            applied += i32::from(event["state"] == "applied");
            if applied == killed_behind {
                reached.notify_one();
            }
        };
        let ladder = ladder();
        tokio::select! {
            biased;
            () = reached.notified() => {}
            done = run(&mut mine, &set, Phase::Expand, &ladder, &mut told) => {
                panic!("it was not killed: {done:?}");
            }
        }
        drop(mine);
        let next = ran(&db, &set, Phase::Expand).await.unwrap();
        assert!(next.fresh, "{killed_behind}: {next:?}");
        let indexes = "SELECT count(*) FROM pg_indexes WHERE schemaname = 'app'";
        let there: i64 = db.admin.query_one(indexes, &[]).await.unwrap().get(0);
        assert_eq!(there, 2, "{killed_behind}");
        let last = ran(&db, &set, Phase::Expand).await.unwrap();
        assert!(!last.fresh, "{killed_behind}: {last:?}");
    }
}
