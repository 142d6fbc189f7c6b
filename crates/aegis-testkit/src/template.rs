//! The template database: made once for a server and a schema, then cloned for each test.
//!
//! It is built under another name and renamed when it is complete, under an advisory lock in the
//! database `postgres`: who sees the template sees all of it. Nobody can connect to it, since
//! cloning fails while somebody does. Clones run beside each other.
//!
//! What a killed run left on a shared server is swept at the next start, when it is old.

use std::time::{SystemTime, UNIX_EPOCH};

use aegis_store::Config;
use tokio::sync::OnceCell;
use tokio_postgres::Client;

use crate::db::connect;
use crate::server::TestServer;

/// The advisory lock of all test runs on a server.
const LOCK: i64 = 0x6165_6769_7374_6573;
/// Older test databases and templates belong to no living run.
const OLD_S: u64 = 6 * 3600;

static TEMPLATE: OnceCell<String> = OnceCell::const_new();

/// The name of the template, built when this server has none for this schema.
pub(crate) async fn template(server: &TestServer) -> &'static str {
    TEMPLATE
        .get_or_init(async || {
            let name = format!("aegis_template_{}", &aegis_schema::fingerprint()[..16]);
            let admin = connect(&server.url("postgres")).await;
            lock(&admin).await;
            sweep(&admin).await;
            if !exists(&admin, &name).await {
                build(server, &admin, &name).await;
            }
            // The lock ends with the connection.
            name
        })
        .await
}

/// A name for a new test database; its age can be read from it.
pub(crate) fn test_database_name() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("aegis_test_{}_{}", now_s(), &id[..12])
}

async fn build(server: &TestServer, admin: &Client, name: &str) {
    let building = format!("{name}_building");
    for sql in [
        format!("drop database if exists {building} with (force)"),
        format!("create database {building} template template0"),
        // Before the install: what a killed run leaves has an age too.
        format!("comment on database {building} is '{}'", now_s()),
    ] {
        run(admin, &sql).await;
    }
    install_schema(&server.url(&building)).await;
    for sql in [
        format!("alter database {building} with allow_connections false is_template true"),
        format!("alter database {building} rename to {name}"),
    ] {
        run(admin, &sql).await;
    }
}

/// Brings an empty database to this build's schema, with partitions for today and two days more.
async fn install_schema(url: &str) {
    let config = Config::from_url(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    if let Err(error) = aegis_schema::install(&config, 2).await {
        panic!("the schema does not install: {error:?}");
    }
}

async fn sweep(admin: &Client) {
    let rows = admin
        .query(
            "select datname, coalesce(shobj_description(oid, 'pg_database'), '') from pg_database \
             where datname like 'aegis\\_test\\_%' or datname like 'aegis\\_template\\_%'",
            &[],
        )
        .await
        .unwrap();
    for row in rows {
        let (name, comment): (String, String) = (row.get(0), row.get(1));
        let stamp = name
            .strip_prefix("aegis_test_")
            .and_then(|rest| rest.split('_').next())
            .unwrap_or(&comment);
        let old = stamp
            .parse::<u64>()
            .is_ok_and(|made_s| now_s().saturating_sub(made_s) > OLD_S);
        if old {
            for sql in [
                format!("alter database \"{name}\" is_template false"),
                format!("drop database if exists \"{name}\" with (force)"),
            ] {
                // Its own run may be dropping it right now.
                admin.batch_execute(&sql).await.ok();
            }
        }
    }
}

async fn lock(admin: &Client) {
    admin
        .execute("select pg_advisory_lock($1)", &[&LOCK])
        .await
        .expect("lock the test server");
}

async fn exists(admin: &Client, name: &str) -> bool {
    admin
        .query_opt("select 1 from pg_database where datname = $1", &[&name])
        .await
        .unwrap()
        .is_some()
}

async fn run(client: &Client, sql: &str) {
    if let Err(error) = client.batch_execute(sql).await {
        panic!("{sql}: {error:?}");
    }
}

fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock stands after 1970")
        .as_secs()
}
