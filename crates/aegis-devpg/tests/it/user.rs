//! Never root, and closed to other users.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use aegis_devpg::{Options, Server};
use nix::unistd::{User, geteuid};

use crate::helper::{self, Helper};
use crate::support::{ask, open_folder, root_or_skip};

#[test]
fn no_process_of_the_server_is_roots_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let pid = server.postmaster_pid().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let numbers = |name: &str| -> Vec<u32> {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .skip(1)
            .map(|number| number.parse().unwrap())
            .collect()
    };
    for ids in [numbers("Uid:"), numbers("Gid:")] {
        assert!(!ids.contains(&0), "{status}");
    }
    assert!(!numbers("Groups:").contains(&0), "{status}");
    match server.run_as() {
        Some(name) => {
            let user = User::from_name(name).unwrap().unwrap();
            assert_eq!(numbers("Uid:")[0], user.uid.as_raw());
        }
        None => assert!(!geteuid().is_root()),
    }
}

#[test]
fn another_user_cannot_get_at_the_socket_process() {
    if !root_or_skip("another_user", "becoming another user needs root") {
        return;
    }
    let server = Server::start(&Options::for_tests()).unwrap();
    let mode = fs::metadata(server.socket_dir())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let nobody = User::from_name("nobody").unwrap().unwrap();
    let socket = server
        .socket_dir()
        .join(format!(".s.PGSQL.{}", server.port()));
    assert!(socket.exists());
    let seen = Command::new("test")
        .arg("-e")
        .arg(&socket)
        .uid(nobody.uid.as_raw())
        .gid(nobody.gid.as_raw())
        .status()
        .unwrap();
    assert!(!seen.success());
}

#[test]
fn an_ordinary_user_stays_itself_process() {
    if !root_or_skip("an_ordinary_user", "becoming another user needs root") {
        return;
    }
    let temp = open_folder();
    let nobody = User::from_name("nobody").unwrap().unwrap();
    let mut command = helper::command("serve");
    command
        .uid(nobody.uid.as_raw())
        .gid(nobody.gid.as_raw())
        .current_dir("/")
        .env("TMPDIR", temp.path())
        .env("HOME", "/nonexistent");
    let mut helper = Helper::run(command);
    assert_eq!(ask(&helper.hear(), "select 1").unwrap(), "1");
    let said = helper.hear();
    assert!(said.starts_with("None"), "{said}");
    helper.end();
}
