//! One test a code of `docs/guides/command-line.md`. 1 stands in `verify`, 8 in `task_change` and `task_stream`, 10 in `worker`,
//! 20 to 22 in `doctor` and `lane_check`; 11 to 14 are aegis-worker's, which has tests of them.

use aegis_testkit::process_slot;

use crate::support::{Place, command, run};

#[tokio::test]
async fn process_0_done() {
    let _slot = process_slot();
    let ran = run(command(None, &["version", "-o", "json"])).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["aegis"], env!("CARGO_PKG_VERSION"));
    assert_eq!(said["schema"], aegis_store::install::SCHEMA);
}

#[tokio::test]
async fn process_2_the_command_line_makes_no_sense() {
    let _slot = process_slot();
    for words in [
        &["nonsense"][..],
        &["task", "list", "--limit", "0"],
        &["task", "list"],
        &["lane", "pause", "--reason", "x"],
    ] {
        let ran = run(command(None, words)).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{words:?}: {ran:?}"
        );
        assert!(!ran.stderr.is_empty());
    }
}

#[tokio::test]
async fn process_3_no_such_thing() {
    let _slot = process_slot();
    let place = Place::new().await;
    let cases = [
        &["task", "show", "01a2298f-f728-794d-b26f-883eeb2f57a9"][..],
        &["worker", "show", "nobody"],
        &["worker", "drain", "nobody"],
        &["worker", "drain", "--release", "none-such"],
        &[
            "operation",
            "show",
            "01a2298f-f728-794d-b26f-883eeb2f57a9/a/b/v1",
        ],
        &["lane", "resume", "--queue", "never-paused"],
    ];
    for words in cases {
        let ran = place.run(words).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (3, ""),
            "{words:?}: {ran:?}"
        );
    }
}

#[tokio::test]
async fn process_4_refused() {
    let _slot = process_slot();
    let place = Place::new().await;
    let task = place.submit(&["mail"]).await;
    let cases = [
        &["task", "submit", "mail", "--priority", "11"][..],
        &["task", "discard", &task, "--reason", "x"],
        &["lane", "pause", "--queue", "", "--reason", "x"],
        &["lane", "pause", "--queue", "a", "--reason", " "],
    ];
    for words in cases {
        let ran = place.run(words).await;
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (4, ""),
            "{words:?}: {ran:?}"
        );
    }
}

#[tokio::test]
async fn process_5_the_database() {
    let _slot = process_slot();
    let ran = run(command(
        Some("postgresql://x@127.0.0.1:1/x"),
        &["task", "list"],
    ))
    .await;
    assert_eq!((ran.code, ran.stdout.as_str()), (5, ""), "{ran:?}");
    assert!(ran.stderr.contains("127.0.0.1 port 1"), "{ran:?}");
}

#[tokio::test]
async fn process_6_the_wait_took_too_long() {
    let _slot = process_slot();
    let place = Place::new().await;
    let ran = place
        .run(&["task", "submit", "mail", "--wait", "--timeout", "0.2"])
        .await;
    assert_eq!(ran.code, 6, "{ran:?}");
}

#[tokio::test]
async fn process_7_the_task_did_not_succeed() {
    let _slot = process_slot();
    let place = Place::new().await;
    let task = place.submit(&["mail"]).await;
    assert_eq!(
        place
            .run(&["task", "cancel", &task, "--reason", "x"])
            .await
            .code,
        0
    );
    let ran = place.run(&["task", "watch", &task]).await;
    assert_eq!(ran.code, 7, "{ran:?}");
}
