//! `aegis task submit --from`: many tasks from lines of JSON.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use aegis_testkit::{process_slot, wait_until};
use serde_json::{Value, json};

use crate::support::{BOUND, Place, Ran, ran};

/// Runs a command to its end with this on its standard input.
pub(crate) async fn run_with_input(mut command: Command, input: &[u8]) -> Ran {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let input = input.to_vec();
    tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || {
            // Who stops early closes the pipe.
            stdin.write_all(&input).ok();
        });
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        ran(&output)
    })
    .await
    .unwrap()
}

impl Place {
    async fn submit_lines(&self, words: &[&str], lines: &str) -> Ran {
        let mut all = vec!["task", "submit", "--from", "-"];
        all.extend(words);
        run_with_input(self.command(&all), lines.as_bytes()).await
    }

    async fn kinds(&self) -> Vec<String> {
        let found = self.json(&["task", "list", "--limit", "0"]).await;
        let mut kinds: Vec<String> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["kind"].as_str().unwrap().to_owned())
            .collect();
        kinds.sort();
        kinds
    }
}

fn documents(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn process_each_line_is_a_task_and_each_answer_a_line() {
    let _slot = process_slot();
    let place = Place::new().await;
    let lines = concat!(
        "\u{feff}{\"kind\": \"a\", \"input\": {\"n\": 12345678901234567890123}, \"key\": \"k\"}\r\n",
        "\n",
        "{\"labels\": {\"batch\": \"7\"}, \"priority\": 1}\n",
        "{\"kind\": \"a\", \"input\": {\"n\": 12345678901234567890123}, \"key\": \"k\"}"
    );
    let words = ["usual", "--queue", "q", "-o", "json"];
    let ran = place.submit_lines(&words, lines).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let answers = documents(&ran);
    let told: Vec<(&Value, &Value)> = answers.iter().map(|a| (&a["line"], &a["new"])).collect();
    assert_eq!(
        told,
        [
            (&json!(1), &json!(true)),
            (&json!(3), &json!(true)),
            (&json!(4), &json!(false))
        ]
    );
    assert_eq!(answers[0]["id"], answers[2]["id"], "one key, one task");
    let shown = place
        .run(&["task", "show", answers[0]["id"].as_str().unwrap()])
        .await;
    assert!(shown.stdout.contains("q/a"), "{shown:?}");
    let input: String = {
        let row = place
            .db
            .admin
            .query_one(
                "select convert_from(input, 'UTF8') from aegis.input_any where convert_from(input, 'UTF8') like '%n%'",
                &[],
            )
            .await
            .unwrap();
        row.get(0)
    };
    assert_eq!(
        input, "{\"n\": 12345678901234567890123}",
        "not a digit is lost"
    );
    assert_eq!(place.kinds().await, ["a", "usual"]);
    let again = place
        .submit_lines(&["-o", "table"], lines.lines().next().unwrap())
        .await;
    assert!(
        again.stdout.contains("known") && again.code == 0,
        "{again:?}"
    );
}

#[tokio::test]
async fn process_inputs_and_tasks_are_read_from_files_and_found_by_where_they_went() {
    let _slot = process_slot();
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (input, lines) = (
        folder.path().join("input.json"),
        folder.path().join("tasks.jsonl"),
    );
    std::fs::write(&input, r#"{"to": "ada"}"#).unwrap();
    std::fs::write(
        &lines,
        "{\"kind\": \"b\", \"queue\": \"q\", \"tenant\": \"t\"}\n{\"kind\": \"c\", \"queue\": \"q\"}\n",
    )
    .unwrap();
    let at = format!("@{}", input.display());
    let id = place.submit(&["a", "--input", &at]).await;
    let shown = place.json(&["task", "show", &id]).await;
    assert_eq!(shown["input"], json!({ "to": "ada" }));
    let from = lines.display().to_string();
    let ran = place.run(&["task", "submit", "--from", &from]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.kinds().await, ["a", "b", "c"]);
    for (filter, count) in [
        (&["--queue", "q"][..], 2),
        (&["--tenant", "t"], 1),
        (&["--queue", "q", "--tenant", "default"], 1),
        (&["--tenant", "nobody"], 0),
    ] {
        let found = place.json(&[&["task", "list"], filter].concat()).await;
        assert_eq!(found.as_array().unwrap().len(), count, "{filter:?}");
    }
}

#[tokio::test]
async fn process_a_bad_line_is_told_by_its_number_and_cuts_exactly_there() {
    let _slot = process_slot();
    let place = Place::new().await;
    let lines = "{\"kind\":\"a\"}\n{\"kind\":\"b\"}\n{\"knid\":\"c\"}\n{\"kind\":\"d\"}\n{\"kind\":\"e\",\"priority\":10}\n";
    let tried = place.submit_lines(&["--dry-run"], lines).await;
    assert_eq!(tried.code, 4, "{tried:?}");
    assert!(
        tried.stderr.contains("line 3: unknown field `knid`"),
        "{tried:?}"
    );
    assert!(tried.stderr.contains("line 5: priority is 10"), "{tried:?}");
    assert!(place.kinds().await.is_empty());

    let stopped = place.submit_lines(&[], lines).await;
    assert_eq!(stopped.code, 8, "{stopped:?}");
    assert!(stopped.stderr.contains("stopped at line 3"), "{stopped:?}");
    assert!(stopped.stderr.contains("--from-line 3"), "{stopped:?}");
    assert_eq!(place.kinds().await, ["a", "b"]);

    let rest = place
        .submit_lines(&["--from-line", "3", "--skip-bad", "-o", "json"], lines)
        .await;
    assert_eq!(rest.code, 8, "{rest:?}");
    assert_eq!(place.kinds().await, ["a", "b", "d"]);
    let answers = documents(&rest);
    let mut with_error: Vec<u64> = answers
        .iter()
        .filter(|answer| answer["error"].is_string())
        .map(|answer| answer["line"].as_u64().unwrap())
        .collect();
    with_error.sort_unstable();
    assert_eq!(with_error, [3, 5]);

    let first = place.submit_lines(&[], "nonsense\n").await;
    assert_eq!(first.code, 4, "nothing was written: {first:?}");
    let folder = tempfile::tempdir().unwrap();
    let nothing = place
        .run(&[
            "task",
            "submit",
            "--from",
            &folder.path().join("none").display().to_string(),
        ])
        .await;
    assert_eq!(nothing.code, 4, "{nothing:?}");
    let words = [
        "task",
        "submit",
        "--from",
        &folder.path().display().to_string(),
    ];
    let a_folder = place.run(&words).await;
    assert_eq!(a_folder.code, 4, "{a_folder:?}");
    assert!(a_folder.stderr.contains("cannot be read"), "{a_folder:?}");
    let both = place
        .run(&["task", "submit", "a", "--from", "-", "--wait"])
        .await;
    assert_eq!(both.code, 2, "{both:?}");
}

#[tokio::test]
async fn process_what_the_database_refuses_is_told_by_its_line() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.submit(&["a", "--input", "1", "--key", "k-3"]).await;
    let lines: String = (1..=5).fold(String::new(), |mut text, n| {
        writeln!(
            text,
            "{{\"kind\": \"a\", \"input\": {n}00, \"key\": \"k-{n}\"}}"
        )
        .unwrap();
        text
    });
    let stopped = place.submit_lines(&["-o", "json"], &lines).await;
    assert_eq!(stopped.code, 8, "{stopped:?}");
    assert!(
        stopped.stderr.contains("line 3:") && stopped.stderr.contains("used with another payload"),
        "{stopped:?}"
    );
    assert_eq!(
        place.kinds().await.len(),
        3,
        "lines 1 and 2, and the one before"
    );
    let skipped = place
        .submit_lines(&["--skip-bad", "-o", "json"], &lines)
        .await;
    assert_eq!(skipped.code, 8, "{skipped:?}");
    assert_eq!(place.kinds().await.len(), 5);
    let known = documents(&skipped)
        .iter()
        .filter(|answer| answer["new"] == false)
        .count();
    assert_eq!(known, 2, "with keys a file may simply be sent again");
}

#[tokio::test]
async fn process_a_slow_producers_tasks_do_not_wait_for_company() {
    let _slot = process_slot();
    let place = Place::new().await;
    let mut child = place
        .command(&["task", "submit", "slow", "--from", "-", "-o", "name"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{{}}").unwrap();
    stdin.flush().unwrap();
    wait_until(
        "the one line is a task while the pipe is open",
        BOUND,
        async || !place.kinds().await.is_empty(),
    )
    .await;
    drop(stdin);
    let code = tokio::task::spawn_blocking(move || child.wait().unwrap().code())
        .await
        .unwrap();
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn process_cut_connections_lose_and_double_nothing() {
    let _slot = process_slot();
    let place = Place::new().await;
    let mut child = place
        .command(&["task", "submit", "cut", "--from", "-", "-o", "name"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for n in 1..=5 {
        writeln!(stdin, "{{\"key\": \"k-{n}\"}}").unwrap();
        stdin.flush().unwrap();
        wait_until("the line is a task", BOUND, async || {
            place.kinds().await.len() == n
        })
        .await;
        place
            .db
            .admin
            .execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
                &[],
            )
            .await
            .unwrap();
    }
    drop(stdin);
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        .await
        .unwrap();
    let ran = ran(&output);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut ids: Vec<&str> = ran.stdout.lines().collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5, "{ran:?}");
    assert_eq!(place.kinds().await.len(), 5);
}

/// The most memory that a submit of so many lines had, in KiB, with all of them answered.
async fn memory_kib(place: &Place, count: usize) -> u64 {
    let mut child = place
        .command(&["task", "submit", "many", "--from", "-", "-o", "name"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    tokio::task::spawn_blocking(move || {
        let reader = std::thread::spawn(move || {
            BufReader::new(stdout)
                .lines()
                .take(count)
                .map(Result::unwrap)
                .count()
        });
        let mut line = String::new();
        for n in 0..count {
            line.clear();
            writeln!(
                line,
                "{{\"input\": {{\"n\": {n}, \"pad\": \"{}\"}}}}",
                "x".repeat(200)
            )
            .unwrap();
            stdin.write_all(line.as_bytes()).unwrap();
        }
        stdin.flush().unwrap();
        assert_eq!(reader.join().unwrap(), count, "each line has its answer");
        // It is still there, since its input has not ended: its peak can be read.
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        drop(stdin);
        assert!(child.wait().unwrap().success());
        let peak = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        peak.split_whitespace().nth(1).unwrap().parse().unwrap()
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn process_memory_does_not_grow_with_the_number_of_lines() {
    let _slot = process_slot();
    let place = Place::new().await;
    // Enough for every buffer to be full once; then eight times as many.
    let few = memory_kib(&place, 10_000).await;
    let many = memory_kib(&place, 80_000).await;
    assert!(
        many * 10 < few * 13,
        "80,000 lines took {many} KiB at most, 10,000 took {few}"
    );
}
