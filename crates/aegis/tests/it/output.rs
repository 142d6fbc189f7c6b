//! What is printed: for programs, for pipes, and on a terminal.

use std::io::Read;
use std::process::{Command, Stdio};

use aegis_testkit::{process_slot, skipped};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{BINARY, Place, command, ran, run};
use crate::task_stream::run_with_input;

#[tokio::test]
async fn process_json_yaml_and_names_say_the_same() {
    let _slot = process_slot();
    let place = Place::new().await;
    let mut ids = vec![
        place.submit(&["mail", "--label", "a=1.10"]).await,
        place.submit(&["mail"]).await,
    ];
    ids.reverse();
    let json = place.json(&["task", "list"]).await;
    let yaml = place.run(&["task", "list", "-o", "yaml"]).await;
    assert_eq!(yaml_as_json(&yaml.stdout), json, "{yaml:?}");
    let names = place.run(&["task", "list", "-o", "name"]).await;
    assert_eq!(names.stdout.lines().collect::<Vec<_>>(), ids, "{names:?}");
    let one = place.run(&["task", "show", &ids[0], "-o", "name"]).await;
    assert_eq!(one.stdout.trim(), ids[0], "{one:?}");
    let none = place
        .run(&["task", "list", "--kind", "other", "-o", "name"])
        .await;
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none:?}");
    let table = place.run(&["task", "list"]).await;
    assert_eq!(table.stdout.lines().count(), 3, "{table:?}");
    assert!(
        table.stdout.starts_with("ID ") && !table.stdout.contains('\u{1b}'),
        "{table:?}"
    );
}

/// What a reader of YAML that is not ours understands.
fn yaml_as_json(text: &str) -> Value {
    yaml_serde::from_str(text).unwrap()
}

#[tokio::test]
async fn process_colours_are_for_a_terminal_and_never_with_no_color() {
    let _slot = process_slot();
    let piped = run(command(None, &["task", "list"])).await;
    assert!(
        !piped.stderr.contains('\u{1b}') && piped.stderr.starts_with("error: "),
        "{piped:?}"
    );
    let forced = run(command(None, &["task", "list", "--color", "always"])).await;
    assert!(forced.stderr.contains("\u{1b}[1;31merror"), "{forced:?}");
    let Some(terminal) = on_a_terminal(100, &[], "task list") else {
        return;
    };
    assert!(terminal.contains("\u{1b}["), "{terminal:?}");
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = on_a_terminal(100, &[variable], "task list").unwrap();
        assert!(
            !plain.contains('\u{1b}') && plain.contains("error: "),
            "{variable:?}: {plain:?}"
        );
    }
    let never = on_a_terminal(100, &[], "task list --color never").unwrap();
    assert!(!never.contains('\u{1b}'), "{never:?}");
}

#[tokio::test]
async fn process_a_table_fits_its_terminal() {
    let _slot = process_slot();
    let place = Place::new().await;
    let id = place
        .submit(&[
            "a-kind-with-quite-a-long-name",
            "--tenant",
            "a-tenant-with-a-long-name",
        ])
        .await;
    for width in [60, 100, 400] {
        let url = [("AEGIS_DATABASE_URL", place.url.as_str())];
        let Some(text) = on_a_terminal(width, &url, "task list --color never") else {
            return;
        };
        assert!(text.contains(&id), "{width}: {text}");
        // A remark is prose and may be wrapped.
        for line in text.lines().filter(|line| !line.starts_with("left out")) {
            assert!(
                line.trim_end().chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
        let is_whole = text.contains("a-tenant-with-a-long-name") && text.contains("SUBMITTED");
        assert_eq!(is_whole, width == 400, "{width}: {text}");
    }
}

#[tokio::test]
async fn process_progress_is_for_a_terminal_only() {
    let _slot = process_slot();
    let place = Place::new().await;
    let url = [("AEGIS_DATABASE_URL", place.url.as_str())];
    let worker = "00000000-0000-4000-8000-000000000001";
    place
        .db
        .admin
        .batch_execute(&format!(
            "INSERT INTO aegis.worker (id, slots, pid, registered_at, name, host, release, build, digest, schema)
                 VALUES ('{worker}', 3, 7, clock_timestamp(), 'slow', 'h', 'r', 'b', 'd', {});
             INSERT INTO aegis.worker_lease (worker, lease_until, ttl_ms, beat_at)
                 VALUES ('{worker}', clock_timestamp() + interval '1 h', 30000, clock_timestamp())",
            aegis_store::install::SCHEMA
        ))
        .await
        .unwrap();
    let words = ["worker", "drain", "slow", "--wait", "--timeout", "1"];
    let piped = place.run(&words).await;
    assert_eq!(piped.code, 6, "{piped:?}");
    assert!(!piped.stderr.contains("0 of 1"), "{piped:?}");
    if let Some(text) = on_a_terminal(100, &url, &words.join(" ")) {
        assert!(text.contains("drained 0 of 1"), "{text:?}");
    }
}

/// What a run prints on a terminal of this width; `None` where the machine has no `script`.
pub(crate) fn on_a_terminal(
    width: u16,
    environment: &[(&str, &str)],
    words: &str,
) -> Option<String> {
    let line = format!("stty cols {width} rows 50; '{BINARY}' {words}");
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .env("TERM", "xterm");
    command
        .env_remove("AEGIS_DATABASE_URL")
        .env("XDG_CONFIG_HOME", "/nonexistent");
    command.envs(environment.iter().copied());
    match command.output() {
        Ok(output) => Some(ran(&output).stdout),
        Err(error) => {
            skipped(
                "a terminal",
                &format!("no terminal can be made by `script`: {error}"),
            );
            None
        }
    }
}

#[tokio::test]
async fn process_a_worker_outlives_whoever_read_its_words() {
    let _slot = process_slot();
    let place = Place::new().await;
    for format in ["text", "json"] {
        let mut worker = place
            .command(&["worker", "--log", "trace", "--log-format", format])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Read to its first word, then never again: a log shipper that has died.
        let mut first = [0; 1];
        let mut stderr = worker.stderr.take().unwrap();
        stderr.read_exact(&mut first).unwrap();
        drop(stderr);
        let words = ["task", "submit", "aegis.noop", "--wait", "--timeout", "30"];
        let done = place.run(&words).await;
        let pid = Pid::from_raw(i32::try_from(worker.id()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
        let code = worker.wait().unwrap().code();
        assert_eq!(
            (done.code, code),
            (0, Some(0)),
            "{format}, worker: {code:?}: {done:?}"
        );
    }
}

#[tokio::test]
async fn process_a_remark_that_nobody_reads_changes_no_exit_code() {
    let _slot = process_slot();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let place = Place::new().await;
    let mut list = place.command(&["task", "list"]);
    assert_eq!(
        list.stderr(writer.try_clone().unwrap())
            .status()
            .unwrap()
            .code(),
        Some(0)
    );
    let mut refused = place.command(&["task", "show", "zzz"]);
    assert_eq!(refused.stderr(writer).status().unwrap().code(), Some(3));
}

#[tokio::test]
async fn process_an_answer_that_cannot_be_written_is_no_success() {
    let _slot = process_slot();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    let place = Place::new().await;
    place.submit(&["mail"]).await;
    for words in [
        &["task", "list"][..],
        &["task", "list", "-o", "json"],
        &["version"],
        &["completion", "bash"],
        &["worker", "--print-config"],
    ] {
        let mut command = place.command(words);
        let output = command.stdout(full().unwrap()).stderr(Stdio::piped());
        let ran = ran(&output.spawn().unwrap().wait_with_output().unwrap());
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("cannot be written"), "{ran:?}");
    }
}

#[tokio::test]
async fn process_a_stored_text_is_no_command_to_a_terminal() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.submit(&["\u{1b}[2Jevil"]).await;
    let stdin = place.command(&["task", "submit", "a", "--from", "-"]);
    let refused = run_with_input(stdin, b"{\"\\u001b[2Jevil\": 1}\n").await;
    let mut all = vec![(vec!["task", "submit"], refused)];
    for words in [
        &["task", "list"][..],
        &["lane", "list"],
        &["lane", "check", "stranded"],
        &["doctor", "--check", "stranded"],
    ] {
        all.push((words.to_vec(), place.run(words).await));
    }
    for (words, ran) in all {
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!told.contains('\u{1b}'), "{words:?}: {told:?}");
        assert!(told.contains("\\u{1b}[2Jevil"), "{words:?}: {told:?}");
    }
}
