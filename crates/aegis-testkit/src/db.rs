//! A database for one test, cloned from the template and dropped after the test.

use std::thread;

use tokio_postgres::{Client, NoTls};

use crate::server::TestServer;
use crate::template;

/// A database of a test's own.
///
/// # Examples
///
/// ```no_run
/// # async fn test() {
/// let db = aegis_testkit::TestDb::new().await;
/// let client = db.connect().await;
/// client.query("select * from aegis.task", &[]).await.unwrap();
/// # }
/// ```
pub struct TestDb {
    /// A connection to this database as the superuser.
    pub admin: Client,
    server: &'static TestServer,
    name: String,
}

impl TestDb {
    /// A database with the newest schema of the engine.
    pub async fn new() -> Self {
        let server = TestServer::get().await;
        Self::clone_of(server, template::template(server).await).await
    }

    /// A database with nothing in it.
    pub async fn empty() -> Self {
        Self::clone_of(TestServer::get().await, "template0").await
    }

    async fn clone_of(server: &'static TestServer, template: &str) -> Self {
        let name = template::test_database_name();
        let postgres = connect(&server.url("postgres")).await;
        postgres
            .batch_execute(&format!("create database {name} template {template}"))
            .await
            .unwrap_or_else(|error| panic!("clone {template}: {error:?}"));
        Self {
            admin: connect(&server.url(&name)).await,
            server,
            name,
        }
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL for the superuser.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// The URL for another role, which must be able to log in.
    pub fn url_as(&self, role: &str) -> String {
        self.server.url_as(role, &self.name)
    }

    /// A new connection as the superuser.
    pub async fn connect(&self) -> Client {
        connect(&self.url()).await
    }

    /// A new connection as `role`.
    pub async fn connect_as(&self, role: &str) -> Client {
        connect(&self.url_as(role)).await
    }
}

impl std::fmt::Debug for TestDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestDb").field("url", &self.url()).finish()
    }
}

impl Drop for TestDb {
    /// Beside the next test: nobody waits for it, and what a process end cuts short goes with the
    /// private server, or is swept on a shared one.
    fn drop(&mut self) {
        let url = self.server.url("postgres");
        let sql = format!("drop database if exists {} with (force)", self.name);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(async {
                    if let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await {
                        tokio::spawn(connection);
                        client.batch_execute(&sql).await.ok();
                    }
                });
            }
        });
    }
}

/// Connects, with the connection's task on the test's runtime; panics when it cannot.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .unwrap_or_else(|error| panic!("connect to {url}: {error:?}"));
    tokio::spawn(connection);
    client
}
