//! The guide "write your first handler", followed to the letter: its files are those of the example crate, and its commands are
//! run as they stand there.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use aegis_testkit::process_slot;

use crate::support::BINARY;

/// A cold build of the example on two busy cores.
const BUILT_WITHIN: Duration = Duration::from_mins(15);

/// A block of the guide.
#[derive(Debug)]
struct Block {
    /// `sh`, `rust`, …
    language: String,
    /// What the comment before it says: `file: PATH` or `printed`.
    mark: Option<String>,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example() -> PathBuf {
    root().join("examples/first-handler")
}

fn guide() -> Vec<Block> {
    let text = std::fs::read_to_string(root().join("docs/guides/first-handler.md")).unwrap();
    let mut blocks = Vec::new();
    let mut mark = None;
    let mut open: Option<Block> = None;
    for line in text.lines() {
        if let Some(mut block) = open.take() {
            if line == "```" {
                blocks.push(block);
            } else {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
        } else if let Some(language) = line.strip_prefix("```") {
            open = Some(Block {
                language: language.to_owned(),
                mark: mark.take(),
                text: String::new(),
            });
        } else if let Some(comment) = line.strip_prefix("<!-- ") {
            mark = comment.strip_suffix(" -->").map(str::to_owned);
        }
    }
    assert!(open.is_none(), "a block of the guide does not end");
    blocks
}

#[test]
fn every_file_of_the_guide_is_the_examples() {
    let mut seen = Vec::new();
    for block in guide() {
        let Some(path) = block
            .mark
            .as_deref()
            .and_then(|mark| mark.strip_prefix("file: "))
        else {
            assert!(
                ["sh", "text"].contains(&block.language.as_str()),
                "no file is named for {block:?}"
            );
            continue;
        };
        let file = std::fs::read_to_string(example().join(path)).unwrap();
        // The reader's crate stands beside the repository, the example inside of it.
        let file = file.replace("\"../../crates/", "\"../aegis/crates/");
        let mut rest = file.as_str();
        // Left out is only what stands between paragraphs.
        for paragraph in block.text.split("\n\n") {
            let paragraph = paragraph.trim_end();
            let at = rest
                .find(paragraph)
                .unwrap_or_else(|| panic!("{path} does not have, in this order:\n{paragraph}"));
            rest = &rest[at + paragraph.len()..];
        }
        seen.push(path.to_owned());
    }
    assert_eq!(
        seen,
        [
            "Cargo.toml",
            "src/lib.rs",
            "tests/charge.rs",
            "src/main.rs",
            "src/v2.rs",
            "tests/protocol.rs"
        ]
    );
}

/// A command of the guide, as its reader's shell runs it.
fn shell(text: &str, folder: &Path, home: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let binaries = Path::new(BINARY).parent().unwrap().display();
    let target = Path::new(BINARY).parent().unwrap().parent().unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-ec", text])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("PATH", format!("{binaries}:{path}"))
        .env("XDG_STATE_HOME", home)
        .env("XDG_CONFIG_HOME", home)
        // What was built and fetched for the repository is there already.
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_NET_OFFLINE", "true");
    for name in [
        "AEGIS_DATABASE_URL",
        "CARGO_MANIFEST_DIR",
        "RUSTFLAGS",
        "RUST_LOG",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs one to its end; gives everything that it printed.
fn run(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "{command:?}: {}\n{text}",
        output.status
    );
    text
}

/// Something that runs in a terminal of its own.
struct Terminal {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Terminal {
    fn open(mut command: Command) -> Self {
        // Both in one, as on a terminal.
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let child = command.spawn().unwrap();
        drop(command);
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that has `part`.
    fn line(&self, part: &str, within: Duration) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(within) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("no line with `{part}`: {error}; there were {before:#?}"),
            }
        }
    }

    /// Ctrl-C; and it has to end well.
    fn end(mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn process_the_guides_commands_do_what_it_says() {
    let home = tempfile::tempdir().unwrap();
    let blocks = guide();
    let mut commands = blocks.iter().filter(|block| block.language == "sh");
    let mut next = |begins: &str| {
        let block = commands
            .next()
            .unwrap_or_else(|| panic!("no block `{begins}`"));
        assert!(
            block.text.starts_with(begins),
            "{block:?} is not `{begins}`"
        );
        // `exec`, so that what is ended is the command and not its shell.
        let lines = block.text.trim_end().lines().count();
        let exec = if lines == 1 { "exec " } else { "" };
        format!("{exec}{}", block.text)
    };

    // 1. What the reader starts with has the files that the guide then replaces or adds to.
    run(shell(&next("cargo new"), home.path(), home.path()));
    let made = home.path().join("first-handler");
    assert!(made.join("Cargo.toml").is_file() && made.join("src/main.rs").is_file());

    // 3. The test, built with the versions of the repository.
    std::fs::copy(root().join("Cargo.lock"), example().join("Cargo.lock")).unwrap();
    let printed = run(shell(&next("cargo test"), &example(), home.path()));
    let table = blocks
        .iter()
        .find(|block| block.mark.as_deref() == Some("printed"));
    for line in table.unwrap().text.lines() {
        assert!(
            printed.lines().any(|other| other == line),
            "not printed: {line}\n{printed}"
        );
    }

    // 4. In three terminals. The build above needs no slot.
    let _slot = process_slot();
    let dev = Terminal::open(shell(&next("aegis dev"), home.path(), home.path()));
    let export = dev.line("export AEGIS_DATABASE_URL=", Duration::from_mins(2));
    let url = export.split('\'').nth(1).unwrap();
    let mut command = shell(&next("cargo run"), &example(), home.path());
    command.env("AEGIS_DATABASE_URL", url);
    let worker = Terminal::open(command);
    worker.line("waits for orders", BUILT_WITHIN);
    let submit = next("aegis task submit");
    let mut command = shell(&submit, home.path(), home.path());
    command.env("AEGIS_DATABASE_URL", url);
    let printed = run(command);
    assert!(printed.contains("receipt for 7"), "{printed}");
    let charged = worker.line("charges ", Duration::from_secs(30));
    assert!(
        charged.starts_with("charges 1500 cents under the key ")
            && charged.ends_with("/charge/7/v1"),
        "{charged}"
    );
    // Again: the same task.
    let mut command = shell(&submit, home.path(), home.path());
    command.env("AEGIS_DATABASE_URL", url);
    assert!(run(command).contains("receipt for 7"));
    worker.end();
    dev.end();
    assert!(
        commands.next().is_none(),
        "a command of the guide was not run"
    );
}
