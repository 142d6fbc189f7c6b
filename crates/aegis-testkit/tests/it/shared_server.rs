//! Several test processes on one server: one template, and nobody in another's way.

use std::process::{Child, Command, Stdio};

use aegis_devpg::{Options, Server};
use aegis_testkit::process_slot;
use tokio_postgres::NoTls;

/// This test binary again, with one of its tests, on `url`.
fn run(test: &str, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env("AEGIS_TEST_SERVER", url)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_together_share_one_template_process() {
    let _slot = process_slot();
    let server = Server::start(&Options::for_tests()).unwrap();
    let url = server.url(server.superuser(), "postgres");
    let runs = [
        "database::two_tests_do_not_see_each_other",
        "database::the_schema_is_there_and_an_empty_database_is_empty",
        "interleaving::a_blocked_update_sees_the_row_after_the_commit",
    ]
    .map(|test| run(test, &url));
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let rows = client
        .query(
            "select datname from pg_database where datname like 'aegis\\_template%'",
            &[],
        )
        .await
        .unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}
