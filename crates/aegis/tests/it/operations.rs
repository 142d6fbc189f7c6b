//! Operations by prefix and by filter.

use aegis_testkit::process_slot;
use serde_json::json;

use crate::support::Place;

#[tokio::test]
async fn process_an_operation_is_named_by_the_beginning_of_its_id() {
    let _slot = process_slot();
    let place = Place::new().await;
    let (task, operation) = place.unknown_operation().await;
    for given in [
        &task[..],
        &format!("{task}/not"),
        &operation,
        &format!("{}/", &task[..18]),
    ] {
        let shown = place.json(&["operation", "show", given]).await;
        assert_eq!(shown["id"], json!(operation), "{given}");
    }
    place.unknown_operation().await;
    // Both were made in the same hour.
    let several = place.run(&["operation", "show", &task[..4]]).await;
    assert_eq!(several.code, 4, "{several:?}");
    assert!(several.stderr.contains(&operation), "{several:?}");
    assert_eq!(
        place
            .run(&["operation", "show", &format!("{task}/other")])
            .await
            .code,
        3
    );
}

#[tokio::test]
async fn process_operations_are_decided_by_filter_after_a_dry_run() {
    let _slot = process_slot();
    let place = Place::new().await;
    let mut ids = vec![
        place.unknown_operation().await.1,
        place.unknown_operation().await.1,
    ];
    ids.sort();
    let filter = ["--name", "notify", "--class", "blind"];
    let resolve = |more: &[&'static str]| {
        let mut words = vec![
            "operation",
            "resolve",
            "--as",
            "happened",
            "--evidence",
            "the provider's log",
            "--actor",
            "ada",
        ];
        words.extend(filter);
        words.extend(more);
        words
    };
    let names = |text: &str| {
        let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
        names.sort();
        names
    };
    let would = place.run(&resolve(&["--dry-run", "-o", "name"])).await;
    assert_eq!(names(&would.stdout), ids, "{would:?}");
    let asked = place.run(&resolve(&[])).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(
        asked.stderr.contains("2 operations") && asked.stderr.contains("--yes"),
        "{asked:?}"
    );
    let none = place
        .json(&["operation", "list", "--tenant", "other"])
        .await;
    assert_eq!(none, json!([]));
    let young = place
        .json(&["operation", "list", "--older-than", "1h"])
        .await;
    assert_eq!(young, json!([]));
    assert_eq!(
        place
            .json(&["operation", "list"])
            .await
            .as_array()
            .unwrap()
            .len(),
        2,
        "nothing was changed so far"
    );
    let done = place.json(&resolve(&["--yes"])).await;
    assert_eq!(
        (&done[0]["resolution"], &done[1]["resolved_by"]),
        (&json!("happened"), &json!("ada"))
    );
    assert_eq!(place.json(&["operation", "list"]).await, json!([]));
}

#[tokio::test]
async fn process_of_several_each_is_answered_by_itself() {
    let _slot = process_slot();
    let place = Place::new().await;
    let (_, first) = place.unknown_operation().await;
    let (_, second) = place.unknown_operation().await;
    place
        .json(&["operation", "take", &first, "--actor", "bob"])
        .await;
    let ran = place
        .run(&[
            "operation",
            "take",
            &first,
            &second,
            "--actor",
            "ada",
            "-o",
            "json",
        ])
        .await;
    assert_eq!(ran.code, 8, "some of it was done: {ran:?}");
    let answers: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        answers[0]["refused"]
            .as_str()
            .unwrap()
            .contains("taken by bob"),
        "{answers}"
    );
    assert_eq!(answers[1]["taken_by"], "ada");
    let both = place
        .run(&["operation", "take", &first, "--name", "notify"])
        .await;
    assert_eq!(both.code, 2, "{both:?}");
}
