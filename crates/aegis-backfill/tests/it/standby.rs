//! A standby that really lags, and one that is really gone: a job on two servers.

use std::time::Duration;

use aegis_backfill::throttle::{Limits, Look, Sampler};
use aegis_devpg::{Options, Server};
use aegis_testkit::{process_slot, wait_until};
use tokio_postgres::{Client, NoTls};

const BOUND: Duration = Duration::from_mins(1);

async fn connected(server: &Server) -> Client {
    let url = server.url(server.superuser(), "postgres");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn look(client: &mut Client, limits: &Limits) -> Look {
    Sampler::default()
        .look(client, limits, 0, "public", None)
        .await
        .unwrap()
}

fn waits(look: &Look) -> &str {
    look.wait.as_deref().unwrap_or("nothing")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_a_standby_that_lags_holds_it_back_and_a_lost_one_is_no_answer_while_its_slot_holds_wal()
 {
    let _slot = process_slot();
    let first = Server::start(&Options::for_tests()).unwrap();
    if !first.binaries().join("pg_basebackup").exists() {
        assert!(
            std::env::var_os("CI").is_none(),
            "there is no pg_basebackup beside postgres"
        );
        eprintln!("SKIPPED: there is no pg_basebackup beside postgres");
        return;
    }
    let options = Options {
        standby_of: Some(first.url(first.superuser(), "postgres")),
        ..Options::for_tests()
    };
    let second = Server::start(&options).unwrap();
    let (mut client, standby) = (connected(&first).await, connected(&second).await);
    let lag = Limits {
        max_lag_bytes: Some(1 << 20),
        ..Limits::default()
    };
    wait_until("the standby has everything", BOUND, async || {
        look(&mut client, &lag).await == Look::default()
    })
    .await;
    standby
        .batch_execute("SELECT pg_wal_replay_pause()")
        .await
        .unwrap();
    let written = "CREATE TABLE w AS SELECT repeat('x', 500) FROM generate_series(1, 10000)";
    client.batch_execute(written).await.unwrap();
    // It is connected and has received all of it: what it has not applied is what its readers do not see.
    wait_until("the lag is seen", BOUND, async || {
        waits(&look(&mut client, &lag).await).contains("bytes behind")
    })
    .await;
    standby
        .batch_execute("SELECT pg_wal_replay_resume()")
        .await
        .unwrap();
    wait_until("it has caught up", BOUND, async || {
        look(&mut client, &lag).await == Look::default()
    })
    .await;
    client
        .batch_execute("SELECT pg_create_physical_replication_slot('of_standby', true)")
        .await
        .unwrap();
    drop(standby);
    second.stop();
    wait_until("the standby is gone", BOUND, async || {
        waits(&look(&mut client, &lag).await).contains("no standby is connected")
    })
    .await;
    let go_on = Limits {
        go_on_unknown: true,
        ..lag.clone()
    };
    let passed = look(&mut client, &go_on).await;
    assert_eq!((passed.wait, passed.unknown.len()), (None, 1));
    client
        .batch_execute("CREATE TABLE v AS SELECT * FROM w")
        .await
        .unwrap();
    let slot = Limits {
        max_slot_bytes: Some(1 << 20),
        ..Limits::default()
    };
    let held = look(&mut client, &slot).await;
    assert!(waits(&held).contains("bytes of WAL back"), "{held:?}");
    first.stop();
}
