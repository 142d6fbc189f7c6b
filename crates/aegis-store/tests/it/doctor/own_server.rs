//! What belongs to a whole server flips on one of the test's own.

use aegis_devpg::{Durability, Options, Server};
use aegis_schema::install;
use aegis_store::Config;
use aegis_store::doctor::Severity::{self, Critical, Notice, Ok as Fine, Unknown, Warning};
use aegis_testkit::{process_slot, wait_until};
use tokio_postgres::{Client, NoTls};

use super::{BOUND, examine};

struct Own {
    server: Server,
    admin: Client,
}

impl Own {
    async fn start() -> Self {
        let options = Options {
            durability: Durability::Durable,
            settings: [
                ("max_connections", "13"),
                ("max_prepared_transactions", "2"),
                ("wal_level", "replica"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            ..Options::for_tests()
        };
        let server = tokio::task::spawn_blocking(move || Server::start(&options))
            .await
            .unwrap()
            .unwrap();
        let url = server.url(server.superuser(), "postgres");
        install(&Config::from_url(&url).unwrap(), 14).await.unwrap();
        let admin = connect(&url).await;
        Self { server, admin }
    }

    async fn severity(&self, id: &str) -> Severity {
        let url = self.server.url("aegis_reader", "postgres");
        examine(&url, &[id]).await.remove(0).severity
    }

    /// Changes a setting of the running server, and waits until a new session has it.
    async fn set(&self, name: &str, value: &str) {
        self.admin
            .batch_execute(&format!("alter system set {name} = {value}"))
            .await
            .unwrap();
        self.admin
            .batch_execute("select pg_reload_conf()")
            .await
            .unwrap();
        let wanted = value.trim_matches('\'').to_owned();
        wait_until(name, BOUND, async || {
            let client = connect(&self.server.url(self.server.superuser(), "postgres")).await;
            let row = client
                .query_one("select current_setting($1)", &[&name])
                .await
                .unwrap();
            row.get::<_, String>(0) == wanted
        })
        .await;
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_a_whole_server_flips_what_belongs_to_it() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let own = Own::start().await;

    assert_eq!(own.severity("durability").await, Fine);
    own.set("full_page_writes", "off").await;
    assert_eq!(own.severity("durability").await, Critical);
    own.set("full_page_writes", "on").await;

    assert_eq!(own.severity("autovacuum").await, Fine);
    own.set("autovacuum", "off").await;
    assert_eq!(own.severity("autovacuum").await, Critical);
    own.set("autovacuum", "on").await;

    assert_eq!(own.severity("connections").await, Fine);
    let mut held = Vec::new();
    for _ in 0..7 {
        held.push(connect(&own.server.url("aegis_reader", "postgres")).await);
    }
    wait_until("eight or more of ten connections", BOUND, async || {
        own.severity("connections").await == Warning
    })
    .await;
    drop(held);
    wait_until("the connections' end", BOUND, async || {
        own.severity("connections").await == Fine
    })
    .await;

    assert_eq!(own.severity("kept-wal").await, Fine);
    own.admin
        .batch_execute("select pg_create_physical_replication_slot('s', true)")
        .await
        .unwrap();
    let found = examine(&own.server.url("aegis_reader", "postgres"), &["kept-wal"])
        .await
        .remove(0);
    assert!(
        found.severity == Fine && found.values[0]["slot"] == "s",
        "{found:?}"
    );
    own.admin
        .batch_execute("select pg_drop_replication_slot('s')")
        .await
        .unwrap();

    // A prepared transaction holds its snapshot with nobody connected.
    own.admin
        .batch_execute("begin; create table held (); prepare transaction 'left behind'")
        .await
        .unwrap();
    let found = examine(
        &own.server.url("aegis_reader", "postgres"),
        &["oldest-snapshot"],
    )
    .await
    .remove(0);
    assert!(
        found
            .values
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["name"] == "left behind" && one["since_s"].is_number()),
        "{found:?}"
    );
    own.admin
        .batch_execute("rollback prepared 'left behind'")
        .await
        .unwrap();

    assert_eq!(own.severity("sync-standby").await, Notice);
    // Nothing is committed from here on that waits.
    own.admin
        .batch_execute("set synchronous_commit = local")
        .await
        .unwrap();
    own.set("synchronous_standby_names", "'nobody'").await;
    assert_eq!(own.severity("sync-standby").await, Critical);
    own.admin
        .batch_execute("create or replace function aegis.standbys() returns table (application text, state text, sync_state text) language sql stable as $$ select 'nobody', 'streaming', null::text $$")
        .await
        .unwrap();
    assert_eq!(own.severity("sync-standby").await, Unknown);
    own.admin
        .batch_execute("create or replace function aegis.standbys() returns table (application text, state text, sync_state text) language sql stable as $$ select 'nobody', 'streaming', 'sync' $$")
        .await
        .unwrap();
    assert_eq!(own.severity("sync-standby").await, Fine);
    own.admin
        .batch_execute("alter role aegis_engine set synchronous_commit = local")
        .await
        .unwrap();
    assert_eq!(own.severity("sync-standby").await, Warning);
}
