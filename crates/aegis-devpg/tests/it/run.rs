//! A server in ordinary use: start, ask, restart, crash, end.

use std::path::Path;

use aegis_devpg::{Data, Options, Server};
use nix::sys::signal::Signal;

use crate::support::{ask, eventually, open_folder, processes_of, signal};

#[test]
fn a_temporary_server_answers_and_leaves_nothing_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let url = server.url(server.superuser(), "postgres");
    assert_eq!(ask(&url, "select 1").unwrap(), "1");
    assert_eq!(ask(&url, "show fsync").unwrap(), "off");
    assert_eq!(ask(&url, "show server_encoding").unwrap(), "UTF8");
    assert_eq!(ask(&url, "show listen_addresses").unwrap(), "");
    let root = server.data_dir().parent().unwrap().to_path_buf();
    assert!(!processes_of(&root).is_empty());
    server.stop();
    assert!(!root.exists(), "{} is left", root.display());
    assert_eq!(processes_of(&root), Vec::<String>::new());
}

#[test]
fn kept_data_outlive_the_server_in_a_folder_with_any_name_process() {
    let folder = open_folder();
    for name in ["a b, \"c\" 'd' é $e", &"long".repeat(40)] {
        let options = Options {
            data: Data::Kept(folder.path().join(name)),
            ..Options::default()
        };
        let server = Server::start(&options).unwrap();
        let url = server.url("postgres", "postgres");
        ask(&url, "create table kept as select 42 as n").unwrap();
        assert_eq!(ask(&url, "show fsync").unwrap(), "on");
        let socket = server.socket_dir().to_path_buf();
        server.stop();
        assert!(ask(&url, "select 1").is_err());
        let inside = socket.starts_with(folder.path());
        assert!(inside || !socket.exists(), "{} is left", socket.display());

        let server = Server::start(&options).unwrap();
        let url = server.url("postgres", "postgres");
        assert_eq!(ask(&url, "select n from kept").unwrap(), "42");
    }
}

#[test]
fn restart_and_crash_keep_committed_rows_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    let url = server.url("postgres", "postgres");
    ask(&url, "create table t as select 7 as n").unwrap();
    let first = server.postmaster_pid().unwrap();
    server.restart().unwrap();
    assert_ne!(server.postmaster_pid().unwrap(), first);
    assert_eq!(ask(&url, "select n from t").unwrap(), "7");
    server.crash().unwrap();
    assert!(server.check().unwrap_err().to_string().contains("SIGKILL"));
    assert!(server.postmaster_pid().is_none());
    server.restart().unwrap();
    server.check().unwrap();
    assert_eq!(ask(&url, "select n from t").unwrap(), "7");
    // What was answered a moment before the end, too.
    for n in 0..3 {
        ask(&url, &format!("create table u{n} as select 8 as n")).unwrap();
        server.crash().unwrap();
        server.restart().unwrap();
        assert_eq!(ask(&url, &format!("select n from u{n}")).unwrap(), "8");
    }
}

#[test]
fn a_server_that_ends_by_itself_is_told_process() {
    let server = Server::start(&Options::for_tests()).unwrap();
    signal(server.postmaster_pid().unwrap(), Signal::SIGINT);
    eventually("the end is noticed", 20, || server.check().is_err());
    let said = server.check().unwrap_err().to_string();
    assert!(said.contains("exit status 0"), "{said}");
    assert!(said.contains("fast shutdown"), "{said}");
}

#[test]
fn a_bad_setting_is_told_with_the_log() {
    let options = Options {
        settings: vec![("max_connections".to_owned(), "many".to_owned())],
        ..Options::for_tests()
    };
    let said = Server::start(&options).unwrap_err().to_string();
    assert!(said.contains("max_connections"), "{said}");
}

#[test]
fn tcp_asks_for_a_password_and_a_taken_port_is_told() {
    let options = Options {
        tcp_port: Some(0),
        ..Options::for_tests()
    };
    let server = Server::start(&options).unwrap();
    let url = server.tcp_url("postgres").unwrap();
    assert_eq!(ask(&url, "select 5").unwrap(), "5");
    assert_eq!(
        ask(&server.url("postgres", "postgres"), "select 6").unwrap(),
        "6"
    );
    let (_, host) = url.split_once('@').unwrap();
    assert!(ask(&format!("postgresql://postgres@{host}"), "select 1").is_err());
    assert!(ask(&format!("postgresql://postgres:x@{host}"), "select 1").is_err());

    let same = Options {
        tcp_port: Some(server.port()),
        ..Options::for_tests()
    };
    let said = Server::start(&same).unwrap_err().to_string();
    assert!(said.contains(&format!("port {}", server.port())), "{said}");
}

#[test]
fn named_binaries_that_do_not_do_are_refused() {
    let error = aegis_devpg::find_binaries(Some(Path::new("/nowhere"))).unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
    let found = aegis_devpg::find_binaries(None).unwrap();
    assert!(found.major >= aegis_devpg::LOWEST_MAJOR);
    assert_eq!(aegis_devpg::find_binaries(Some(&found.bin)).unwrap(), found);
}
