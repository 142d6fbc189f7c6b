//! The private PostgreSQL of a test process, and a database for each [`Harness`](crate::Harness).
//!
//! Invariants: one server a process, ended with it; the schema is installed once, into a template, and cloned; nothing listens
//! on an address that another machine can reach.
//!
//! Never: a database that anything else uses. The kit moves its times.

use std::sync::atomic::{AtomicU32, Ordering};

use aegis_devpg::{Options, Server};
use aegis_store::Config;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use crate::error::{HarnessError, chain};

const TEMPLATE: &str = "aegis_harness_template";
const FUNCTIONS: &str = include_str!("../sql/harness.sql");

/// A static is never dropped; the server's watchdog sees the process end.
static SERVER: OnceCell<Server> = OnceCell::const_new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A database of one harness.
#[derive(Debug)]
pub(crate) struct Database {
    server: &'static Server,
    name: String,
}

impl Database {
    /// Clones the template; the first call of a process starts the server.
    pub(crate) async fn create() -> Result<Self, HarnessError> {
        let server = SERVER.get_or_try_init(start).await?;
        let name = format!("aegis_harness_{}", DATABASES.fetch_add(1, Ordering::SeqCst));
        let postgres = connect(server, "postgres").await?;
        run(
            &postgres,
            "clone the template",
            &format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"),
        )
        .await?;
        Ok(Self { server, name })
    }

    /// Its URL for a role, as the driver and psql read it.
    pub(crate) fn url(&self, role: &str) -> String {
        self.server.url(role, &self.name)
    }

    /// A connection with every right.
    pub(crate) async fn admin(&self) -> Result<Client, HarnessError> {
        connect(self.server, &self.name).await
    }

    /// How the engine connects, under a name of its own.
    pub(crate) fn config(&self, application: &str) -> Result<Config, HarnessError> {
        let url = format!("{}&statements=named", self.url("aegis_engine"));
        Ok(Config::from_url(&url)?.with_application_name(application))
    }
}

impl Drop for Database {
    /// Beside what comes next: nobody waits for it, and what the end of the process cuts short goes with the server.
    fn drop(&mut self) {
        let (server, name) = (self.server, std::mem::take(&mut self.name));
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            runtime.block_on(async {
                if let Ok(postgres) = connect(server, "postgres").await {
                    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                    postgres.batch_execute(&sql).await.ok();
                }
            });
        });
    }
}

async fn start() -> Result<Server, HarnessError> {
    let server = tokio::task::spawn_blocking(|| Server::start(&Options::for_tests()))
        .await
        .map_err(|error| HarnessError::Server {
            what: error.to_string(),
        })?
        .map_err(|error| HarnessError::Server {
            what: chain(&error),
        })?;
    let postgres = connect(&server, "postgres").await?;
    run(
        &postgres,
        "create the template",
        &format!("CREATE DATABASE {TEMPLATE} TEMPLATE template0"),
    )
    .await?;
    let url = server.url(server.superuser(), TEMPLATE);
    aegis_schema::install(&Config::from_url(&url)?, 2)
        .await
        .map_err(Box::new)?;
    run(
        &connect(&server, TEMPLATE).await?,
        "install the clock",
        FUNCTIONS,
    )
    .await?;
    // A template that somebody is connected to cannot be cloned, and a connection ends a moment after its client.
    let close = format!(
        "ALTER DATABASE {TEMPLATE} WITH ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{TEMPLATE}'"
    );
    run(&postgres, "close the template", &close).await?;
    Ok(server)
}

async fn connect(server: &Server, database: &str) -> Result<Client, HarnessError> {
    let url = server.url(server.superuser(), database);
    let (client, connection) = tokio_postgres::connect(&url, NoTls)
        .await
        .map_err(|source| HarnessError::Database {
            what: "connect",
            source,
        })?;
    tokio::spawn(connection);
    Ok(client)
}

async fn run(client: &Client, what: &'static str, sql: &str) -> Result<(), HarnessError> {
    client
        .batch_execute(sql)
        .await
        .map_err(|source| HarnessError::Database { what, source })
}
