//! What a program can do wrong: each ends its own attempt with its own reason, charged as one failure, and nothing else.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Bench, PRELUDE, Process, Running, quick, script, script_with, slots};

/// Kind, script, the error's code, a part of its message.
fn cases() -> Vec<(&'static str, String, &'static str, &'static str)> {
    let after_hello = |text: &str| format!("{PRELUDE}{text}");
    vec![
        (
            "garbage-first",
            "read -r hello; echo garbage".into(),
            "exec_protocol",
            "not a line of JSON",
        ),
        (
            "garbage-later",
            after_hello("echo '{\"type\":'; sleep 60"),
            "exec_protocol",
            "EOF while parsing",
        ),
        (
            "binary",
            after_hello(r"printf '\377\376\000\n'; sleep 60"),
            "exec_protocol",
            "not a line of JSON",
        ),
        (
            "half-line",
            after_hello(r#"printf '{"type":"result","value":1}'"#),
            "exec_protocol",
            "ended within a line",
        ),
        (
            "huge-line",
            after_hello(
                r#"printf '{"type":"log","level":"info","message":"'; head -c 200000 /dev/zero | tr '\0' x; echo '"}'; sleep 60"#,
            ),
            "exec_line_too_long",
            "more than 100000 bytes",
        ),
        (
            "unknown-message",
            after_hello(r#"echo '{"type":"charge","id":1}'; sleep 60"#),
            "exec_protocol",
            "unknown variant `charge`",
        ),
        (
            "unknown-field",
            after_hello(r#"echo '{"type":"result","value":1,"okay":true}'"#),
            "exec_protocol",
            "unknown field `okay`",
        ),
        (
            "missing-field",
            after_hello(r#"echo '{"type":"step","id":1}'; sleep 60"#),
            "exec_protocol",
            "missing field `name`",
        ),
        (
            "no-hello",
            "sleep 60".into(),
            "exec_no_hello",
            "did not say hello within 700 ms",
        ),
        (
            "result-first",
            r#"read -r h; echo '{"type":"result","value":1}'"#.into(),
            "exec_protocol",
            "`result` before its hello",
        ),
        (
            "hello-twice",
            after_hello(r#"echo '{"type":"hello","version":1}'; sleep 60"#),
            "exec_protocol",
            "`hello` twice",
        ),
        (
            "version",
            r#"read -r h; echo '{"type":"hello","version":2}'; sleep 60"#.into(),
            "exec_version",
            "chose version 2 of the exec protocol, and this worker offered 1",
        ),
        (
            "ids-twice",
            after_hello(
                r#"ask '{"type":"checkpoint","id":4,"value":1}'; echo '{"type":"checkpoint","id":4,"value":2}'; sleep 60"#,
            ),
            "exec_protocol",
            "`checkpoint` with the id 4, which is not above its last one, 4",
        ),
        (
            "ids-fall",
            after_hello(
                r#"ask '{"type":"step","id":4,"name":"a","key":"a"}'; echo '{"type":"save_step","id":3,"name":"a","key":"a","value":2}'; sleep 60"#,
            ),
            "exec_protocol",
            "with the id 3, which is not above its last one, 4",
        ),
        (
            "after-result",
            after_hello(
                r#"echo '{"type":"result","value":1}'; echo '{"type":"checkpoint","id":1,"value":1}'; sleep 60"#,
            ),
            "exec_protocol",
            "`checkpoint` after its last message",
        ),
        (
            "result-twice",
            after_hello(
                r#"echo '{"type":"result","value":1}'; echo '{"type":"result","value":2}'; sleep 60"#,
            ),
            "exec_protocol",
            "`result` after its last message",
        ),
        (
            "save-unasked",
            after_hello(
                r#"echo '{"type":"save_step","id":1,"name":"a","key":"b","value":1}'; sleep 60"#,
            ),
            "exec_protocol",
            "`save_step` for a step that was not answered `run`",
        ),
        (
            "settle-unasked",
            after_hello(
                r#"echo '{"type":"settle","id":1,"name":"a","key":"b","outcome":"succeeded"}'; sleep 60"#,
            ),
            "exec_protocol",
            "`settle` for an operation that was not answered `call`",
        ),
        (
            "probed-unasked",
            after_hello(
                r#"echo '{"type":"probed","id":2,"name":"a","key":"b","found":"happened"}'; sleep 60"#,
            ),
            "exec_protocol",
            "`probed` for an operation that was not answered `probe`",
        ),
        (
            "settle-twice",
            after_hello(
                r#"ask '{"type":"operation","id":1,"name":"a","key":"b","class":"blind"}'
                ask '{"type":"settle","id":2,"name":"a","key":"b","outcome":"succeeded"}'
                echo '{"type":"settle","id":3,"name":"a","key":"b","outcome":"failed"}'; sleep 60"#,
            ),
            "exec_protocol",
            "`settle` for an operation that was not answered `call`",
        ),
        (
            "too-many",
            after_hello(
                r#"i=1; while [ $i -le 70 ]; do echo "{\"type\":\"step\",\"id\":$i,\"name\":\"a\",\"key\":\"$i\"}"; i=$((i+1)); done; sleep 60"#,
            ),
            "exec_protocol",
            "more than 64 requests open",
        ),
        (
            "closed-output",
            after_hello("exec >&-; sleep 60"),
            "exec_output_closed",
            "closed its standard output",
        ),
        (
            "closed-input",
            after_hello(r#"exec <&-; echo '{"type":"checkpoint","id":1,"value":1}'; sleep 60"#),
            "exec_input_closed",
            "closed its standard input",
        ),
        (
            "reads-never",
            r#"echo '{"type":"hello","version":1}'; sleep 60"#.into(),
            "exec_input_unread",
            "unread for 1000 ms",
        ),
        (
            "exit-0",
            after_hello("exit 0"),
            "exec_no_result",
            "without a last message",
        ),
        (
            "exit-7",
            after_hello("echo 'out of paper' >&2; exit 7"),
            "exec_exit",
            "exited with 7; its last words: out of paper",
        ),
        (
            "exit-at-once",
            "exit 3".into(),
            "exec_exit",
            "exited with 3",
        ),
        (
            "result-then-exit-7",
            after_hello(r#"echo '{"type":"result","value":1}'; exit 7"#),
            "exec_exit",
            "gave a result and then exited with 7",
        ),
        (
            "signal",
            after_hello("kill -SEGV $$"),
            "exec_signal",
            "ended by signal 11",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_each_fault_is_one_failure_with_its_reason_and_touches_no_other_execution() {
    let _slot = tokio::task::spawn_blocking(aegis_testkit::process_slot)
        .await
        .unwrap();
    let bench = Bench::new().await;
    let mut builder = bench.worker().handler_with(
        script(
            "good",
            &format!("{PRELUDE} echo '{{\"type\":\"result\",\"value\":\"good\"}}'"),
        ),
        slots(2),
    );
    for (kind, text, _, _) in cases() {
        let mut options = quick();
        if kind == "no-hello" {
            options.hello_within = Duration::from_millis(700);
        }
        builder = builder.handler(script_with(kind, &text, options));
    }
    let worker = Running::start(builder);
    let mut tasks = Vec::new();
    for (kind, _, code, message) in cases() {
        // Larger than every pipe between, so that it is seen who reads.
        let input = json!("x".repeat(if kind == "reads-never" { 250_000 } else { 10 }));
        tasks.push((kind, code, message, bench.submit_once(kind, input).await));
    }
    let good = bench.submit_once("good", Value::Null).await;
    assert_eq!(bench.result(good).await, json!("good"));
    for (kind, code, message, task) in tasks {
        let ended = bench.ended(task).await;
        let (found, text, _) = bench.error(task).await;
        assert!(
            found == code && text.contains(message),
            "{kind}: {found}: {text}"
        );
        assert_eq!(
            (
                ended.state,
                ended.failures,
                ended.crashes,
                ended.interruptions,
                ended.snoozes
            ),
            (6, 1, 0, 0, 0),
            "{kind}: {ended:?}"
        );
    }
    let again = bench.submit_once("good", Value::Null).await;
    assert_eq!(bench.result(again).await, json!("good"));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_result_over_its_limit_is_the_engines_to_refuse() {
    let _slot = tokio::task::spawn_blocking(aegis_testkit::process_slot)
        .await
        .unwrap();
    let bench = Bench::new().await;
    let mut options = quick();
    options.line_bytes_max = 4 * 1024 * 1024;
    let text = format!(
        r#"{PRELUDE} printf '{{"type":"result","value":"'; head -c 300000 /dev/zero | tr '\0' x; echo '"}}'"#
    );
    let worker = Running::start(bench.worker().handler(script_with("large", &text, options)));
    let task = bench.submit("large", Value::Null).await;
    assert_eq!(bench.ended(task).await.state, 6);
    let (code, message, _) = bench.error(task).await;
    assert!(
        code == "AEG-0001" && message.contains("300002 bytes"),
        "{code} {message}"
    );
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_flood_on_standard_error_is_cut_and_costs_nothing_else() {
    let _slot = tokio::task::spawn_blocking(aegis_testkit::process_slot)
        .await
        .unwrap();
    let bench = Bench::new().await;
    let script = format!(
        r#"{PRELUDE}
        yes 'a line of the flood' | head -n 300000 >&2
        head -c 1000000 /dev/zero | tr '\0' x >&2
        echo '{{"type":"result","value":"dry"}}'"#
    );
    // A process, whose log can be read.
    let worker = Process::start(&bench, "program", &["sh", "-c", &script]);
    let task = bench.submit_once("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!("dry"));
    let said = worker.said();
    let passed_on = said.matches("a line of the flood").count();
    assert_eq!(passed_on, 10_000, "as many as the guide says");
    assert!(said.contains("there were too many"), "what is cut is told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_child_that_keeps_the_pipe_open_does_not_keep_the_task() {
    let _slot = tokio::task::spawn_blocking(aegis_testkit::process_slot)
        .await
        .unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let worker = bench.run(&format!(
        r#"{PRELUDE}
        sleep 1000 & echo $! > {}
        echo '{{"type":"result","value":"left one behind"}}'"#,
        pid.display()
    ));
    let task = bench.submit_once("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!("left one behind"));
    let sleeper = crate::support::pids(folder.path(), &["pid"]).await[0];
    assert!(!crate::support::lives(sleeper), "it ended with its attempt");
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_one_that_does_not_exit_after_its_result_is_ended_and_its_result_stands() {
    let _slot = tokio::task::spawn_blocking(aegis_testkit::process_slot)
        .await
        .unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let worker = bench.run(&format!(
        r#"{PRELUDE} echo $$ > {}; echo '{{"type":"result","value":"lingers"}}'; sleep 1000"#,
        folder.path().join("pid").display()
    ));
    let task = bench.submit_once("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!("lingers"));
    let lingering = crate::support::pids(folder.path(), &["pid"]).await[0];
    assert!(!crate::support::lives(lingering), "it was ended");
    worker.drain().await;
}
