//! `aegis operation`: a person takes and decides.

use aegis_testkit::process_slot;
use serde_json::json;

use crate::support::Place;

#[tokio::test]
async fn process_an_unknown_operation_is_listed_shown_taken_and_resolved() {
    let _slot = process_slot();
    let place = Place::new().await;
    let (task, id) = place.unknown_operation().await;
    let listed = place.json(&["operation", "list"]).await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["id"], &listed[0]["state"]),
        (&json!(id), &json!("unknown"))
    );
    let of_task = place
        .json(&[
            "operation",
            "list",
            "--task",
            &task,
            "--state",
            "unknown,resolved",
        ])
        .await;
    assert_eq!(of_task, listed);
    let shown = place.json(&["operation", "show", &id]).await;
    assert_eq!(
        (&shown["class"], &shown["request"]),
        (&json!("blind"), &json!({ "to": "ada" }))
    );

    let taken = place
        .json(&["operation", "take", &id, "--actor", "ada"])
        .await;
    assert_eq!(taken["taken_by"], "ada");
    let other = place
        .run(&["operation", "take", &id, "--actor", "bob"])
        .await;
    assert_eq!(other.code, 4, "{other:?}");
    assert!(
        other.stderr.contains("taken by ada") && other.stderr.contains("AEG-0014"),
        "{other:?}"
    );
    let resolve = |actor, evidence| {
        vec![
            "operation",
            "resolve",
            &id,
            "--as",
            "happened",
            "--evidence",
            evidence,
            "--actor",
            actor,
            "--result",
            r#"{"sent":true}"#,
        ]
    };
    assert_eq!(place.run(&resolve("bob", "I saw it")).await.code, 4);
    assert_eq!(place.run(&resolve("ada", " ")).await.code, 4, "no evidence");
    let resolved = place.json(&resolve("ada", "line 12")).await;
    assert_eq!(resolved["resolution"], "happened");
    let again = place.run(&resolve("ada", "line 12")).await;
    assert_eq!(again.code, 4, "{again:?}");

    let shown = place.json(&["operation", "show", &id]).await;
    assert_eq!(
        (&shown["state"], &shown["evidence"], &shown["result"]),
        (
            &json!("resolved"),
            &json!("line 12"),
            &json!({ "sent": true })
        )
    );
    assert_eq!(place.json(&["task", "show", &task]).await["state"], "ready");
}

#[tokio::test]
async fn process_what_cannot_be_resolved_says_why() {
    let _slot = process_slot();
    let place = Place::new().await;
    let (_, id) = place.unknown_operation().await;
    let missing = format!("{id}x");
    for words in [
        vec!["operation", "show", missing.as_str()],
        vec!["operation", "take", missing.as_str()],
        vec![
            "operation",
            "resolve",
            missing.as_str(),
            "--as",
            "happened",
            "--evidence",
            "x",
        ],
    ] {
        let ran = place.run(&words).await;
        assert_eq!(ran.code, 3, "{words:?}: {ran:?}");
    }
    let bad = place
        .run(&[
            "operation",
            "resolve",
            &id,
            "--as",
            "happened",
            "--evidence",
            "x",
            "--result",
            "not json",
        ])
        .await;
    assert_eq!(bad.code, 4, "{bad:?}");
    let nonsense = place
        .run(&[
            "operation",
            "resolve",
            &id,
            "--as",
            "perhaps",
            "--evidence",
            "x",
        ])
        .await;
    assert_eq!(nonsense.code, 2, "{nonsense:?}");
    let listed = place.json(&["operation", "list"]).await;
    assert_eq!(
        listed.as_array().unwrap().len(),
        1,
        "nothing was decided: {listed}"
    );
}

#[tokio::test]
async fn process_giving_up_fails_the_task() {
    let _slot = process_slot();
    let place = Place::new().await;
    let (task, id) = place.unknown_operation().await;
    place
        .json(&[
            "operation",
            "resolve",
            &id,
            "--as",
            "give-up",
            "--evidence",
            "nobody knows",
        ])
        .await;
    let shown = place.json(&["task", "show", &task]).await;
    assert_eq!(
        (&shown["state"], &shown["error"]["code"]),
        (&json!("failed"), &json!("operation_given_up"))
    );
    let redriven = place
        .json(&["task", "redrive", &task, "--reason", "found it"])
        .await;
    assert_eq!(redriven["id"], json!(task));
    assert_eq!(place.json(&["task", "show", &task]).await["state"], "ready");
}
