//! The gate as somebody meets it who wants the old side gone without the right: each is refused with 18, and nothing is dropped.

use std::time::Duration;

use aegis_migrate::contract::envelope::Envelope;
use aegis_migrate::contract::verbs;
use aegis_migrate::run::Outcome;
use aegis_testkit::wait_until;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;

use super::shop::{Shop, id, person, signed};

const DROP: &str = "ALTER TABLE users DROP COLUMN name;\n";
const BOUND: Duration = Duration::from_secs(30);
const WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'LOCK TABLE%'";
const USED: &str = "SELECT count(*) FROM aegis_migrate.approval_used";

/// Refused with 18 and these words, with the old side as it was.
async fn refused(shop: &Shop, envelopes: &[(String, Envelope)], why: &str) {
    let error = shop.run(envelopes).await.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{why}: {error}");
    assert!(error.to_string().contains(why), "{why}: {error}");
    assert_eq!(shop.old_side().await, (true, true), "{why}");
}

async fn reopened_and_closed(shop: &Shop) {
    let mut held = shop.held().await;
    verbs::reopen(&mut held, &id(), "r1 must come back")
        .await
        .unwrap();
    verbs::close(&mut held, &shop.set, &id(), &shop.keyring())
        .await
        .unwrap();
    held.release().await;
    shop.observed("0").await;
    shop.attested("1 hour").await;
}

/// Killed while it waits for the locks of the drop: tighten, of another table, is done.
async fn killed_before_the_drop(shop: &Shop, envelopes: &[(String, Envelope)]) {
    let mut other = shop.db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader
        .batch_execute("LOCK TABLE app.users IN ACCESS SHARE MODE")
        .await
        .unwrap();
    let kill = async {
        wait_until("the contract waits for its locks", BOUND, async || {
            shop.number(WAITS).await == 1 && shop.steps().await == 1
        })
        .await;
        shop.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'aegis migrate/%'")
            .await;
    };
    let (killed, ()) = tokio::join!(shop.run(envelopes), kill);
    assert!(killed.is_err());
    reader.rollback().await.unwrap();
}

#[tokio::test]
async fn an_approval_is_used_up_by_the_first_step_and_reopening_voids_it() {
    let shop = Shop::shown(DROP).await;
    let first = shop.approved().await;
    killed_before_the_drop(&shop, &first).await;
    assert_eq!((shop.number(USED).await, shop.steps().await), (1, 1));
    reopened_and_closed(&shop).await;
    // Neither the one that was used, nor one that was signed for the first attempt and never used.
    refused(&shop, &first, "it is for attempt 1").await;
    let mut unused = shop.approval().await;
    unused.attempt = 1;
    let both = [&shop.bo, &shop.cy];
    refused(&shop, &signed(&unused, &both), "it is for attempt 1").await;
    // Signed before the door was shut: nobody knew when it would be.
    let mut early = shop.approval().await;
    early.closed_at -= SignedDuration::from_mins(1);
    refused(&shop, &signed(&early, &both), "it is for attempt 2").await;
    // The attempt of now asks for its own, and goes on where the first stood.
    let second = shop.approved().await;
    let ran = shop.run(&second).await.unwrap();
    assert_eq!((ran.outcome, ran.applied), (Outcome::Applied, 4));
    assert_eq!(shop.number(USED).await, 2);
    shop.end().await;
}

#[tokio::test]
async fn a_run_that_was_killed_goes_on_with_its_approval_or_with_a_new_one_of_the_same_attempt() {
    let shop = Shop::shown(DROP).await;
    let first = shop.approved().await;
    killed_before_the_drop(&shop, &first).await;
    // Another database's, or another change's, use of it is not this attempt's.
    shop.sql("UPDATE aegis_migrate.contract_bound SET attempt = attempt, digest = digest || 'x'")
        .await;
    refused(&shop, &first, "it counts once").await;
    let mut longer = shop.approval().await;
    longer.not_after += SignedDuration::from_hours(1);
    let ran = shop
        .run(&signed(&longer, &[&shop.bo, &shop.cy]))
        .await
        .unwrap();
    assert_eq!((ran.outcome, ran.applied), (Outcome::Applied, 4));
    shop.end().await;
}

#[tokio::test]
async fn what_is_forged_edited_or_signed_twice_by_one_does_not_open_the_gate() {
    let shop = Shop::shown(DROP).await;
    let it = shop.approval().await;
    let both = [&shop.bo, &shop.cy];
    // A stranger who says that he is cy.
    let eve = person("cy");
    refused(&shop, &signed(&it, &[&shop.bo, &eve]), "signature").await;
    // One person twice is one.
    refused(&shop, &signed(&it, &[&shop.bo, &shop.bo]), "1 of 2").await;
    // The end of the approval, and its author, edited after the signatures.
    for (was, is) in [
        ("\"author\":\"ana\"", "\"author\":\"bob\""),
        ("\"not_after\":\"2", "\"not_after\":\"3"),
    ] {
        let mut edited = signed(&it, &both);
        for (_, envelope) in &mut edited {
            let text = String::from_utf8(STANDARD.decode(&envelope.payload).unwrap()).unwrap();
            assert!(text.contains(was), "{text}");
            envelope.payload = STANDARD.encode(text.replace(was, is));
        }
        refused(&shop, &edited, "signature").await;
    }
    assert_eq!((shop.number(USED).await, shop.steps().await), (0, 0));
    shop.run(&signed(&it, &both)).await.unwrap();
    shop.end().await;
}

#[tokio::test]
async fn what_happens_between_the_observation_and_the_run_is_seen() {
    let shop = Shop::shown(DROP).await;
    let approved = shop.approved().await;
    // A clock that was set back lets what has ended count again.
    shop.sql("UPDATE aegis_migrate.event SET told = told + interval '1 day' WHERE at = (SELECT min(at) FROM aegis_migrate.event)")
        .await;
    refused(&shop, &approved, "the clock was set back").await;
    shop.sql("UPDATE aegis_migrate.event SET told = told - interval '1 day' WHERE at = (SELECT min(at) FROM aegis_migrate.event)")
        .await;
    // A superuser is not kept out by the door, but is seen.
    shop.sql("UPDATE app.users SET name = 'Augusta King' WHERE id = 1")
        .await;
    refused(&shop, &approved, "the old side was written by").await;
    shop.sql("DELETE FROM aegis_migrate.sighting").await;
    // The switch, moved back past its verb.
    shop.sql(
        "INSERT INTO aegis_migrate.switch (change, rev, reads, writes, cache_ttl_ms, release, made_by, reason)
         SELECT change, 2, 'old', 'new', 0, 'r1', 'eve', 'past the verb' FROM aegis_migrate.switch WHERE rev = 1",
    )
    .await;
    refused(&shop, &approved, "the switch was moved back").await;
    assert_eq!((shop.number(USED).await, shop.steps().await), (0, 0));
    shop.sql("DELETE FROM aegis_migrate.switch WHERE rev = 2")
        .await;
    let ran = shop.run(&approved).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Applied);
    shop.end().await;
}

#[tokio::test]
async fn an_assertion_that_cannot_be_shown_within_its_second_is_not_shown() {
    let shop = Shop::shown(DROP).await;
    let mut other = shop.db.connect().await;
    let holder = other.transaction().await.unwrap();
    holder
        .query("SELECT FROM aegis_migrate.contract FOR UPDATE", &[])
        .await
        .unwrap();
    let approved = shop.approved().await;
    refused(&shop, &approved, "could not be shown within 1 s").await;
    assert_eq!((shop.number(USED).await, shop.steps().await), (0, 0));
    holder.rollback().await.unwrap();
    let ran = shop.run(&approved).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Applied);
    shop.end().await;
}

#[tokio::test]
async fn what_changes_while_a_concurrent_step_runs_is_seen_after_it() {
    let shop = Shop::shown(&format!("DROP INDEX CONCURRENTLY users_name;\n{DROP}")).await;
    let approved = shop.approved().await;
    // An old transaction on the table keeps the concurrent step waiting.
    let mut other = shop.db.connect().await;
    let reader = other.transaction().await.unwrap();
    reader
        .batch_execute("LOCK TABLE app.users IN ACCESS SHARE MODE")
        .await
        .unwrap();
    let drops = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'DROP INDEX CONCURRENTLY%'";
    let meddle = async {
        wait_until("the concurrent step waits", BOUND, async || {
            shop.number(drops).await == 1
        })
        .await;
        shop.sql(&format!("GRANT SELECT (name) ON app.users TO {}", shop.rw))
            .await;
        reader.rollback().await.unwrap();
    };
    let (error, ()) = tokio::join!(shop.run(&approved), meddle);
    let error = error.unwrap_err();
    assert_eq!(error.exit_code(), 18, "{error}");
    assert!(
        error.to_string().contains("the door is open again"),
        "{error}"
    );
    assert_eq!(shop.old_side().await, (true, true));
    shop.sql(&format!(
        "REVOKE SELECT (name) ON app.users FROM {}",
        shop.rw
    ))
    .await;
    // The step is done, and the run goes on with its approval.
    let ran = shop.run(&approved).await.unwrap();
    assert_eq!(ran.outcome, Outcome::Applied);
    shop.end().await;
}
