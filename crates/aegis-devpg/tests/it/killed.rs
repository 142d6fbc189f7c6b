//! The server ends with its parent, however the parent ends: SIGKILL during initdb, the start
//! and the run, under each shell of the machine, and with the watchdog itself killed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use aegis_devpg::{Data, Options, Server};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpgid};

use crate::helper::{self, Helper};
use crate::support::{ask, eventually, only_entry, open_folder, processes_of, signal};

/// The pid and whether it is ready, from the pid file of a server whose root is in `temp`.
fn postmaster(temp: &Path) -> Option<(i32, bool)> {
    let root = only_entry(temp)?;
    let text = fs::read_to_string(root.join("data/postmaster.pid")).ok()?;
    let pid = text.lines().next()?.parse().ok()?;
    let ready = text
        .lines()
        .nth(7)
        .is_some_and(|line| line.trim() == "ready");
    Some((pid, ready))
}

fn nothing_is_left(temp: &Path) {
    eventually(
        &format!("{} is empty and has no process", temp.display()),
        40,
        || only_entry(temp).is_none() && processes_of(temp).is_empty(),
    );
}

#[test]
fn the_parent_killed_during_initdb_process() {
    let temp = open_folder();
    let mut helper = Helper::serve(temp.path(), None);
    let mut root = PathBuf::new();
    eventually("initdb writes", 30, || {
        root = only_entry(temp.path()).unwrap_or_default();
        root.join("data.new/base").exists()
    });
    helper.kill();
    assert!(!root.join("data").exists(), "initdb was over: no proof");
    nothing_is_left(temp.path());
}

#[test]
fn the_parent_killed_during_the_start_process() {
    let temp = open_folder();
    // The window is short, so it is held open: the postmaster is frozen in it.
    let frozen = (0..20).find_map(|_| {
        let helper = Helper::serve(temp.path(), None);
        let mut pid = 0;
        eventually("postgres starts", 30, || {
            pid = postmaster(temp.path()).map_or(0, |(pid, _)| pid);
            pid != 0
        });
        signal(pid, Signal::SIGSTOP);
        if postmaster(temp.path()) == Some((pid, false)) {
            return Some((helper, pid));
        }
        signal(pid, Signal::SIGCONT);
        helper.end();
        nothing_is_left(temp.path());
        None
    });
    let (mut helper, pid) = frozen.unwrap();
    helper.kill();
    signal(pid, Signal::SIGCONT);
    nothing_is_left(temp.path());
}

#[test]
fn the_parent_killed_during_the_run_process() {
    let temp = open_folder();
    let mut helper = Helper::serve(temp.path(), None);
    assert_eq!(ask(&helper.hear(), "select 1").unwrap(), "1");
    helper.kill();
    nothing_is_left(temp.path());
}

#[test]
fn a_postmaster_that_obeys_nothing_is_killed_process() {
    // A stand-in, since a real one obeys, and a frozen one is thawed by the system when its group
    // is orphaned.
    let (temp, bin) = (open_folder(), open_folder());
    let real = aegis_devpg::find_binaries(None).unwrap().bin;
    let deaf = format!(
        "#!/bin/sh\n[ \"$1\" = -V ] && exec '{0}/postgres' -V\ntrap '' TERM INT QUIT\n\
         touch '{1}/deaf'\nwhile :; do sleep 0.2; done\n",
        real.display(),
        bin.path().display()
    );
    let initdb = format!("#!/bin/sh\nexec '{}/initdb' \"$@\"\n", real.display());
    for (name, script) in [("postgres", deaf), ("initdb", initdb)] {
        let path = bin.path().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = helper::command("serve");
    command
        .env("TMPDIR", temp.path())
        .env("AEGIS_PG_BIN", bin.path());
    let mut helper = Helper::run(command);
    eventually("it runs", 30, || bin.path().join("deaf").exists());
    helper.kill();
    nothing_is_left(temp.path());
}

#[test]
fn the_parent_killed_under_each_shell_process() {
    for shell in ["dash", "bash", "busybox", "mksh", "ksh93"] {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$1\"", "sh", shell])
            .output()
            .unwrap();
        let path = String::from_utf8(found.stdout).unwrap();
        if path.trim().is_empty() {
            continue;
        }
        let (temp, bin) = (open_folder(), open_folder());
        symlink(path.trim(), bin.path().join("sh")).unwrap();
        let mut command = helper::command("serve");
        let paths = std::env::var("PATH").unwrap();
        command
            .env("TMPDIR", temp.path())
            .env("PATH", format!("{}:{paths}", bin.path().display()));
        let mut helper = Helper::run(command);
        assert_eq!(ask(&helper.hear(), "select 1").unwrap(), "1", "{shell}");
        helper.kill();
        nothing_is_left(temp.path());
    }
}

#[test]
fn kept_data_survive_and_can_be_used_at_once_process() {
    let (temp, kept) = (open_folder(), open_folder());
    let root = kept.path().join("data of dev");
    let mut helper = Helper::serve(temp.path(), Some(&root));
    ask(&helper.hear(), "create table t as select 3 as n").unwrap();
    helper.kill();
    let options = Options {
        data: Data::Kept(root),
        ..Options::for_tests()
    };
    let server = Server::start(&options).unwrap();
    let rows = ask(&server.url("postgres", "postgres"), "select n from t");
    assert_eq!(rows.unwrap(), "3");
}

#[test]
fn a_kept_folder_whose_initdb_was_cut_short_starts_again_process() {
    let (temp, kept) = (open_folder(), open_folder());
    let root = kept.path().join("kept");
    let mut helper = Helper::serve(temp.path(), Some(&root));
    eventually("initdb writes", 30, || root.join("data.new/base").exists());
    helper.kill();
    assert!(!root.join("data").exists(), "initdb was over: no proof");
    let options = Options {
        data: Data::Kept(root.clone()),
        ..Options::for_tests()
    };
    let server = Server::start(&options).unwrap();
    assert!(!root.join("data.new").exists());
    assert_eq!(
        ask(&server.url("postgres", "postgres"), "select 1").unwrap(),
        "1"
    );
}

#[test]
fn the_watchdog_killed_and_then_the_parent_process() {
    let temp = open_folder();
    let mut helper = Helper::serve(temp.path(), None);
    helper.hear();
    let (pid, _) = postmaster(temp.path()).unwrap();
    signal(parent_of(pid), Signal::SIGKILL);
    helper.kill();
    nothing_is_left(temp.path());
}

#[test]
fn ctrl_c_in_the_terminal_does_not_reach_the_server_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let group = |pid| getpgid(pid).unwrap();
    let postmaster = Pid::from_raw(server.postmaster_pid().unwrap());
    assert_ne!(group(Some(postmaster)), group(None));
    // And one that reaches the watchdog's group all the same ends nothing but the server.
    let watchdog = parent_of(postmaster.as_raw());
    signal(watchdog, Signal::SIGINT);
    signal(watchdog, Signal::SIGHUP);
    server.restart().unwrap();
    assert_eq!(parent_of(server.postmaster_pid().unwrap()), watchdog);
}

fn parent_of(pid: i32) -> i32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("PPid:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
