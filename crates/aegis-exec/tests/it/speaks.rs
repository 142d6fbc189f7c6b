//! What a program may say, and what it gets.

use serde_json::{Value, json};

use crate::support::{Bench, PRELUDE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_gets_its_task_and_its_result_is_kept() {
    let bench = Bench::new().await;
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        case $start in
        '{{"type":"start",'*'"kind":"program","queue":"default","epoch":'*'"input":{{"path":"grün \"a\""}}'*) ;;
        *) echo "what is this: $start" >&2; exit 9 ;;
        esac
        test -n "$AEGIS_TASK" && test "$AEGIS_KIND" = program && test "$AEGIS_EPOCH" -ge 1
        echo '{{"type":"log","level":"info","message":"working"}}'
        echo '{{"type":"progress"}}'
        echo '{{"type":"result","value":{{"bytes":12}}}}'"#
    ));
    let task = bench
        .submit_once("program", json!({ "path": "grün \"a\"" }))
        .await;
    assert_eq!(bench.result(task).await, json!({ "bytes": 12 }));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_and_checkpoints_come_back_to_the_next_attempt_by_name_and_key() {
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("runs").display().to_string();
    // The first attempt does a step and a checkpoint and dies; the second finds both in its start message and by asking.
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        ask '{{"type":"step","id":1,"name":"measure","key":"a.png"}}'
        case $reply in
        '{{"type":"reply","id":1,"answer":"run"'*)
            echo x >> {runs}
            ask '{{"type":"save_step","id":2,"name":"measure","key":"a.png","value":[640,480]}}'
            case $reply in '{{"type":"reply","id":2,"answer":"saved","valid_for_ms":'*) ;; *) exit 8 ;; esac
            ask '{{"type":"checkpoint","id":3,"value":{{"at":50}}}}'
            case $reply in '{{"type":"reply","id":3,"answer":"saved"'*) ;; *) exit 7 ;; esac
            exit 3 ;;
        '{{"type":"reply","id":1,"answer":"known","protocol":2,"value":[640,480],"valid_for_ms":'*) ;;
        *) echo "$reply" >&2; exit 6 ;;
        esac
        case $start in
        *'"checkpoint":{{"protocol":2,"value":{{"at":50}}}},"steps":[{{"name":"measure","key":"a.png","protocol":2,"value":[640,480]}}],"steps_complete":true'*) ;;
        *) echo "$start" >&2; exit 5 ;;
        esac
        echo '{{"type":"result","value":"resumed"}}'"#
    ));
    let task = bench.submit("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!("resumed"));
    let ended = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!((ended.failures, ended.crashes), (1, 0));
    let (code, message, details) = bench.error(task).await;
    assert_eq!(
        (code.as_str(), details["exit_code"].as_i64()),
        ("exec_exit", Some(3)),
        "{message}"
    );
    assert_eq!(
        std::fs::read_to_string(&runs).unwrap(),
        "x\n",
        "the step ran once"
    );
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_its_own_is_retryable_or_terminal_as_it_says() {
    let bench = Bench::new().await;
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        case $start in
        *'"failures":0'*) echo '{{"type":"error","code":"busy","message":"come back","retryable":true,"retry_after_ms":1}}' ;;
        *) echo '{{"type":"error","code":"bad_picture","message":"no PNG","retryable":false,"details":{{"byte":3}}}}'; exit 1 ;;
        esac"#
    ));
    let task = bench.submit("program", Value::Null).await;
    let ended = bench.ended(task).await;
    assert_eq!((ended.state, ended.failures), (6, 2), "{ended:?}");
    let codes: Vec<String> = bench
        .store
        .attempt_errors(task)
        .await
        .unwrap()
        .into_iter()
        .map(|e| e.code)
        .collect();
    assert_eq!(codes.len(), 2);
    assert!(
        codes.contains(&"busy".to_owned()) && codes.contains(&"bad_picture".to_owned()),
        "{codes:?}"
    );
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snooze_is_not_charged() {
    let bench = Bench::new().await;
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        case $start in
        *'"snoozes":0'*) echo '{{"type":"snooze","for_ms":1}}' ;;
        *) echo '{{"type":"result","value":1}}' ;;
        esac"#
    ));
    let task = bench.submit_once("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!(1));
    let ended = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!((ended.snoozes, ended.failures), (1, 0));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_use_of_a_name_and_key_is_refused_and_a_request_may_overtake_another() {
    let bench = Bench::new().await;
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        ask '{{"type":"step","id":1,"name":"a","key":"1"}}'
        ask '{{"type":"step","id":2,"name":"a","key":"2"}}'
        ask '{{"type":"save_step","id":3,"name":"a","key":"2","value":2}}'
        ask '{{"type":"save_step","id":4,"name":"a","key":"1","value":1}}'
        case $reply in *'"id":4,"answer":"saved"'*) ;; *) exit 9 ;; esac
        ask '{{"type":"step","id":5,"name":"a","key":"1"}}'
        case $reply in
        *'"id":5,"answer":"error","code":"AEG-0012"'*'"retryable":false,"over":false'*) echo '{{"type":"result","value":"refused"}}' ;;
        *) echo "$reply" >&2; exit 8 ;;
        esac"#
    ));
    let task = bench.submit_once("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!("refused"));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_gets_none_of_the_workers_configuration() {
    let bench = Bench::new().await;
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        names=$(env | sed -n 's/^\(AEGIS_[A-Z_]*\)=.*/\1/p' | sort | tr '\n' ' ')
        printf '{{"type":"result","value":"%s"}}\n' "$names""#
    ));
    let task = bench.submit_once("program", Value::Null).await;
    assert_eq!(
        bench.result(task).await,
        json!("AEGIS_EPOCH AEGIS_EXECUTION AEGIS_KIND AEGIS_TASK ")
    );
    worker.drain().await;
}
