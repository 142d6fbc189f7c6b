//! A server in ordinary use: start, ask, restart, crash, end.

use aegis_devpg::{Data, Options, Server};

use crate::support::{ask, eventually, processes_of};

#[test]
fn a_temporary_server_answers_and_leaves_nothing_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let url = server.url(server.superuser(), "postgres");
    assert_eq!(ask(&url, "select 1").unwrap(), "1");
    assert_eq!(ask(&url, "show fsync").unwrap(), "off");
    assert_eq!(ask(&url, "show server_encoding").unwrap(), "UTF8");
    assert_eq!(ask(&url, "show listen_addresses").unwrap(), "");
    let root = server.data_dir().parent().unwrap().to_path_buf();
    let pid = server.postmaster_pid().unwrap();
    assert!(!processes_of(&root).is_empty());
    server.stop();
    assert!(!root.exists(), "{} is left", root.display());
    assert_eq!(
        processes_of(&root),
        Vec::<String>::new(),
        "postmaster {pid}"
    );
}

#[test]
fn kept_data_outlive_the_server_process() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let options = Options {
        data: Data::Kept(folder.path().join("with space")),
        ..Options::for_tests()
    };
    let server = Server::start(&options).unwrap();
    let url = server.url("postgres", "postgres");
    ask(&url, "create table kept as select 42 as n").unwrap();
    server.stop();
    assert!(ask(&url, "select 1").is_err());
    let server = Server::start(&options).unwrap();
    assert_eq!(
        ask(&server.url("postgres", "postgres"), "select n from kept").unwrap(),
        "42"
    );
}

#[test]
fn restart_and_crash_keep_committed_rows_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let url = server.url("postgres", "postgres");
    ask(&url, "create table t as select 7 as n").unwrap();
    let first = server.postmaster_pid().unwrap();
    server.restart().unwrap();
    let second = server.postmaster_pid().unwrap();
    assert_ne!(first, second);
    assert_eq!(ask(&url, "select n from t").unwrap(), "7");
    server.crash().unwrap();
    assert!(server.check().unwrap_err().to_string().contains("SIGKILL"));
    assert!(server.postmaster_pid().is_none());
    server.restart().unwrap();
    server.check().unwrap();
    assert_eq!(ask(&url, "select n from t").unwrap(), "7");
}

#[test]
fn a_server_that_ends_by_itself_is_told_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let pid = server.postmaster_pid().unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    eventually("the end is noticed", 20, || server.check().is_err());
    let said = server.check().unwrap_err().to_string();
    assert!(
        said.contains("exit status 0") && said.contains("fast shutdown"),
        "{said}"
    );
}

#[test]
fn tcp_asks_for_a_password() {
    let options = Options {
        tcp_port: Some(0),
        ..Options::for_tests()
    };
    let server = Server::start(&options).unwrap();
    let url = server.tcp_url("postgres").unwrap();
    assert_eq!(ask(&url, "select 5").unwrap(), "5");
    let (_, host) = url.split_once('@').unwrap();
    assert!(ask(&format!("postgresql://postgres@{host}"), "select 1").is_err());
    assert!(ask(&format!("postgresql://postgres:x@{host}"), "select 1").is_err());
}
