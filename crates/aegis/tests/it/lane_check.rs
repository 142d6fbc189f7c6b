//! `aegis lane check`: the answer is the exit code, with reasons task by task.

use aegis_testkit::process_slot;
use serde_json::Value;

use crate::support::{Place, command, run};

#[tokio::test]
async fn process_the_answer_is_the_exit_code() {
    let _slot = process_slot();
    let place = Place::new().await;
    let stranded = &["lane", "check", "stranded", "--output", "json"];
    let yes = place.run(stranded).await;
    assert_eq!(yes.code, 0, "{yes:?}");
    let id = place.submit(&["pay", "--input", "{}"]).await;
    let no = place.run(stranded).await;
    assert_eq!(no.code, 21, "{no:?}");
    let document: Value = serde_json::from_str(&no.stdout).unwrap();
    assert_eq!(
        (&document["answer"], &document["tasks"][0]["id"]),
        (&"no".into(), &id.as_str().into())
    );
    assert_eq!(
        (
            &document["lanes"][0]["counts"]["ready"],
            &document["tasks"][0]["input"]
        ),
        (&1.into(), &1.into())
    );
    assert!(
        document["lanes"][0]["why"]
            .as_str()
            .unwrap()
            .contains("nobody who remains serves"),
        "{document}"
    );
    let names = place
        .run(&["lane", "check", "stranded", "--output", "name"])
        .await;
    assert_eq!((names.code, names.stdout.trim()), (21, id.as_str()));
    let table = place.run(&["lane", "check", "stranded"]).await;
    assert!(
        table.stdout.contains(&id) && table.stdout.contains("default/pay 1..1"),
        "{table:?}"
    );
    place
        .db
        .admin
        .batch_execute("truncate aegis.task; update aegis.database set closed_at = now(), closed_why = 'restored'")
        .await
        .unwrap();
    let unknown = place.run(stranded).await;
    assert_eq!(unknown.code, 22, "{unknown:?}");
    assert!(unknown.stdout.contains("aegis db adopt"), "{unknown:?}");
}

#[tokio::test]
async fn process_retire_and_roll_back_say_what_is_not_known() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.submit(&["pay", "--input", "{}"]).await;
    for words in [
        vec!["retire", "--release", "r9"],
        vec!["retire", "--build", "b9"],
        vec!["retire", "--worker", "00000000-0000-0000-0000-000000000009"],
        vec!["roll-back", "--to", "r9"],
    ] {
        let mut all = vec!["lane", "check"];
        all.extend(&words);
        let ran = place.run(&all).await;
        assert_eq!(ran.code, 22, "{words:?}: {ran:?}");
        assert!(
            ran.stdout
                .contains("is known, so nobody can tell what it reads"),
            "{words:?}: {ran:?}"
        );
    }
    let reads = |what| vec!["lane", "check", "roll-back", "--reads", what];
    assert_eq!(place.run(&reads("pay=1..2")).await.code, 0);
    assert_eq!(place.run(&reads("pay=2..3")).await.code, 21);
}

#[tokio::test]
async fn process_a_question_that_makes_no_sense_is_exit_code_2() {
    let _slot = process_slot();
    for words in [
        vec!["lane", "check"],
        vec!["lane", "check", "retire"],
        vec!["lane", "check", "retire", "--release", "a", "--build", "b"],
        vec!["lane", "check", "retire", "--worker", "x"],
        vec!["lane", "check", "roll-back"],
        vec!["lane", "check", "roll-back", "--reads", "pay=2..1"],
        vec!["lane", "check", "stranded", "--tasks", "100000"],
    ] {
        let ran = run(command(
            Some("postgresql://nobody@127.0.0.1:1/none"),
            &words,
        ))
        .await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran:?}");
    }
}
