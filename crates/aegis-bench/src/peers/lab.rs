//! The one server of a run, with a database of its own for every run of every engine.
//!
//! Invariant: the server is as its package makes it but for what `SETTINGS` says; engines come over TCP on the loopback.

use std::path::PathBuf;
use std::time::Duration;

use aegis_devpg::{Options, Server};
use anyhow::Context as _;
use serde_json::Value;
use tokio_postgres::{Client, NoTls};

use super::catalog::Peer;
use super::driver::Driver;
use super::install::Programs;

/// All that is not the server's default, beside its connections (W3 and W4 run all engines at once).
pub(crate) const SETTINGS: [(&str, &str); 2] =
    [("shared_buffers", "512MB"), ("max_connections", "400")];

/// The server and the drivers.
pub(crate) struct Lab {
    server: Server,
    admin: Client,
    programs: Programs,
}

impl Lab {
    /// Starts the server, durable.
    pub(crate) async fn start(fetch: bool, programs: Programs) -> anyhow::Result<Self> {
        let options = Options {
            tcp_port: Some(0),
            fetch,
            settings: SETTINGS
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..Options::default()
        };
        let server = tokio::task::spawn_blocking(move || Server::start(&options)).await??;
        let admin = connect(&server.url(server.superuser(), "postgres")).await?;
        Ok(Self {
            server,
            admin,
            programs,
        })
    }

    /// The server's version.
    pub(crate) fn version(&self) -> &str {
        self.server.version().1
    }

    /// Where a program of the server stands, if it does.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        Some(self.server.binaries().join(name)).filter(|path| path.exists())
    }

    /// The URL that engines get.
    pub(crate) fn url(&self, database: &str) -> anyhow::Result<String> {
        self.server
            .tcp_url(database)
            .context("the private server listens on no TCP port")
    }

    /// A look into a database, through the socket.
    pub(crate) async fn client(&self, database: &str) -> anyhow::Result<Client> {
        connect(&self.server.url(self.server.superuser(), database)).await
    }

    /// As the server's superuser, in no engine's database.
    pub(crate) fn admin(&self) -> &Client {
        &self.admin
    }

    /// Starts a peer's driver.
    pub(crate) fn start_driver(
        &self,
        peer: &Peer,
        database: &str,
        command: &str,
        with: &Value,
    ) -> anyhow::Result<Driver> {
        let program = self
            .programs
            .of(peer)
            .with_context(|| format!("{} is not installed", peer.name))?;
        Driver::start(program, &self.url(database)?, command, with)
    }

    /// A database with the engine's schema and the table of effects; what had its name is dropped.
    pub(crate) async fn fresh(
        &self,
        peer: &Peer,
        database: &str,
        mode: &str,
        c: u32,
    ) -> anyhow::Result<()> {
        self.empty(database).await?;
        self.client(database)
            .await?
            .batch_execute(
                "CREATE TABLE bench_effects (id bigserial PRIMARY KEY, worker text NOT NULL, attempt int,
                    what text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())",
            )
            .await?;
        let with = serde_json::json!({"mode": mode, "c": c});
        self.start_driver(peer, database, "setup", &with)?
            .finish(Duration::from_mins(2))
            .await?;
        Ok(())
    }

    /// An empty database; what had its name is dropped.
    pub(crate) async fn empty(&self, database: &str) -> anyhow::Result<()> {
        self.drop_database(database).await?;
        let create = format!("CREATE DATABASE {database} TEMPLATE template0");
        Ok(self.admin.batch_execute(&create).await?)
    }

    /// Drops a database with all that is connected to it.
    pub(crate) async fn drop_database(&self, database: &str) -> anyhow::Result<()> {
        let drop = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
        Ok(self.admin.batch_execute(&drop).await?)
    }

    /// WAL written so far, in bytes.
    pub(crate) async fn wal_bytes(&self) -> anyhow::Result<i64> {
        let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        Ok(self.admin.query_one(sql, &[]).await?.try_get(0)?)
    }

    /// Transactions committed in a database, once nobody is connected: a session's last counts arrive at its end.
    pub(crate) async fn transactions(&self, database: &str) -> anyhow::Result<i64> {
        let alone = async {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
            while self
                .admin
                .query_one(sql, &[&database])
                .await?
                .try_get::<_, i64>(0)?
                > 0
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(Duration::from_secs(20), alone)
            .await
            .with_context(|| format!("sessions in {database} do not end"))??;
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = $1";
        Ok(self.admin.query_one(sql, &[&database]).await?.try_get(0)?)
    }
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The database of one run of one engine.
pub(crate) fn database(peer: &Peer, tag: &str) -> String {
    format!("peer_{}_{tag}", peer.driver.replace('-', "_"))
}
