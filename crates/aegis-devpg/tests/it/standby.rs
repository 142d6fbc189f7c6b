//! A server whose data are copied from another one, which it follows until it is promoted.

use aegis_devpg::{Options, Server};

use crate::support::{ask, eventually, skipped};

#[test]
fn a_standby_follows_and_is_promoted_process() {
    let first = Server::start(&Options::for_tests()).unwrap();
    if !first.binaries().join("pg_basebackup").exists() {
        skipped(
            "a_standby_follows",
            "there is no pg_basebackup beside postgres",
        );
        return;
    }
    let url = first.url(first.superuser(), "postgres");
    ask(&url, "create table kept as select 1 as n").unwrap();
    let options = Options {
        standby_of: Some(url.clone()),
        variables: vec![("PGAPPNAME".to_owned(), "from-the-environment".into())],
        ..Options::for_tests()
    };
    let second = Server::start(&options).unwrap();
    let there = second.url(second.superuser(), "postgres");
    assert_eq!(ask(&there, "select pg_is_in_recovery()").unwrap(), "t");
    ask(&url, "insert into kept values (2)").unwrap();
    eventually("the standby has what came later", 20, || {
        ask(&there, "select count(*) from kept").is_ok_and(|count| count == "2")
    });
    let names = "select string_agg(application_name, ',') from pg_stat_replication";
    eventually("the variable reached the server", 20, || {
        ask(&url, names).is_ok_and(|names| names == "from-the-environment")
    });
    first.crash().unwrap();
    assert_eq!(ask(&there, "select pg_promote()").unwrap(), "t");
    ask(&there, "insert into kept values (3)").unwrap();
    second.restart().unwrap();
    assert_eq!(ask(&there, "select count(*) from kept").unwrap(), "3");
    let root = second.data_dir().parent().unwrap().to_path_buf();
    second.stop();
    assert!(!root.exists(), "{} is left", root.display());
}
