//! A program that cannot be a handler is found out before anything is claimed for it.

use std::time::Duration;

use aegis_exec::{ExecHandler, Program};
use aegis_testkit::process_slot;

use crate::support::{quick, script_with};

async fn why(text: &str) -> String {
    let mut options = quick();
    options.hello_within = Duration::from_millis(500);
    script_with("program", text, options)
        .check()
        .await
        .unwrap_err()
        .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_the_handshake_alone_says_what_is_no_handler() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    for (text, wanted) in [
        ("exit 4", "it exited with 4"),
        (
            "echo 'no module' >&2; exit 1",
            "it exited with 1; its last words: no module",
        ),
        ("echo hello; sleep 60", "not a line of JSON"),
        ("sleep 60", "did not say hello within 500 ms"),
        (
            r#"echo '{"type":"hello","version":9}'; sleep 60"#,
            "chose version 9",
        ),
        (
            r#"echo '{"type":"progress"}'; sleep 60"#,
            "something else first",
        ),
        ("kill -KILL $$", "ended by signal 9"),
    ] {
        let said = why(text).await;
        assert!(
            said.contains(wanted) && said.contains("exec-handlers.md"),
            "{text}: {said}"
        );
    }
    let good =
        r#"read -r hello; echo '{"type":"hello","version":1}'; read -r start && exit 9; exit 0"#;
    script_with("program", good, quick()).check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_missing_interpreter_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("handler");
    std::fs::write(&path, "#!/nowhere/python\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = Program::find(path.as_os_str()).unwrap();
    let handler = ExecHandler::new("program", "1".parse().unwrap(), program, quick());
    let said = handler.check().await.unwrap_err().to_string();
    assert!(
        said.contains("exited with 127") && said.contains("cannot be run: No such file"),
        "{said}"
    );
}
