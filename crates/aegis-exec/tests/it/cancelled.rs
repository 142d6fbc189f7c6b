//! A program is asked to stop by a message and by SIGTERM, with the cause; one that does not stop is killed.

use aegis_testkit::{process_slot, wait_until};
use aegis_worker::Exit;
use serde_json::{Value, json};

use crate::support::{BOUND, Bench, PRELUDE};

/// Ignores the signal, and does `then` when the message comes.
fn waits(mark: &std::path::Path, then: &str) -> String {
    format!(
        r#"{PRELUDE}
        trap : TERM
        echo started > {mark}
        read -r message || read -r message
        case $message in
        '{{"type":"cancel","cause":'*) ;;
        *) exit 9 ;;
        esac
        {then}"#,
        mark = mark.display()
    )
}

async fn started(mark: &std::path::Path) {
    wait_until("the program's start", BOUND, async || mark.exists()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_drain_gives_time_for_a_checkpoint_and_hands_back_uncharged() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let then = r#"
        case $message in *'"cause":"drain","kill_after_ms":3000'*) ;; *) exit 8 ;; esac
        ask '{"type":"checkpoint","id":1,"value":{"at":7}}'
        exit 0"#;
    let worker = bench.run(&waits(&mark, then));
    let task = bench.submit("program", Value::Null).await;
    started(&mark).await;
    assert_eq!(worker.drain().await, Exit::HandedBack { tasks: 1 });
    let left = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!(
        (left.state, left.interruptions, left.failures),
        (1, 1, 0),
        "{left:?}"
    );
    let next = bench.run(&format!(
        r#"{PRELUDE}
        case $start in *'"checkpoint":{{"protocol":2,"value":{{"at":7}}}}'*) echo '{{"type":"result","value":"resumed"}}' ;; esac"#
    ));
    assert_eq!(bench.result(task).await, json!("resumed"));
    next.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_result_that_is_ready_while_it_stops_counts() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let worker = bench.run(&waits(
        &mark,
        r#"echo '{"type":"result","value":"just made it"}'"#,
    ));
    let task = bench.submit("program", Value::Null).await;
    started(&mark).await;
    worker.drain().await;
    assert_eq!(bench.result(task).await, json!("just made it"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_one_that_hears_nothing_dies_by_the_signal_and_one_that_ignores_it_is_killed() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    for deafness in ["", "trap '' TERM"] {
        let bench = Bench::new().await;
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let worker = bench.run(&format!(
            "{PRELUDE}
            {deafness}
            echo started > {}
            sleep 1000 & wait
            while :; do sleep 1000; done",
            mark.display()
        ));
        let task = bench.submit("program", Value::Null).await;
        started(&mark).await;
        assert_eq!(
            worker.drain().await,
            Exit::HandedBack { tasks: 1 },
            "{deafness}"
        );
        let left = bench.store.task(task).await.unwrap().unwrap();
        assert_eq!(
            (left.state, left.interruptions, left.failures),
            (1, 1, 0),
            "{deafness}: {left:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_person_who_asks_for_the_end_is_named_as_the_cause() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let heard = folder.path().join("heard");
    let then = format!("echo \"$message\" > {}; exit 1", heard.display());
    let worker = bench.run(&waits(&mark, &then));
    let task = bench.submit("program", Value::Null).await;
    started(&mark).await;
    bench.store.cancel(task, "ann", "a test").await.unwrap();
    let ended = bench.ended(task).await;
    assert_eq!((ended.state, ended.failures), (7, 0), "{ended:?}");
    let heard = std::fs::read_to_string(&heard).unwrap();
    assert!(
        heard.starts_with(r#"{"type":"cancel","cause":"requested","kill_after_ms":"#),
        "{heard}"
    );
    worker.drain().await;
}
