//! What the service does wrong on purpose: what its caller sees, and what really took place.

use std::time::Duration;

use aegis_demo::payments::record::{Event, RecordLine};
use aegis_demo::payments::{Behaviour, Effect, Faults, ServiceOptions, Shares};

use crate::support::{call, kinds, start};

fn always(behaviour: Behaviour) -> impl FnOnce(&mut ServiceOptions) {
    move |options| {
        let shares = Shares::always(behaviour);
        options.faults = Faults {
            reserve: shares,
            charge: shares,
            payout: shares,
            notify: shares,
            ..Faults::none()
        };
    }
}

#[tokio::test]
async fn a_good_call_stands_in_the_record_before_its_answer() {
    let service = start(always(Behaviour::Good)).await;
    for effect in Effect::ALL {
        let (status, answer, replayed) = service.post(&call(effect, "O-1")).await;
        assert_eq!((status, replayed), (200, false), "{answer}");
        let Some(Event::Applied {
            call,
            receipt,
            amount,
            ..
        }) = service.events().pop()
        else {
            panic!("no effect")
        };
        assert_eq!((call.effect, call.class), (effect, effect.class()));
        assert_eq!(answer["receipt"], receipt.as_str());
        assert_eq!(
            (call.reference.as_str(), call.task.as_str()),
            ("O-1", "task-O-1")
        );
        assert_eq!(
            (
                call.fencing_token.unwrap().to_string().as_str(),
                amount.as_deref()
            ),
            ("0.1.1", Some("12.50"))
        );
    }
    service.stop().await;
}

#[tokio::test]
async fn a_lost_answer_closes_the_connection_after_the_effect() {
    let service = start(always(Behaviour::LostAnswer)).await;
    for effect in Effect::ALL {
        let error = service.try_post(&call(effect, "O-1")).await.unwrap_err();
        assert!(
            error.is_request() && !error.is_timeout() && !error.is_connect(),
            "{error:?}"
        );
    }
    assert_eq!(kinds(&service.events()), ["applied"; 4]);
    service.stop().await;
}

#[tokio::test]
async fn a_lost_request_closes_the_connection_without_the_effect() {
    let service = start(always(Behaviour::LostRequest)).await;
    for effect in Effect::ALL {
        assert!(
            service
                .try_post(&call(effect, "O-1"))
                .await
                .unwrap_err()
                .is_request()
        );
    }
    assert_eq!(kinds(&service.events()), ["dropped"; 4]);
    service.stop().await;
}

#[tokio::test]
async fn an_error_comes_after_the_effect_or_before_it() {
    for (behaviour, status, kind) in [
        (Behaviour::ErrorAfter, 500, "applied"),
        (Behaviour::ErrorBefore, 503, "dropped"),
    ] {
        let service = start(always(behaviour)).await;
        for effect in Effect::ALL {
            assert_eq!(service.post(&call(effect, "O-1")).await.0, status);
        }
        assert_eq!(kinds(&service.events()), [kind; 4]);
        service.stop().await;
    }
}

#[tokio::test]
async fn a_late_effect_takes_place_although_its_caller_has_gone() {
    let service = start(always(Behaviour::Late)).await;
    let impatient = reqwest::Client::builder()
        .timeout(Duration::from_millis(50))
        .build()
        .unwrap();
    let error = impatient
        .post(format!("{}/notifications", service.url()))
        .header("aegis-operation", "op-1")
        .header("aegis-task", "task-1")
        .body(r#"{"reference":"O-1"}"#)
        .send()
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(kinds(&service.events()).is_empty(), "it must be late");
    // Stopping waits for what is on its way.
    let lines = service.stop().await;
    assert!(
        matches!(
            lines[1].event,
            Event::Applied {
                behaviour: Behaviour::Late,
                ..
            }
        ),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn a_probe_says_what_is_so_at_that_moment() {
    let service = start(always(Behaviour::LostAnswer)).await;
    let payout = call(Effect::Payout, "O-1");
    let probe = format!("/payouts/{}", payout.operation);
    assert_eq!(service.get(&probe).await.1["answer"], "did_not_happen");
    service.try_post(&payout).await.unwrap_err();
    let (status, answer) = service.get(&probe).await;
    assert_eq!((status, answer["answer"].as_str()), (200, Some("happened")));
    assert!(
        answer["result"]["receipt"]
            .as_str()
            .unwrap()
            .starts_with("PAY-")
    );
    assert_eq!(kinds(&service.events()), ["probed", "applied", "probed"]);
    service.stop().await;

    let mute = start(|options| options.faults.cannot_tell = 1000).await;
    mute.post(&payout).await;
    let (status, answer) = mute.get(&probe).await;
    assert_eq!(
        (status, answer["answer"].as_str(), answer.get("result")),
        (200, Some("cannot_tell"), None)
    );
    mute.stop().await;
}

#[tokio::test]
async fn bad_requests_are_refused_with_what_to_do_and_change_nothing() {
    let service = start(always(Behaviour::Good)).await;
    let good = call(Effect::Charge, "O-1");
    let mut cases = Vec::new();
    for (body, says) in [
        (
            serde_json::json!({ "amount": "1", "currency": "EUR" }),
            "`reference` is missing",
        ),
        (
            serde_json::json!({ "reference": 5, "amount": "1", "currency": "EUR" }),
            "`reference` is 5",
        ),
        (
            serde_json::json!({ "reference": "O-1" }),
            "`amount` and `currency` are needed",
        ),
    ] {
        let mut bad = good.clone();
        bad.body = body;
        cases.push((bad, says));
    }
    let mut bad = call(Effect::Reserve, "O-1");
    bad.token = None;
    cases.push((bad.clone(), "`fencing-token` is missing"));
    bad.token = Some("1.2");
    cases.push((bad, "`1.2` is not a fencing token"));
    for (bad, says) in cases {
        let (status, answer, _) = service.post(&bad).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (400, Some("invalid_request"))
        );
        assert!(
            answer["message"].as_str().unwrap().contains(says),
            "{answer}"
        );
    }
    assert!(service.events().is_empty());
    service.stop().await;
}

/// Sends the same calls one after the other to a new service with the demo's faults.
async fn story_of(seed: u64) -> Vec<RecordLine> {
    let service = start(|options| {
        options.seed = seed;
        options.faults = Faults::demo();
        options.late_by = Duration::from_millis(1);
    })
    .await;
    for order in 0..40 {
        for effect in Effect::ALL {
            // Whatever comes back: the record is what counts.
            drop(service.try_post(&call(effect, &format!("O-{order}"))).await);
        }
        service.get(&format!("/payouts/op-payout-O-{order}")).await;
    }
    let mut lines = service.stop().await;
    for line in &mut lines {
        line.at_ms = 0;
    }
    lines
}

#[tokio::test]
async fn one_seed_gives_one_record_apart_from_the_times() {
    let (first, again, other) = tokio::join!(story_of(1), story_of(1), story_of(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let wrong = first.iter().filter(|line| {
        matches!(line.event, Event::Applied { behaviour, .. } if behaviour != Behaviour::Good)
            || matches!(line.event, Event::Dropped { .. })
    });
    assert!(wrong.count() >= 5, "the demo's faults must be seen");
}
