//! The switch: what applications read, who may move it and when.

use aegis_migrate::contract::attempt;
use aegis_migrate::contract::fact::{Fact, Standing};
use aegis_migrate::contract::need::Need;
use aegis_migrate::contract::reconciled::{self, Question, WrittenNew};
use aegis_migrate::switch::{self, Move, Moved, Side, SwitchError};
use jiff::Timestamp;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::Target;

fn forward(standing: Standing) -> Fact {
    Fact {
        need: Need::Reconciled,
        standing,
        source: "target".to_owned(),
        at: Some(Timestamp::now()),
        age_limit_s: 86_400,
        detail: "3 rows differ".to_owned(),
    }
}

async fn make(
    client: &Client,
    reads: Side,
    writes: Side,
    forward: &Fact,
) -> Result<Moved, SwitchError> {
    let both = [Side::Old, Side::New];
    let wanted = Move {
        change: "split",
        seen: None,
        reads,
        writes,
        may_read: &both,
        may_write: &both,
        cache_ttl_ms: 5000,
        release: "r2",
        by: "ana",
        reason: "a test",
        forward,
        written_new: &WrittenNew::Unknown(String::new()),
        accept_forward: None,
        now: Timestamp::now(),
    };
    switch::make(client, &wanted).await
}

#[tokio::test]
async fn applications_read_old_until_it_moved_and_need_no_grant() {
    let target = Target::new().await;
    let app = target.db.connect_as(&target.ro).await;
    let asked = async || {
        let row = app
            .query_one("SELECT * FROM aegis_migrate.switched('split')", &[])
            .await
            .unwrap();
        let (reads, writes): (String, String) = (row.get("reads"), row.get("writes"));
        let (rev, ttl): (i32, i32) = (row.get("rev"), row.get("cache_ttl_ms"));
        (reads, writes, rev, ttl)
    };
    let (old, new) = ("old".to_owned(), "new".to_owned());
    // A wrong id is not told the old side for ever.
    for sql in [
        "SELECT * FROM aegis_migrate.switched('split')",
        "SELECT * FROM aegis_migrate.switched(NULL)",
    ] {
        let error = app.query(sql, &[]).await.unwrap_err();
        let said = error.as_db_error().unwrap();
        assert_eq!(*said.code(), SqlState::UNDEFINED_OBJECT);
        assert!(said.message().contains("nothing of a change"), "{said}");
    }
    let applied = "INSERT INTO aegis_migrate.phase (change, phase, line_sha256, steps, epoch, run, release) VALUES ('split', 'expand', '', 1, 1, 'r', 'r')";
    target.db.admin.batch_execute(applied).await.unwrap();
    assert_eq!(asked().await, (old.clone(), old.clone(), 0, 0));
    let shown = forward(Standing::Shown);
    let moved = make(&target.db.admin, Side::New, Side::Old, &shown)
        .await
        .unwrap();
    assert!(matches!(moved, Moved::Applied { rev: 1, .. }), "{moved:?}");
    assert_eq!(asked().await, (new, old, 1, 5000));
    let again = make(&target.db.admin, Side::New, Side::Old, &shown)
        .await
        .unwrap();
    assert_eq!(again, Moved::Nothing);
    for (seen, is_usage) in [(7, true), (-1, true), (0, false)] {
        let both = [Side::Old, Side::New];
        let wanted = Move {
            change: "split",
            seen: Some(seen),
            reads: Side::New,
            writes: Side::New,
            may_read: &both,
            may_write: &both,
            cache_ttl_ms: 5000,
            release: "r2",
            by: "ana",
            reason: "a test",
            forward: &shown,
            written_new: &WrittenNew::Unknown(String::new()),
            accept_forward: None,
            now: Timestamp::now(),
        };
        let error = switch::make(&target.db.admin, &wanted).await.unwrap_err();
        let found = matches!(error, SwitchError::NoSuchRev { is: 1, .. });
        assert_eq!(found, is_usage, "{error}");
    }
    let standing = switch::standing(&target.db.admin, "split").await.unwrap();
    let last = standing.last.unwrap();
    assert!(!last.counts, "it counts only after five seconds");
    assert_eq!(last.counts_from.duration_since(last.at).as_secs(), 5);
    drop(app);
    target.end().await;
}

/// No side of it is the old one any more, and nothing is offered that would bring it back.
async fn is_gone(client: &Client, shown: &Fact) {
    for (reads, writes) in [(Side::Old, Side::New), (Side::New, Side::Old)] {
        let error = make(client, reads, writes, shown).await.unwrap_err();
        assert!(matches!(error, SwitchError::Dropped { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("comes back from a backup"), "{said}");
        assert!(!said.contains("reopen"), "{said}");
    }
}

#[tokio::test]
async fn the_new_side_needs_a_zero_pass_and_the_old_one_is_always_there_until_the_door_shuts() {
    let target = Target::new().await;
    let client = &target.db.admin;
    let shown = forward(Standing::Shown);
    for standing in [Standing::Refuted, Standing::Missing, Standing::Inconclusive] {
        let fact = forward(standing);
        for (reads, writes) in [(Side::New, Side::Old), (Side::Old, Side::New)] {
            let error = make(client, reads, writes, &fact).await.unwrap_err();
            assert!(
                matches!(error, SwitchError::NotReconciled { .. }),
                "{error}"
            );
        }
    }
    make(client, Side::New, Side::New, &shown).await.unwrap();
    // Back needs nothing: the old side is kept up by the trigger.
    let missing = forward(Standing::Missing);
    make(client, Side::Old, Side::Old, &missing).await.unwrap();
    make(client, Side::New, Side::New, &shown).await.unwrap();
    attempt::close(client, "split", None, "ana", "r2")
        .await
        .unwrap();
    let error = make(client, Side::Old, Side::New, &shown)
        .await
        .unwrap_err();
    assert!(matches!(error, SwitchError::Closed { .. }), "{error}");
    attempt::reopen(client, "split", "ana", "test")
        .await
        .unwrap();
    make(client, Side::Old, Side::New, &shown).await.unwrap();
    // When the contract has run, the door cannot be opened again, and is not offered.
    make(client, Side::New, Side::New, &shown).await.unwrap();
    attempt::close(client, "split", None, "ana", "r2")
        .await
        .unwrap();
    let ran = "UPDATE aegis_migrate.contract SET done_at = now(), approval = 'a' WHERE reopened_at IS NULL";
    client.batch_execute(ran).await.unwrap();
    is_gone(client, &shown).await;
    // A database that was made with the contract never had an old side.
    let fresh = "DELETE FROM aegis_migrate.contract;
        INSERT INTO aegis_migrate.phase (change, phase, line_sha256, steps, epoch, run, release) VALUES ('split', 'contract', '', 1, 1, 'r', 'r')";
    client.batch_execute(fresh).await.unwrap();
    is_gone(client, &shown).await;
    target.end().await;
}

#[tokio::test]
async fn each_standing_has_its_own_way_out_and_only_what_was_counted_is_accepted() {
    let target = Target::new().await;
    let client = &target.db.admin;
    let both = [Side::Old, Side::New];
    let asked = async |forward: &Fact, written_new: &WrittenNew, accept_forward| {
        let wanted = Move {
            change: "split",
            seen: None,
            reads: Side::New,
            writes: Side::New,
            may_read: &both,
            may_write: &both,
            cache_ttl_ms: 0,
            release: "r2",
            by: "ana",
            reason: "a test",
            forward,
            written_new,
            accept_forward,
            now: Timestamp::now(),
        };
        switch::make(client, &wanted).await
    };
    let told = async |forward: &Fact, written_new: &WrittenNew, accept_forward| {
        let error = asked(forward, written_new, accept_forward).await;
        error.unwrap_err().to_string()
    };
    let (three, unknown) = (
        WrittenNew::Rows(3),
        WrittenNew::Unknown("agrees: 1 mismatching".to_owned()),
    );
    let refuted = forward(Standing::Refuted);
    let stale = Fact {
        at: Some(Timestamp::now() - jiff::SignedDuration::from_hours(25)),
        ..forward(Standing::Shown)
    };
    for (fact, rows, says, mends, accepts) in [
        (
            &forward(Standing::Missing),
            &unknown,
            "missing: ",
            false,
            false,
        ),
        (
            &forward(Standing::Inconclusive),
            &unknown,
            "repair sync split",
            false,
            false,
        ),
        (
            &stale,
            &unknown,
            "only a new count is needed: `aegis migrate reconcile split`",
            false,
            false,
        ),
        (
            &refuted,
            &unknown,
            "mend them or the expressions",
            true,
            false,
        ),
        (&refuted, &three, "written on the new side", true, true),
    ] {
        let error = told(fact, rows, None).await;
        assert!(error.contains(says), "{says}: {error}");
        assert_eq!(error.contains("mend"), mends, "{error}");
        assert_eq!(error.contains("--accept-forward 3"), accepts, "{error}");
    }
    for (fact, rows, accepted, says) in [
        (&refuted, &three, 2, "counted 3 such rows"),
        (&refuted, &three, 4, "counted 3 such rows"),
        (&refuted, &unknown, 3, "agrees: 1 mismatching"),
        (&stale, &unknown, 3, "count again"),
        (
            &forward(Standing::Shown),
            &WrittenNew::Rows(0),
            3,
            "counted 0 such rows",
        ),
    ] {
        let error = asked(fact, rows, Some(accepted)).await.unwrap_err();
        let is_refused = matches!(error, SwitchError::NotAccepted { .. });
        assert!(
            is_refused && error.to_string().contains(says),
            "{says}: {error}"
        );
    }
    let moved = asked(&refuted, &three, Some(3)).await.unwrap();
    assert!(
        matches!(
            moved,
            Moved::Applied {
                accepted: Some(3),
                ..
            }
        ),
        "{moved:?}"
    );
    let kept = "SELECT reason FROM aegis_migrate.switch WHERE change = 'split'";
    let kept: String = client.query_one(kept, &[]).await.unwrap().get(0);
    assert_eq!(
        kept,
        "a test; accepted: 3 rows whose new side forward does not make"
    );
    target.end().await;
}

#[tokio::test]
async fn a_side_that_the_change_does_not_name_is_refused() {
    let target = Target::new().await;
    let shown = forward(Standing::Shown);
    let wanted = Move {
        change: "split",
        seen: None,
        reads: Side::New,
        writes: Side::New,
        may_read: &[Side::Old, Side::New],
        may_write: &[Side::Old],
        cache_ttl_ms: 0,
        release: "r2",
        by: "ana",
        reason: "a test",
        forward: &shown,
        written_new: &WrittenNew::Unknown(String::new()),
        accept_forward: None,
        now: Timestamp::now(),
    };
    let error = switch::make(&target.db.admin, &wanted)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("writes to new") && error.contains("allows old"),
        "{error}"
    );
    target.end().await;
}

#[tokio::test]
async fn two_movers_at_once_one_moves() {
    let mut target = Target::new().await;
    let other = target.db.connect().await;
    let shown = forward(Standing::Shown);
    let transaction = target.db.admin.transaction().await.unwrap();
    let both = [Side::Old, Side::New];
    let none = WrittenNew::Unknown(String::new());
    let wanted = |writes| Move {
        change: "split",
        seen: None,
        reads: Side::Old,
        writes,
        may_read: &both,
        may_write: &both,
        cache_ttl_ms: 0,
        release: "r2",
        by: "ana",
        reason: "a test",
        forward: &shown,
        written_new: &none,
        accept_forward: None,
        now: Timestamp::now(),
    };
    switch::make(&transaction, &wanted(Side::New))
        .await
        .unwrap();
    let second = tokio::spawn({
        let shown = shown.clone();
        async move { make(&other, Side::New, Side::New, &shown).await }
    });
    aegis_testkit::wait_until("the second mover waits", std::time::Duration::from_secs(20), async || {
        let waiting: i64 = transaction
            .query_one(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
                &[],
            )
            .await
            .unwrap()
            .get(0);
        waiting == 1
    })
    .await;
    transaction.commit().await.unwrap();
    let error = second.await.unwrap().unwrap_err();
    assert!(
        matches!(error, SwitchError::MovedMeanwhile { .. }),
        "{error}"
    );
    target.end().await;
}

#[tokio::test]
async fn forward_is_shown_by_the_newest_zero_pass_with_the_trigger_that_is_there_and_while_it_is_fresh()
 {
    let shop = super::shop::Shop::expanded("ALTER TABLE users DROP COLUMN name;\n").await;
    let change = &shop.set.changes[&super::shop::id()];
    let asked = async || {
        let fact = reconciled::fact(&shop.db.admin, change, Question::Forward)
            .await
            .unwrap();
        let soon = Timestamp::now();
        let later = soon + jiff::SignedDuration::from_hours(25);
        (
            fact.standing.clone(),
            fact.blocks(soon).is_none(),
            fact.blocks(later).is_none(),
        )
    };
    assert_eq!(asked().await, (Standing::Missing, false, false));
    // That one direction holds says nothing of forward.
    shop.pass("agrees", 0).await;
    assert_eq!(asked().await, (Standing::Missing, false, false));
    shop.pass("forward", 0).await;
    assert_eq!(asked().await, (Standing::Shown, true, false));
    shop.sql("ALTER TABLE app.users DISABLE TRIGGER USER").await;
    assert_eq!(asked().await, (Standing::Inconclusive, false, false));
    shop.sql("ALTER TABLE app.users ENABLE TRIGGER USER").await;
    // One that was made by a folder with other expressions.
    shop.sql(
        "INSERT INTO aegis_migrate.reconcile_pass (change, kind, asked_sha256, started_at, snapshot_lsn, rows_counted, missing, mismatch,
             orphaned, samples, trigger_sha256, run, by_whom, release)
         SELECT change, kind, repeat('0', 64), clock_timestamp(), snapshot_lsn, rows_counted, missing, mismatch, orphaned, samples,
             trigger_sha256, run, by_whom, release FROM aegis_migrate.reconcile_pass WHERE kind = 'forward' ORDER BY at DESC LIMIT 1",
    )
    .await;
    assert_eq!(asked().await, (Standing::Inconclusive, false, false));
    shop.pass("forward", 1).await;
    assert_eq!(asked().await, (Standing::Refuted, false, false));
    shop.end().await;
}
