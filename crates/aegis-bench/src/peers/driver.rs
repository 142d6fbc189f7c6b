//! A driver process: started with a command, heard by its JSON lines, ended by a line or a signal.
//!
//! Invariants: who waits for an event misses none that came before; a wait has a bound; a driver that is dropped is ended.
//! Never: end anything else.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;

/// Of what a process said beside its events, this much is kept.
const SAID_LINES_MAX: usize = 200;

/// How a peer's driver is started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// What was heard of a process.
#[derive(Debug, Default)]
struct Heard {
    events: Vec<Value>,
    said: Vec<String>,
    /// Pipes that are still open.
    open: usize,
}

/// A running driver.
#[derive(Debug)]
pub(crate) struct Driver {
    what: String,
    child: Child,
    input: Option<ChildStdin>,
    heard: watch::Receiver<Heard>,
}

impl Driver {
    /// Starts a command.
    pub(crate) fn start(
        program: &Program,
        url: &str,
        command: &str,
        arguments: &Value,
    ) -> anyhow::Result<Self> {
        let what = format!("{} {command}", program.path.display());
        let mut child = tokio::process::Command::new(&program.path)
            .args(&program.arguments)
            .arg(command)
            .arg(arguments.to_string())
            .env("DATABASE_URL", url)
            .env_remove("PGDATABASE")
            .envs(program.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{what} cannot be started"))?;
        let (sender, heard) = watch::channel(Heard {
            open: 2,
            ..Heard::default()
        });
        let input = child.stdin.take();
        if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
            tokio::spawn(listen(out, sender.clone()));
            tokio::spawn(listen(err, sender));
        }
        Ok(Self {
            what,
            child,
            input,
            heard,
        })
    }

    /// The first event of a name, when it comes within the time and before the process ends.
    pub(crate) async fn heard(&self, name: &str, within: Duration) -> Option<Value> {
        let mut heard = self.heard.clone();
        let waiting = heard.wait_for(|heard| find(heard, name).is_some() || heard.open == 0);
        match tokio::time::timeout(within, waiting).await {
            Ok(Ok(heard)) => find(&heard, name).cloned(),
            Ok(Err(_)) | Err(_) => find(&self.heard.borrow(), name).cloned(),
        }
    }

    /// As `heard`, where its absence is an error.
    pub(crate) async fn await_event(&self, name: &str, within: Duration) -> anyhow::Result<Value> {
        match self.heard(name, within).await {
            Some(event) => Ok(event),
            None => bail!(
                "{}: no `{name}` within {} s{}",
                self.what,
                within.as_secs(),
                self.tail()
            ),
        }
    }

    /// All events of a name so far.
    pub(crate) fn all(&self, name: &str) -> Vec<Value> {
        let heard = self.heard.borrow();
        heard
            .events
            .iter()
            .filter(|event| event["ev"] == name)
            .cloned()
            .collect()
    }

    /// What it said beside its events.
    pub(crate) fn said(&self) -> Vec<String> {
        self.heard.borrow().said.clone()
    }

    /// Whether it runs, or how it ended.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends a line.
    pub(crate) async fn say(&mut self, line: &str) -> anyhow::Result<()> {
        if let Some(input) = &mut self.input {
            input.write_all(format!("{line}\n").as_bytes()).await?;
            input.flush().await?;
        }
        Ok(())
    }

    /// Sends a signal, when it runs.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        if let Some(pid) = self.child.id() {
            nix::sys::signal::kill(Pid::from_raw(i32::try_from(pid)?), signal)?;
        }
        Ok(())
    }

    /// SIGKILL, and until it is gone.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Until it has ended by itself, well.
    pub(crate) async fn finish(mut self, within: Duration) -> anyhow::Result<Self> {
        let Ok(status) = tokio::time::timeout(within, self.child.wait()).await else {
            self.kill().await?;
            bail!(
                "{}: not done within {} s{}",
                self.what,
                within.as_secs(),
                self.tail()
            );
        };
        self.silence().await;
        let status = status?;
        if !status.success() {
            bail!("{}: {status}{}", self.what, self.tail());
        }
        Ok(self)
    }

    /// Asks it to end, and ends it when it does not.
    pub(crate) async fn stop(mut self, within: Duration) -> anyhow::Result<Self> {
        // Who has ended already cannot hear it.
        self.say("stop").await.ok();
        self.input = None;
        if tokio::time::timeout(within, self.child.wait())
            .await
            .is_err()
        {
            self.kill().await?;
        }
        self.silence().await;
        Ok(self)
    }

    /// Until its pipes are read to their ends; a child of its own can hold them open.
    async fn silence(&mut self) {
        let closed = self.heard.wait_for(|heard| heard.open == 0);
        tokio::time::timeout(Duration::from_secs(2), closed)
            .await
            .ok();
    }

    /// The end of what it said, for an error.
    fn tail(&self) -> String {
        let said = self.said();
        let last = said.iter().skip(said.len().saturating_sub(15));
        last.fold(String::new(), |all, line| format!("{all}\n    {line}"))
    }
}

fn find<'a>(heard: &'a Heard, name: &str) -> Option<&'a Value> {
    heard.events.iter().find(|event| event["ev"] == name)
}

/// Reads one pipe to its end.
async fn listen(pipe: impl AsyncRead + Unpin, heard: watch::Sender<Heard>) {
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        heard.send_modify(|heard| match event(&line) {
            Some(event) => heard.events.push(event),
            None if heard.said.len() < SAID_LINES_MAX && !line.trim().is_empty() => {
                heard.said.push(line);
            }
            None => {}
        });
    }
    heard.send_modify(|heard| heard.open -= 1);
}

/// A line that is an event: an object with the name `ev`.
fn event(line: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    value.get("ev")?.is_string().then_some(value)
}

#[cfg(test)]
mod tests {
    //! What is an event, and a process that says both.

    use std::time::Duration;

    use serde_json::json;

    use super::{Driver, Program, event};

    #[test]
    fn only_objects_with_a_name_are_events() {
        assert_eq!(
            event("{\"ev\": \"a\", \"t\": 1}"),
            Some(json!({"ev": "a", "t": 1}))
        );
        for line in ["", "ev", "{}", "{\"ev\": 1}", "[\"ev\"]", "{\"ev\": \"a\""] {
            assert_eq!(event(line), None, "{line}");
        }
    }

    fn shell(script: &str) -> Driver {
        let program = Program {
            path: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: Vec::new(),
        };
        Driver::start(&program, "postgresql://nowhere", "worker", &json!({})).unwrap()
    }

    #[tokio::test]
    async fn a_process_is_heard_and_ends_at_a_line() {
        let mut driver = shell(
            "echo '{\"ev\": \"ready\", \"t\": 7}'; echo words; read line; echo \"{\\\"ev\\\": \\\"$line\\\"}\"",
        );
        let ready = driver
            .await_event("ready", Duration::from_secs(10))
            .await
            .unwrap();
        assert_eq!(ready["t"], 7);
        assert!(driver.ended().unwrap().is_none());
        let driver = driver.stop(Duration::from_secs(10)).await.unwrap();
        assert_eq!(driver.all("stop").len(), 1);
        assert_eq!(driver.said(), ["words"]);
    }

    #[tokio::test]
    async fn a_process_that_fails_is_an_error_with_its_last_words() {
        let failed = shell("echo no schema >&2; exit 3")
            .finish(Duration::from_secs(10))
            .await;
        let text = failed.unwrap_err().to_string();
        assert!(
            text.contains("exit status: 3") && text.contains("no schema"),
            "{text}"
        );
        let silent = shell("exit 0")
            .await_event("ready", Duration::from_secs(10))
            .await;
        assert!(silent.unwrap_err().to_string().contains("no `ready`"));
    }
}
