//! Runs the binary on a database of the test's own.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use aegis_testkit::TestDb;
use serde_json::Value;

/// The built binary.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_aegis");

/// A database with the engine's schema, and the binary that is pointed at it.
pub(crate) struct Place {
    pub(crate) db: TestDb,
    pub(crate) url: String,
}

/// What a run of the binary left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let db = TestDb::new().await;
        let url = with_named(&db.url_as("aegis_engine"));
        Self { db, url }
    }

    /// A command with the database in its environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        command(Some(&self.url), words)
    }

    /// Runs it to its end.
    pub(crate) async fn run(&self, words: &[&str]) -> Ran {
        run(self.command(words)).await
    }

    /// Runs it, wants success, and reads what it printed as JSON.
    pub(crate) async fn json(&self, words: &[&str]) -> Value {
        let mut all = words.to_vec();
        all.extend(["--output", "json"]);
        let ran = self.run(&all).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
        assert_eq!(
            ran.stdout.lines().count(),
            1,
            "one document on one line: {ran:?}"
        );
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Submits a task and gives its id.
    pub(crate) async fn submit(&self, words: &[&str]) -> String {
        let mut all = vec!["task", "submit"];
        all.extend(words);
        self.json(&all).await["id"].as_str().unwrap().to_owned()
    }

    /// A task that waits for a person, with an operation that is unknown; gives both ids.
    pub(crate) async fn unknown_operation(&self) -> (String, String) {
        let task = self.submit(&["pay", "--input", "{}"]).await;
        let operation = format!("{task}/notify/O-1/v1");
        self.db
            .admin
            .batch_execute(&format!(
                "UPDATE aegis.task SET state = 4, open_ops = 1, epoch = 1 WHERE id = '{task}';
                 INSERT INTO aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch, timeout_ms,
                     quiet_ms, first_dispatched_at, dispatched_at, fingerprint, request, note)
                 SELECT id, '{operation}', tenant, 'notify', 'O-1', 3, 4, 1, 1, 1, 600, 0, clock_timestamp(), clock_timestamp(),
                     '\\x00', '{{\"to\": \"ada\"}}', 'its answer was lost' FROM aegis.task WHERE id = '{task}'"
            ))
            .await
            .unwrap();
        (task, operation)
    }
}

/// A command of the binary, with nothing of the test's own environment that it would listen to.
pub(crate) fn command(url: Option<&str>, words: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(words).stdin(Stdio::null());
    let kept = ["AEGIS_PG_BIN", "AEGIS_MAVEN_URL"];
    let settings = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in settings.filter(|name| name.starts_with("AEGIS_") && !kept.contains(&name.as_str()))
    {
        command.env_remove(name);
    }
    command
        .env_remove("NO_COLOR")
        .env("XDG_CONFIG_HOME", "/nonexistent");
    if let Some(url) = url {
        command.env("AEGIS_DATABASE_URL", url);
    }
    command
}

/// Runs a command to its end, beside the test's runtime.
pub(crate) async fn run(mut command: Command) -> Ran {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    ran(&output)
}

pub(crate) fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn with_named(url: &str) -> String {
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}statements=named")
}

/// What a wait of a test may take on a machine that is busy.
pub(crate) const BOUND: Duration = Duration::from_secs(30);
