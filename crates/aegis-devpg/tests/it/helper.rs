//! A parent to kill: this test binary run again as a process that holds a server.
//!
//! It is told what to do by environment variables and answers on standard output, one line
//! `helper: …` for each thing that happened.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use aegis_devpg::{Data, Options, Server};

const TODO: &str = "AEGIS_DEVPG_HELPER";
const KEPT: &str = "AEGIS_DEVPG_HELPER_KEPT";

/// What the process does. As a test of its own it does nothing.
#[test]
fn helper_process() {
    match std::env::var(TODO).as_deref() {
        Ok("serve") => serve(),
        Ok("fetch") => match aegis_devpg::fetch_binaries() {
            Ok(binaries) => say(binaries.bin.to_str().unwrap()),
            Err(error) => say(&format!("error {error:?}: {error}").replace('\n', " ")),
        },
        Ok("dev-folder") => {
            let folder = aegis_devpg::default_dev_folder().unwrap();
            say(folder.path.to_str().unwrap());
            say(folder.note.as_deref().unwrap_or("no note"));
        }
        _ => {}
    }
}

fn serve() {
    let kept = std::env::var_os(KEPT).map(PathBuf::from);
    let options = Options {
        data: kept.map_or(Data::Temporary, Data::Kept),
        ..Options::for_tests()
    };
    match Server::start(&options) {
        Ok(server) => {
            say(&server.url("postgres", "postgres"));
            say(&format!("{:?} {}", server.run_as(), server.version().1));
            // Until the test closes the pipe, or kills.
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        Err(error) => say(&format!("error {error}").replace('\n', " ")),
    }
}

fn say(text: &str) {
    // Past the harness, and on a line of its own.
    let line = format!("\nhelper: {text}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// A command that runs the helper; environment and user can still be set.
pub(crate) fn command(todo: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "helper::helper_process", "--nocapture"])
        .env(TODO, todo)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// A running helper, killed with the test.
pub(crate) struct Helper {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Helper {
    /// One that serves, with temporary folders in `temp`, and kept data when there is a folder.
    pub(crate) fn serve(temp: &Path, kept: Option<&Path>) -> Self {
        let mut command = command("serve");
        command.env("TMPDIR", temp);
        if let Some(kept) = kept {
            command.env(KEPT, kept);
        }
        Self::run(command)
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, said }
    }

    /// What it says next; panics when it has ended.
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            if let Some(text) = line.strip_prefix("helper: ") {
                return text.trim_end().to_owned();
            }
            line.clear();
        }
        panic!("the helper ended without a word");
    }

    pub(crate) fn kill(&mut self) {
        // `Child::kill` is SIGKILL.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it end in order.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
