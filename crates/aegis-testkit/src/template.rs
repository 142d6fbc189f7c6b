//! The template database: made once for a server and a schema, then cloned for each test.
//!
//! It is built under another name and renamed when it is complete, under an advisory lock in the
//! database `postgres`: who sees the template sees all of it. Nobody can connect to it, since
//! cloning fails while somebody does. Clones run beside each other.
//!
//! What a killed run left on a shared server is swept at the next start, when it is old.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
            let files = schema_files();
            let name = format!("aegis_template_{:016x}", hash(&files));
            let admin = connect(&server.url("postgres")).await;
            lock(&admin).await;
            sweep(&admin).await;
            if !exists(&admin, &name).await {
                build(server, &admin, &name, &files).await;
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

async fn build(server: &TestServer, admin: &Client, name: &str, files: &[(PathBuf, String)]) {
    let building = format!("{name}_building");
    for sql in [
        format!("drop database if exists {building} with (force)"),
        format!("create database {building} template template0"),
    ] {
        run(admin, &sql).await;
    }
    install_schema(&server.url(&building), files).await;
    for sql in [
        format!("alter database {building} with allow_connections false is_template true"),
        format!("comment on database {building} is '{}'", now_s()),
        format!("alter database {building} rename to {name}"),
    ] {
        run(admin, &sql).await;
    }
}

/// Brings an empty database to the newest schema, with partitions for today and tomorrow.
async fn install_schema(url: &str, files: &[(PathBuf, String)]) {
    if files.is_empty() {
        return;
    }
    let client = connect(url).await;
    for (path, sql) in files {
        if let Err(error) = client.batch_execute(sql).await {
            panic!("{} does not apply: {error:?}", path.display());
        }
    }
    run(&client, "select aegis.make_partitions(2)").await;
}

/// The schema's files in order, with their texts.
fn schema_files() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../aegis-store/schema");
    let Ok(entries) = fs::read_dir(&folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("list the schema's folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let sql = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
            (path, sql)
        })
        .collect()
}

fn hash(files: &[(PathBuf, String)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (path, sql) in files {
        (path.file_name(), sql).hash(&mut hasher);
    }
    hasher.finish()
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
            let template = format!("alter database \"{name}\" is_template false");
            run(admin, &template).await;
            run(
                admin,
                &format!("drop database if exists \"{name}\" with (force)"),
            )
            .await;
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
