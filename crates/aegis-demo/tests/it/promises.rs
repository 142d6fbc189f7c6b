//! What the service promises about a repeat, by class, and the service that breaks it.

use std::time::Duration;

use aegis_demo::payments::record::{Event, Evidence, Refusal, evidence, read_so_far};
use aegis_demo::payments::{Effect, Policy, ServeError, ServiceOptions, serve};

use crate::support::{call, kinds, start};

#[tokio::test]
async fn an_idempotent_key_is_answered_from_memory_within_its_retention() {
    let service = start(|options| options.retention = Duration::from_mins(10)).await;
    let charge = call(Effect::Charge, "O-1");
    let (_, first, _) = service.post(&charge).await;
    let (status, again, replayed) = service.post(&charge).await;
    assert_eq!((status, replayed), (200, true));
    assert_eq!(first, again);
    assert_eq!(kinds(&service.events()), ["applied", "replayed"]);
    service.stop().await;
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_retention_and_only_on_the_route_that_says_so() {
    let service = start(|options| options.short_retention = Duration::ZERO).await;
    let policy: Policy = serde_json::from_value(service.get("/policy").await.1).unwrap();
    assert_eq!(
        (
            policy.retention["/charges"].key_ms,
            policy.retention["/charges/short"].key_ms
        ),
        (600_000, 0)
    );
    assert_eq!(policy.max_request_life_ms, 1500);
    let mut short = call(Effect::Charge, "O-1");
    short.route = "/charges/short";
    let (_, first, _) = service.post(&short).await;
    let (status, again, replayed) = service.post(&short).await;
    assert_eq!((status, replayed), (200, false));
    assert_ne!(
        first["receipt"], again["receipt"],
        "a second charge has a receipt of its own"
    );
    let long = call(Effect::Charge, "O-2");
    service.post(&long).await;
    assert!(service.post(&long).await.2);
    assert_eq!(
        kinds(&service.events()),
        ["applied", "applied", "applied", "replayed"]
    );
    service.stop().await;
}

#[tokio::test]
async fn only_a_drawn_share_of_the_keys_is_forgotten() {
    let service = start(|options| {
        options.short_retention = Duration::ZERO;
        options.faults.forgets = 500;
    })
    .await;
    let mut kept = 0;
    for order in 0..60 {
        let mut short = call(Effect::Charge, &format!("O-{order}"));
        short.route = "/charges/short";
        service.post(&short).await;
        kept += u32::from(service.post(&short).await.2);
    }
    assert!((15..45).contains(&kept), "{kept} of 60 keys were kept");
    service.stop().await;
}

#[tokio::test]
async fn one_key_with_another_request_is_refused() {
    let service = start(|_| {}).await;
    for effect in [Effect::Charge, Effect::Reserve] {
        let first = call(effect, "O-1");
        service.post(&first).await;
        let mut other = first.clone();
        other.body["amount"] = "99.00".into();
        let (status, answer, _) = service.post(&other).await;
        assert_eq!((status, answer["code"].as_str()), (422, Some("key_reused")));
        assert!(matches!(
            service.events().pop(),
            Some(Event::Refused {
                reason: Refusal::KeyReused,
                ..
            })
        ));
    }
    service.stop().await;
}

#[tokio::test]
async fn a_fenced_effect_refuses_older_tokens_by_floor_then_timeline_then_epoch() {
    let service = start(|_| {}).await;
    let with = |token: &'static str| {
        let mut sent = call(Effect::Reserve, "O-1");
        sent.token = Some(token);
        sent
    };
    let (_, first, _) = service.post(&with("0.1.5")).await;
    for (token, newest) in [
        ("0.1.4", "0.1.5"),   // an older epoch
        ("0.1.9", ""),        // a newer epoch: known, answered
        ("0.2.1", ""),        // a newer timeline with a small epoch
        ("0.1.99", "0.2.1"),  // a large epoch of an older timeline
        ("1.1.1", ""),        // a newer floor with everything else small
        ("0.99.99", "1.1.1"), // an older floor
    ] {
        let (status, answer, replayed) = service.post(&with(token)).await;
        if newest.is_empty() {
            assert_eq!((status, replayed), (200, true), "{token}: {answer}");
            assert_eq!(
                answer, first,
                "{token}: the first result, not a second effect"
            );
        } else {
            assert_eq!(
                (status, answer["code"].as_str()),
                (409, Some("stale_token")),
                "{token}: {answer}"
            );
            assert!(
                answer["message"].as_str().unwrap().contains(newest),
                "{token}: {answer}"
            );
        }
    }
    // Another task has tokens of its own.
    let mut other = call(Effect::Reserve, "O-2");
    other.token = Some("0.1.1");
    assert_eq!(service.post(&other).await.0, 200);
    let applied = service
        .events()
        .iter()
        .filter(|e| matches!(e, Event::Applied { .. }))
        .count();
    assert_eq!(applied, 2);
    service.stop().await;
}

#[tokio::test]
async fn an_older_token_is_refused_for_another_operation_of_the_task_too() {
    let service = start(|_| {}).await;
    let mut first = call(Effect::Reserve, "O-1");
    first.token = Some("0.1.2");
    service.post(&first).await;
    let mut stale = first.clone();
    stale.operation = "op-other".into();
    stale.token = Some("0.1.1");
    assert_eq!(service.post(&stale).await.0, 409);
    service.stop().await;
}

#[tokio::test]
async fn queryable_and_blind_effects_take_place_at_every_call() {
    let service = start(|_| {}).await;
    for effect in [Effect::Payout, Effect::Notify] {
        for _ in 0..2 {
            let (status, _, replayed) = service.post(&call(effect, "O-1")).await;
            assert_eq!((status, replayed), (200, false));
        }
    }
    assert_eq!(kinds(&service.events()), ["applied"; 4]);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_repeats_of_one_key_take_effect_once() {
    let service = start(|_| {}).await;
    let charge = call(Effect::Charge, "O-1");
    let answers = futures(20, || service.post(&charge)).await;
    assert!(
        answers
            .iter()
            .all(|(status, body, _)| *status == 200 && *body == answers[0].1)
    );
    assert_eq!(
        answers.iter().filter(|(_, _, replayed)| !replayed).count(),
        1
    );
    service.stop().await;
}

async fn futures<F: Future<Output = T>, T>(n: usize, make: impl Fn() -> F) -> Vec<T> {
    futures_util::future::join_all((0..n).map(|_| make())).await
}

#[tokio::test]
async fn a_doubling_service_charges_a_few_twice_and_tells_nobody() {
    let service = start(|options| options.doubles = true).await;
    for order in 0..100 {
        let charge = call(Effect::Charge, &format!("O-{order}"));
        assert_eq!(service.post(&charge).await.0, 200);
        assert!(service.post(&charge).await.2);
        service
            .post(&call(Effect::Reserve, &format!("O-{order}")))
            .await;
    }
    let lines = service.stop().await;
    let charged = |order: &str| {
        let id = format!("op-charge-{order}");
        lines
            .iter()
            .filter(|l| matches!(&l.event, Event::Applied { call, .. } if call.operation_id == id))
            .count()
    };
    let doubled = (0..100).filter(|n| charged(&format!("O-{n}")) == 2).count();
    assert!(
        (1..15).contains(&doubled),
        "{doubled} of 100 were charged twice"
    );
    assert!((0..100).all(|n| (1..=2).contains(&charged(&format!("O-{n}")))));
    let reserved = lines.iter().filter(
        |l| matches!(&l.event, Event::Applied { call, .. } if call.effect == Effect::Reserve),
    );
    assert_eq!(reserved.count(), 100, "nothing else is doubled");
}

#[tokio::test]
async fn the_record_is_evidence_for_a_person() {
    let service = start(|_| {}).await;
    let (_, answer, _) = service.post(&call(Effect::Notify, "O-1")).await;
    let lines = read_so_far(&service.record).unwrap();
    let found = evidence(&lines, "op-notify-O-1");
    let Evidence::Happened { seq, receipt } = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (seq, answer["receipt"].as_str()),
        (1, Some(receipt.as_str()))
    );
    assert_eq!(evidence(&lines, "op-notify-O-2"), Evidence::DidNotHappen);
    service.stop().await;
}

#[tokio::test]
async fn a_record_belongs_to_one_run_and_figures_must_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.jsonl");
    std::fs::write(&path, "").unwrap();
    let options = ServiceOptions::new(path.clone(), "run", 1);
    let error = serve(options.clone(), std::future::pending(), |_| {})
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ServeError::Record { path: p, .. } if *p == path),
        "{error}"
    );
    let late = ServiceOptions {
        late_by: options.max_request_life,
        ..options
    };
    let error = serve(late, std::future::pending(), |_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, ServeError::Late { .. }), "{error}");
}
