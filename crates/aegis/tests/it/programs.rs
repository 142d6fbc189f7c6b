//! `aegis worker --exec`: kinds whose handlers are programs, and what is refused before anything is claimed.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use aegis_testkit::{process_slot, wait_until};
use serde_json::{Value, json};

use crate::support::{BOUND, Place};

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/exec")
        .join(path)
}

/// A worker that ends with its test.
struct Worker(Child);

impl Worker {
    fn start(place: &Place, words: &[&str]) -> Self {
        let mut all = vec!["worker", "--lease-ttl-ms", "3000"];
        all.extend(words);
        let child = place
            .command(&all)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

async fn submitted(place: &Place, words: &[&str]) -> Value {
    let mut all = vec!["task", "submit"];
    all.extend(words);
    all.extend(["--wait", "--timeout", "30"]);
    place.json(&all).await
}

#[tokio::test]
async fn process_kinds_are_executed_by_the_programs_behind_them() {
    let _slot = process_slot();
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (album, register) = (folder.path().join("album"), folder.path().join("register"));
    let (resize, archive) = (example("python/resize.py"), example("shell/archive.sh"));
    let _worker = Worker::start(
        &place,
        &[
            "--kind",
            "resize",
            "--protocol",
            "1..2",
            "--exec",
            resize.to_str().unwrap(),
            "--kind",
            "archive",
            "--exec",
            archive.to_str().unwrap(),
        ],
    );
    let input = json!({ "picture": "a.png", "album": album }).to_string();
    let done = submitted(&place, &["resize", "--input", &input]).await;
    assert_eq!(
        (&done["state"], &done["result"]),
        (&json!("succeeded"), &json!({ "published": 1 })),
        "{done}"
    );
    let input = json!({ "file": resize, "register": register }).to_string();
    let done = submitted(&place, &["archive", "--input", &input]).await;
    assert_eq!(done["state"], "succeeded", "{done}");
    for file in [&album, &register] {
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let workers = place.json(&["worker", "list"]).await;
    let can = workers[0]["capabilities"].to_string();
    assert!(
        can.contains("resize") && can.contains("archive") && !can.contains("aegis.noop"),
        "{can}"
    );
}

#[tokio::test]
async fn process_a_program_of_the_binary_ends_with_it() {
    use std::os::unix::fs::PermissionsExt;
    let _slot = process_slot();
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("handler");
    let pid = folder.path().join("pid");
    let script = format!(
        "#!/bin/sh\nread -r h; echo '{{\"type\":\"hello\",\"version\":1}}'; read -r s || exit 0\n\
         setsid sh -c 'echo $$ > {}; exec sleep 1000' &\nsleep 1000\n",
        pid.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut worker = Worker::start(
        &place,
        &["--kind", "waits", "--exec", program.to_str().unwrap()],
    );
    place.submit(&["waits", "--input", "{}"]).await;
    let number = || {
        std::fs::read_to_string(&pid)
            .unwrap_or_default()
            .trim()
            .parse::<i32>()
    };
    wait_until("the program's child", BOUND, async || number().is_ok()).await;
    let at = PathBuf::from(format!("/proc/{}", number().unwrap()));
    assert!(at.exists());
    worker.0.kill().unwrap();
    wait_until("its end", BOUND, async || !at.exists()).await;
}

#[tokio::test]
async fn process_what_is_no_handler_is_refused_before_the_worker_registers() {
    use std::os::unix::fs::PermissionsExt;
    let _slot = process_slot();
    let place = Place::new().await;
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str, text: &str, mode| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let plain = made("plain", "#!/bin/sh\n", 0o644);
    let silent = made(
        "silent",
        "#!/bin/sh\necho 'no such module' >&2\nexit 1\n",
        0o755,
    );
    let chatty = made("chatty", "#!/bin/sh\necho starting\n", 0o755);
    let good = example("shell/archive.sh").display().to_string();
    for (words, code, wanted) in [
        (
            vec!["--kind", "a", "--exec", &plain],
            "AEG-0018",
            "chmod +x",
        ),
        (
            vec!["--kind", "a", "--exec", "./nothing-here"],
            "AEG-0018",
            "No such file",
        ),
        (
            vec!["--kind", "a", "--exec", "nothing-here"],
            "AEG-0018",
            "PATH",
        ),
        (
            vec!["--kind", "a", "--exec", &silent],
            "AEG-0018",
            "its last words: no such module",
        ),
        (
            vec!["--kind", "a", "--exec", &chatty],
            "AEG-0018",
            "not a line of JSON",
        ),
        (vec!["--exec", &good], "", "has no --kind before it"),
        (
            vec!["--kind", "a", "--protocol", "2..1", "--exec", &good],
            "",
            "is empty",
        ),
        (vec!["--protocol", "1..2"], "", "has no --exec behind it"),
        (
            vec![
                "--kind", "a", "--exec", &good, "--kind", "a", "--exec", &good,
            ],
            "",
            "two handlers",
        ),
        (
            vec!["--kind", "a", "--exec", &good, "--kind", "b"],
            "",
            "name its program with --exec",
        ),
    ] {
        let mut all = vec!["worker"];
        all.extend(words.iter().copied());
        let ran = place.run(&all).await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
        assert!(
            ran.stderr.contains(wanted) && ran.stderr.contains(code),
            "{words:?}: {ran:?}"
        );
    }
    let list = place.json(&["worker", "list", "--all"]).await;
    assert_eq!(list, json!([]), "none of them registered");
}
