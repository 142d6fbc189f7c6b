//! A second start beside the first, and pid files that do not tell the truth.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use aegis_devpg::{Data, Error, Options, Server};

use crate::helper::Helper;
use crate::support::{ask, eventually, open_folder};

fn kept(root: &Path) -> Options {
    Options {
        data: Data::Kept(root.to_path_buf()),
        ..Options::for_tests()
    }
}

/// A folder with data and no server, and the ids of its owner.
fn ended(root: &Path) -> (u32, u32) {
    Server::start(&kept(root)).unwrap().stop();
    let owner = fs::metadata(root).unwrap();
    (owner.uid(), owner.gid())
}

/// What a postmaster with this pid would have left.
fn write_pid_file(root: &Path, pid: u32) {
    let data = root.join("data");
    let text = format!(
        "{pid}\n{}\n1764450000\n5432\n\n\n  1 1\nready   \n",
        data.display()
    );
    fs::write(data.join("postmaster.pid"), text).unwrap();
}

#[test]
fn a_second_start_is_told_how_to_reach_the_first_process() {
    let folder = open_folder();
    let root = folder.path().join("kept");
    let first = Server::start(&kept(&root)).unwrap();
    let asked = Instant::now();
    let error = Server::start(&kept(&root)).unwrap_err();
    assert!(
        asked.elapsed().as_secs() < 15,
        "it waited for a server that runs"
    );
    let Error::AlreadyRunning { pid, url, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*pid, first.postmaster_pid());
    assert_eq!(ask(url, "select 9").unwrap(), "9");
    assert!(error.to_string().contains(url), "{error}");
    first.check().unwrap();
}

#[test]
fn a_second_start_during_the_first_ones_initdb_process() {
    let (temp, folder) = (open_folder(), open_folder());
    let root = folder.path().join("kept");
    let mut first = Helper::serve(temp.path(), Some(&root));
    eventually("initdb writes", 30, || root.join("data.new").exists());
    let error = Server::start(&kept(&root)).unwrap_err();
    assert!(matches!(error, Error::AlreadyRunning { .. }), "{error:?}");
    assert_eq!(ask(&first.hear(), "select 1").unwrap(), "1");
}

#[test]
fn a_pid_file_of_a_dead_process_does_not_hinder_process() {
    let folder = open_folder();
    let root = folder.path().join("kept");
    ended(&root);
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    write_pid_file(&root, dead.id());
    let server = Server::start(&kept(&root)).unwrap();
    assert_eq!(
        ask(&server.url("postgres", "postgres"), "select 1").unwrap(),
        "1"
    );
}

#[test]
fn a_pid_file_whose_number_is_anothers_now_is_set_aside_process() {
    let folder = open_folder();
    let root = folder.path().join("kept");
    let (uid, gid) = ended(&root);
    // Of the same user: PostgreSQL alone would refuse to start.
    let mut sleep = Command::new("sleep");
    sleep.arg("600").current_dir("/").stdin(Stdio::null());
    if nix::unistd::geteuid().is_root() {
        sleep.uid(uid).gid(gid);
    }
    let mut other = sleep.spawn().unwrap();
    write_pid_file(&root, other.id());
    let started = Server::start(&kept(&root));
    let lives = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    let server = started.unwrap();
    assert!(lives, "the other process was ended");
    assert_eq!(
        ask(&server.url("postgres", "postgres"), "select 1").unwrap(),
        "1"
    );
    assert!(root.join("data/postmaster.pid.stale").exists());
}

/// A postgres that this crate knows nothing of, ended with the test.
struct Foreign(Child);

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let pid = i32::try_from(self.0.id()).unwrap();
            crate::support::signal(pid, nix::sys::signal::Signal::SIGINT);
            self.0.wait().ok();
        }
    }
}

#[test]
fn a_server_started_by_other_means_is_left_alone_process() {
    let folder = open_folder();
    let root = folder.path().join("kept");
    let (uid, gid) = ended(&root);
    let binaries = aegis_devpg::find_binaries(None).unwrap();
    let mut postgres = Command::new(binaries.bin.join("postgres"));
    postgres
        .arg("-D")
        .arg(root.join("data"))
        .args(["-c", "listen_addresses=", "-k"])
        .arg(root.join("socket"))
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if nix::unistd::geteuid().is_root() {
        postgres.uid(uid).gid(gid);
    }
    let mut foreign = Foreign(postgres.spawn().unwrap());
    let pid = i32::try_from(foreign.0.id()).unwrap();
    let file = root.join("data/postmaster.pid");
    eventually("it is ready", 30, || {
        fs::read_to_string(&file).is_ok_and(|text| text.contains("ready"))
    });
    let error = Server::start(&kept(&root)).unwrap_err();
    assert!(foreign.0.try_wait().unwrap().is_none(), "it was ended");
    assert!(
        matches!(error, Error::AlreadyRunning { pid: Some(told), .. } if told == pid),
        "{error:?}"
    );
}
