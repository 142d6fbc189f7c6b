//! What is seen of a build that is under way: by `status`, and on a terminal.

use aegis_testkit::process_slot;

use super::folder::Folder;
use super::killing::{ID, runners, stage, start, writer};
use crate::output::on_a_terminal;

#[tokio::test]
async fn process_status_tells_of_a_build_and_whom_it_waits_for() {
    let _slot = process_slot();
    let folder = Folder::new();
    let db = stage(&folder).await;
    let url = db.url();
    let before = folder.run(Some(&url), &["status"]).await;
    assert!(!before.stdout.contains("builds since"), "{before:?}");
    let writer = writer(&db).await;
    let pid: i32 = writer
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap()
        .get(0);
    let mut child = start(&folder, &db);
    runners(&db, 1, 1).await;
    let ran = folder.run(Some(&url), &["status"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in ["builds since ", &format!("waits for process {pid} (")] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let lines = folder.json(Some(&url), &["status"]).await;
    let mut all = lines.as_array().unwrap().iter();
    let at = format!("{ID}:migrate");
    let line = all.find(|one| one["phase_of"] == *at).unwrap();
    assert_eq!(line["build"]["waits_for"]["pid"], pid, "{line}");
    writer.batch_execute("ROLLBACK").await.unwrap();
    let ended = tokio::task::spawn_blocking(move || child.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
    let after = folder.run(Some(&url), &["status"]).await;
    assert!(!after.stdout.contains("builds since"), "{after:?}");
}

#[tokio::test]
async fn process_the_progress_of_a_run_is_for_a_terminal_only() {
    let _slot = process_slot();
    for on_terminal in [true, false] {
        let folder = Folder::new();
        let db = stage(&folder).await;
        let (url, dir) = (db.url(), folder.dir());
        let writer = writer(&db).await;
        let words = format!(
            "migrate --dir '{}' run --phase migrate{}",
            dir.display(),
            if on_terminal { "" } else { " 2>&1 | cat" }
        );
        let text = tokio::task::spawn_blocking(move || {
            on_a_terminal(100, &[("AEGIS_DATABASE_URL", &url)], &words)
        });
        if !text.is_finished() {
            runners(&db, 1, 1).await;
        }
        writer.batch_execute("ROLLBACK").await.unwrap();
        let Some(text) = text.await.unwrap() else {
            return;
        };
        assert!(text.contains(&format!("{ID}:migrate#1")), "{text:?}");
        let turns = text
            .split(" steps ")
            .skip(1)
            .any(|rest| rest.starts_with(|one: char| one.is_ascii_digit()));
        assert_eq!(turns, on_terminal, "{text:?}");
    }
}
