//! Every verb of people against every place where a task can stand: what it changes, what it leaves alone, and why.

use aegis_model::{Cause, Class, State};
use aegis_store::change::{Answer, By, Change, Changed};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::support::{Bed, Worker, failure, release};

/// Where a task can stand, with two kinds of scheduled besides the one that was submitted for later.
const STANDINGS: [&str; 12] = [
    "scheduled",
    "backoff",
    "snoozed",
    "ready",
    "running",
    "waiting",
    "reconciling",
    "failed",
    "quarantined",
    "discarded",
    "succeeded",
    "cancelled",
];

/// The columns are [`STANDINGS`].
const TABLE: [(&str, [&str; 12]); 8] = [
    (
        "cancel",
        [
            "cancelled",
            "cancelled",
            "cancelled",
            "cancelled",
            "requested",
            "cancelled",
            "pending",
            "parked",
            "parked",
            "ended",
            "ended",
            "ended",
        ],
    ),
    (
        "retry",
        [
            "not_failed",
            "ready",
            "not_failed",
            "ready_already",
            "not_waiting",
            "not_waiting",
            "not_waiting",
            "parked",
            "parked",
            "ended",
            "ended",
            "ended",
        ],
    ),
    (
        "run_now",
        [
            "ready",
            "ready",
            "ready",
            "ready_already",
            "not_waiting",
            "not_waiting",
            "not_waiting",
            "parked",
            "parked",
            "ended",
            "ended",
            "ended",
        ],
    ),
    (
        "reschedule",
        [
            "scheduled",
            "scheduled",
            "scheduled",
            "scheduled",
            "not_waiting",
            "not_waiting",
            "not_waiting",
            "parked",
            "parked",
            "ended",
            "ended",
            "ended",
        ],
    ),
    (
        "reprioritise",
        [
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "reprioritised",
            "ended",
            "ended",
            "ended",
        ],
    ),
    (
        "redrive",
        [
            "live", "live", "live", "live", "live", "live", "live", "redriven", "redriven",
            "ended", "ended", "ended",
        ],
    ),
    (
        "discard",
        [
            "live",
            "live",
            "live",
            "live",
            "live",
            "live",
            "live",
            "discarded",
            "discarded",
            "ended",
            "ended",
            "ended",
        ],
    ),
    (
        "erase",
        [
            "live", "live", "live", "live", "live", "live", "live", "parked", "parked", "erased",
            "erased", "erased",
        ],
    ),
];

pub(crate) fn by(reason: &str) -> By {
    By {
        actor: "ann".to_owned(),
        reason: reason.to_owned(),
    }
}

/// What a write gave that must not be refused.
pub(crate) fn applied<T>(outcome: aegis_model::Outcome<T>) -> T {
    outcome.applied().unwrap()
}

fn verb(word: &str) -> Change {
    match word {
        "cancel" => Change::Cancel,
        "retry" => Change::Retry,
        "run_now" => Change::RunNow,
        "reschedule" => Change::Reschedule {
            run_at: Timestamp::now() + SignedDuration::from_hours(2),
        },
        "reprioritise" => Change::Reprioritise { priority: 1 },
        "redrive" => Change::Redrive,
        "discard" => Change::Discard,
        "erase" => Change::Erase,
        other => panic!("no verb {other}"),
    }
}

/// A task that stands there.
async fn standing(bed: &Bed, worker: &Worker, name: &str) -> Uuid {
    let kind = worker.kinds[0].1.clone();
    if name == "scheduled" || name == "ready" {
        // Of a kind that nobody claims.
        return bed
            .submit_with("waits", |task| {
                task.run_at =
                    (name == "scheduled").then(|| Timestamp::now() + SignedDuration::from_hours(1));
            })
            .await;
    }
    let claim = bed
        .claim_with(worker, |task| task.policy.backoff_initial_ms = 600_000)
        .await;
    let (held, id) = (claim.held, claim.held.task);
    match name {
        "running" => {}
        "backoff" => {
            applied(bed.fail(held).await);
        }
        "snoozed" => {
            let mut snooze = release(held, Cause::Snooze);
            snooze.run_after_ms = Some(600_000);
            applied(bed.store.release(snooze).await.unwrap());
        }
        "waiting" => {
            applied(bed.release(held, Cause::Drain).await);
            bed.sql(&format!(
                "update aegis.task set state = 3 where id = '{id}'"
            ))
            .await;
        }
        "reconciling" => {
            let held = bed.dispatch(&claim, Class::Blind).await;
            applied(bed.release(held, Cause::Drain).await);
        }
        "succeeded" => {
            applied(bed.complete(held).await);
        }
        "cancelled" => {
            applied(bed.release(held, Cause::Drain).await);
            bed.store.cancel(id, "ann", "test").await.unwrap();
        }
        _ => {
            let mut fatal = failure(held);
            fatal.retryable = false;
            bed.store.fail(vec![fatal]).await.unwrap();
            if name == "quarantined" {
                bed.sql(&format!(
                    "update aegis.parked set state = 8 where id = '{id}'"
                ))
                .await;
            } else if name == "discarded" {
                assert!(bed.store.discard(id, "ann", "test").await.unwrap());
            }
        }
    }
    assert!(!kind.is_empty());
    id
}

fn words(all: &[Changed], ids: &[Uuid]) -> Vec<String> {
    ids.iter()
        .map(|id| {
            let one = all.iter().find(|one| one.task == *id);
            one.map_or("no answer", |one| one.answer.word()).to_owned()
        })
        .collect()
}

/// What an edit must not move: epoch, rev, counters, owner.
async fn fences(bed: &Bed, ids: &[Uuid]) -> Vec<String> {
    let sql = "select coalesce(string_agg(format('%s %s %s %s %s %s', id, epoch, rev, failures, crashes, owner), ',' order by id), '')
        from aegis.task_any where id = $1";
    let mut all = Vec::new();
    for id in ids {
        all.push(bed.value::<String>(sql, &[id]).await);
    }
    all
}

#[tokio::test]
async fn every_verb_against_every_standing() {
    let bed = Bed::new().await;
    for (word, expected) in TABLE {
        let kind = format!("k-{word}");
        let worker = bed.worker(&[&kind]).await;
        let mut ids = Vec::new();
        for name in STANDINGS {
            ids.push(standing(&bed, &worker, name).await);
        }
        let change = verb(word);

        let before = bed.rows().await;
        let tried = bed
            .store
            .change(&ids, change, &by("why"), true)
            .await
            .unwrap();
        assert_eq!(words(&tried, &ids), expected, "{word}, tried");
        assert_eq!(
            bed.rows().await,
            before,
            "{word}: to try it changes nothing"
        );

        let fences_before = fences(&bed, &ids).await;
        let mut events_before = Vec::new();
        for id in &ids {
            events_before.push(bed.causes(*id).await.len());
        }
        let done = bed
            .store
            .change(&ids, change, &by("why"), false)
            .await
            .unwrap();
        assert_eq!(words(&done, &ids), expected, "{word}");
        let stood: Vec<(Option<State>, bool)> = ids
            .iter()
            .map(|id| {
                let one = done.iter().find(|one| one.task == *id).unwrap();
                (one.state, one.parked)
            })
            .collect();
        let was = |state, parked| (Some(state), parked);
        assert_eq!(stood[3], was(State::Ready, false), "{word}");
        assert_eq!(stood[7], was(State::Failed, true), "{word}");
        assert_eq!(stood[9], was(State::Failed, false), "{word}");
        for (n, id) in ids.iter().enumerate() {
            let one = done.iter().find(|one| one.task == *id).unwrap();
            let events = bed.store.events(*id).await.unwrap();
            let changed = one.answer.skip().is_none();
            assert_eq!(
                events.len() - events_before[n],
                usize::from(changed),
                "{word} on {}: one event for what was changed, none for the rest",
                STANDINGS[n]
            );
            if changed {
                let last = events.last().unwrap();
                assert_eq!(last.actor.as_deref(), Some("ann"));
                assert_eq!(last.detail.as_ref().unwrap()["reason"], "why", "{word}");
            }
        }
        if ["retry", "run_now", "reschedule", "reprioritise", "erase"].contains(&word) {
            assert_eq!(
                fences(&bed, &ids).await,
                fences_before,
                "{word} moves neither epoch nor rev nor a counter"
            );
        }
        // Everything may be repeated, and what stands there already is left alone.
        let again = bed
            .store
            .change(&ids, change, &by("again"), false)
            .await
            .unwrap();
        for one in &again {
            let allowed = ["requested", "pending"].contains(&one.answer.word());
            assert!(
                allowed || one.answer.skip().is_some(),
                "{word} again: {one:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_edit_says_what_it_moved_and_keeps_the_place_in_line() {
    let bed = Bed::new().await;
    let id = bed.submit("k").await;
    let ord: i64 = bed.live(id, "ord").await;
    bed.store
        .change(
            &[id],
            Change::Reprioritise { priority: 0 },
            &by("first"),
            false,
        )
        .await
        .unwrap();
    // Five levels of a minute before those that became ready at the same moment.
    assert_eq!(bed.live::<i64>(id, "ord").await, ord - 5 * 60_000_000);
    assert_eq!(bed.live::<i16>(id, "priority").await, 0);
    let events = bed.store.events(id).await.unwrap();
    let detail = events[0].detail.as_ref().unwrap();
    assert_eq!((&detail["from"], &detail["to"]), (&5.into(), &0.into()));

    let later = bed.store.moment(3_600_000).await.unwrap();
    let change = Change::Reschedule { run_at: later };
    bed.store
        .change(&[id], change, &by("later"), false)
        .await
        .unwrap();
    assert_eq!(bed.state(id).await, State::Scheduled);
    assert_eq!(bed.live::<Timestamp>(id, "run_at").await, later);
    let past = Change::Reschedule {
        run_at: bed.store.moment(-1000).await.unwrap(),
    };
    let now = bed
        .store
        .change(&[id], past, &by("now"), false)
        .await
        .unwrap();
    assert_eq!(
        now[0].answer,
        Answer::Ready,
        "a time that has come means now"
    );
}

#[tokio::test]
async fn a_time_behind_the_deadline_is_refused_and_schedule_to_start_begins_anew() {
    let bed = Bed::new().await;
    let deadline = Timestamp::now() + SignedDuration::from_hours(1);
    let with_deadline = bed
        .submit_with("k", |task| task.deadline_at = Some(deadline))
        .await;
    let change = Change::Reschedule {
        run_at: deadline + SignedDuration::from_secs(1),
    };
    let done = bed
        .store
        .change(&[with_deadline], change, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(done[0].answer.word(), "past_deadline");
    assert_eq!(bed.state(with_deadline).await, State::Ready);

    let to_start = bed
        .submit_with("k", |task| task.policy.schedule_to_start_ms = Some(60_000))
        .await;
    let run_at = bed.store.moment(7_200_000).await.unwrap();
    bed.store
        .change(&[to_start], Change::Reschedule { run_at }, &by("x"), false)
        .await
        .unwrap();
    let next: Timestamp = bed.live(to_start, "next_deadline").await;
    assert_eq!(next, run_at + SignedDuration::from_mins(1));
}

#[tokio::test]
async fn a_running_task_goes_on_under_an_edit_and_its_result_is_accepted() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let held = bed.claim(&worker).await.held;
    let change = Change::Reprioritise { priority: 2 };
    let done = bed
        .store
        .change(&[held.task], change, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(done[0].answer, Answer::Reprioritised);
    assert_eq!(
        bed.complete(held).await,
        aegis_model::Outcome::Applied(State::Succeeded)
    );
}

#[tokio::test]
async fn a_task_made_ready_by_a_person_is_claimed_at_once_and_nothing_is_charged() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let id = standing(&bed, &worker, "backoff").await;
    assert!(bed.acquire(&worker, 10).await.is_empty());
    bed.store
        .change(&[id], Change::Retry, &by("mended"), false)
        .await
        .unwrap();
    let claims = bed.acquire(&worker, 10).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].held.task, id);
    assert_eq!(
        bed.live::<i32>(id, "failures").await,
        1,
        "the failure stays, alone"
    );
}

#[tokio::test]
async fn who_and_why_are_needed_and_bad_arguments_change_nothing() {
    let bed = Bed::new().await;
    let id = bed.submit("k").await;
    let before = bed.rows().await;
    let nobody = By {
        actor: " ".to_owned(),
        reason: "x".to_owned(),
    };
    let why = |text: &str| by(text);
    for (change, by) in [
        (Change::Cancel, nobody),
        (Change::Cancel, why("")),
        (Change::Cancel, why("a\0b")),
        (Change::Cancel, why(&"x".repeat(2001))),
        (Change::Reprioritise { priority: 10 }, why("x")),
    ] {
        let error = bed
            .store
            .change(&[id], change, &by, false)
            .await
            .unwrap_err();
        assert_eq!(error.code().unwrap().as_str(), "AEG-0017", "{error}");
    }
    assert_eq!(bed.rows().await, before);
    let unknown = bed
        .store
        .change(&[Uuid::now_v7()], Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    assert_eq!(
        (unknown[0].answer.word(), unknown[0].state),
        ("missing", None)
    );
}
