//! `aegis task`.

use aegis_testkit::process_slot;
use serde_json::json;

use crate::support::Place;

#[tokio::test]
async fn process_submit_list_show_and_cancel() {
    let _slot = process_slot();
    let place = Place::new().await;
    let id = place
        .submit(&[
            "mail",
            "--input",
            r#"{"to":"ada"}"#,
            "--queue",
            "q",
            "--label",
            "a=b",
            "--key",
            "k-1",
        ])
        .await;
    let again = place
        .json(&[
            "task",
            "submit",
            "mail",
            "--input",
            r#"{ "to": "ada" }"#,
            "--queue",
            "q",
            "--key",
            "k-1",
        ])
        .await;
    assert_eq!(
        (again["id"].as_str(), &again["new"]),
        (Some(id.as_str()), &json!(false))
    );

    let list = place
        .json(&["task", "list", "--state", "ready", "--kind", "mail"])
        .await;
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["id"], json!(id));
    let empty = place.run(&["task", "list", "--state", "failed"]).await;
    assert_eq!((empty.code, empty.stdout.as_str()), (0, ""), "{empty:?}");

    // A UUIDv7's first half is the moment, so most of it is needed to be unique; here there is one task.
    let shown = place.json(&["task", "show", &id[..6]]).await;
    assert_eq!(shown["id"], json!(id));
    assert_eq!(shown["input"], json!({ "to": "ada" }));
    assert_eq!(shown["labels"], json!({ "a": "b" }));
    let people = place.run(&["task", "show", &id]).await;
    assert!(
        people.stdout.contains("mail") && people.stdout.contains("ready"),
        "{people:?}"
    );

    let cancelled = place
        .json(&["task", "cancel", &id, "--reason", "no more"])
        .await;
    assert_eq!(cancelled["answer"], "cancelled");
    let twice = place
        .run(&["task", "cancel", &id, "--reason", "no more"])
        .await;
    assert_eq!(twice.code, 4, "{twice:?}");
    let watched = place.run(&["task", "watch", &id]).await;
    assert_eq!(watched.code, 7, "it ended, and not well: {watched:?}");
}

#[tokio::test]
async fn process_what_is_not_there_is_exit_code_3() {
    let _slot = process_slot();
    let place = Place::new().await;
    let nobody = "01890000-0000-7000-8000-000000000000";
    for words in [
        vec!["task", "show", nobody],
        vec!["task", "show", "zzz"],
        vec!["task", "watch", nobody],
        vec!["task", "cancel", nobody, "--reason", "x"],
        vec!["task", "redrive", nobody, "--reason", "x"],
        vec!["task", "discard", nobody, "--reason", "x"],
        vec!["operation", "show", "nonsense"],
        vec!["worker", "drain", "nobody"],
    ] {
        let ran = place.run(&words).await;
        assert_eq!(ran.code, 3, "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("AEG-0013"), "{ran:?}");
    }
    place.submit(&["a", "--input", "{}"]).await;
    place.submit(&["a", "--input", "{}"]).await;
    let two = place.run(&["task", "show", "0"]).await;
    assert_eq!(two.code, 4, "it stands for several: {two:?}");
    assert!(two.stderr.contains("more than one"), "{two:?}");
}

#[tokio::test]
async fn process_what_makes_no_sense_is_refused_with_exit_code_4_and_nothing_is_written() {
    let _slot = process_slot();
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.json");
    std::fs::write(&large, format!("\"{}\"", "x".repeat(256 * 1024))).unwrap();
    let large = format!("@{}", large.display());
    let missing = format!("@{}/nothing.json", folder.path().display());
    place
        .submit(&["mail", "--input", "{}", "--key", "k-2"])
        .await;
    for (words, code) in [
        (vec!["mail", "--input", &large], "AEG-0001"),
        (vec!["mail", "--input", "{}", "--protocol", "0"], "AEG-0004"),
        (
            vec!["mail", "--input", r#"{"other":1}"#, "--key", "k-2"],
            "AEG-0003",
        ),
        (vec!["mail", "--input", "not json"], "AEG-0004"),
        (
            vec!["mail", "--input", "{}", "--priority", "10"],
            "AEG-0004",
        ),
        (
            vec!["mail", "--input", "{}", "--label", "nonsense"],
            "AEG-0004",
        ),
        (vec!["mail", "--label", "=x"], "AEG-0004"),
        (vec!["mail", "--label", "a=1", "--label", "a=2"], "AEG-0004"),
        (vec!["", "--input", "{}"], "AEG-0004"),
        (vec!["mail", "--input", &missing], ""),
        (vec!["mail", "--input", "{}", "--delay", "-1"], "AEG-0004"),
    ] {
        let mut all = vec!["task", "submit"];
        all.extend(words);
        let ran = place.run(&all).await;
        assert_eq!(ran.code, 4, "{all:?}: {ran:?}");
        assert!(ran.stderr.contains(code), "{all:?}: {ran:?}");
    }
    let all = place.json(&["task", "list"]).await;
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
}

#[tokio::test]
async fn process_a_task_that_nobody_executes_is_waited_for_in_bounds() {
    let _slot = process_slot();
    let place = Place::new().await;
    let ran = place
        .run(&[
            "task",
            "submit",
            "nobody.does.this",
            "--input",
            "{}",
            "--wait",
            "--timeout",
            "0.3",
        ])
        .await;
    assert_eq!(ran.code, 6, "{ran:?}");
    let id = place.json(&["task", "list"]).await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let watched = place.run(&["task", "watch", &id, "--timeout", "0.3"]).await;
    assert_eq!(watched.code, 6, "{watched:?}");
}
