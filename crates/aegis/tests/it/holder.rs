//! The holder of the demo's processes: words become signals, the end of its input becomes the end of its child.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use aegis_testkit::{process_slot, wait_until};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::support::{BOUND, command};

/// A holder whose child is killed with its test.
struct Holder(Child, Pid);

impl Drop for Holder {
    fn drop(&mut self) {
        // While the holder runs, the number is its child's.
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            killpg(self.1, Signal::SIGKILL).ok();
            self.0.wait().ok();
        }
    }
}

/// A held command; its id is the first thing said.
fn held(words: &[&str]) -> (Holder, Pid) {
    let mut all = vec!["demo", "hold", "--"];
    all.extend(words);
    let mut holder = command(None, &all)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let pid = Pid::from_raw(line.trim().strip_prefix("pid ").unwrap().parse().unwrap());
    (Holder(holder, pid), pid)
}

fn is_there(pid: Pid) -> bool {
    kill(pid, None).is_ok()
}

/// The one-letter state of a process.
fn state(pid: Pid) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn process_a_frozen_child_is_ended_with_the_demo() {
    let _slot = process_slot();
    let (mut holder, pid) = held(&["sleep", "600"]);
    let mut words = holder.0.stdin.take().unwrap();
    words.write_all(b"stop\n").unwrap();
    wait_until("the child is frozen", BOUND, async || state(pid) == "T").await;
    words.write_all(b"cont\n").unwrap();
    wait_until("the child is thawed", BOUND, async || state(pid) != "T").await;
    words.write_all(b"stop\n").unwrap();
    wait_until("the child is frozen again", BOUND, async || {
        state(pid) == "T"
    })
    .await;
    // The end of the demo, however it comes.
    drop(words);
    let mut status = None;
    wait_until("the holder has ended", BOUND, async || {
        status = holder.0.try_wait().unwrap();
        status.is_some()
    })
    .await;
    let status = status.unwrap();
    assert_eq!(status.code(), Some(128 + 9));
    assert!(!is_there(pid));
}

#[tokio::test]
async fn process_the_holder_ends_as_its_child_does() {
    let _slot = process_slot();
    let (mut holder, _) = held(&["sh", "-c", "exit 42"]);
    let _words = holder.0.stdin.take();
    assert_eq!(holder.0.wait().unwrap().code(), Some(42));
    let (mut holder, pid) = held(&["sleep", "600"]);
    holder
        .0
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"nonsense\nterm\n")
        .unwrap();
    assert_eq!(holder.0.wait().unwrap().code(), Some(128 + 15));
    assert!(!is_there(pid));
}
