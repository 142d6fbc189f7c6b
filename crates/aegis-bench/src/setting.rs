//! The one server of a run, with the schema and a bare schema beside it.

use aegis_devpg::{Durability, Options, Server};
use aegis_store::{Config, Store};
use anyhow::Context as _;
use tokio_postgres::{Client, NoTls};

/// The server, and how to reach it.
pub(crate) struct Setting {
    server: Server,
    client: Client,
}

impl Setting {
    /// Starts the server and installs the schema.
    pub(crate) async fn start(no_fsync: bool, fetch: bool) -> anyhow::Result<Self> {
        Self::start_with(no_fsync, fetch, &[]).await
    }

    /// The same with further settings of the server.
    pub(crate) async fn start_with(
        no_fsync: bool,
        fetch: bool,
        more: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let options = Options {
            durability: if no_fsync {
                Durability::Fast
            } else {
                Durability::Durable
            },
            fetch,
            settings: [
                ("shared_buffers", "1GB"),
                ("max_wal_size", "8GB"),
                ("checkpoint_timeout", "30min"),
            ]
            .iter()
            .chain(more)
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
            ..Options::default()
        };
        let server = tokio::task::spawn_blocking(move || Server::start(&options)).await??;
        let url = server.url(server.superuser(), "postgres");
        aegis_schema::install(&Config::from_url(&url)?, 2)
            .await
            .context("the schema cannot be installed")?;
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("CREATE SCHEMA bench").await?;
        Ok(Self { server, client })
    }

    /// The server's version.
    pub(crate) fn version(&self) -> &str {
        self.server.version().1
    }

    /// pgbench against the server; none where its programs came without it, as fetched ones do.
    pub(crate) fn pgbench(&self) -> Option<std::process::Command> {
        let program = self.server.binaries().join("pgbench");
        if !program.is_file() {
            return None;
        }
        let mut command = std::process::Command::new(program);
        command.arg("--host").arg(self.server.socket_dir()).args([
            "--port",
            &self.server.port().to_string(),
            "--username",
            self.server.superuser(),
            "postgres",
        ]);
        Some(command)
    }

    /// A further connection as the superuser.
    pub(crate) async fn bare(&self) -> anyhow::Result<Client> {
        let url = self.server.url(self.server.superuser(), "postgres");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// How the superuser reaches another database of the server.
    pub(crate) fn url(&self, database: &str) -> String {
        self.server.url(self.server.superuser(), database)
    }

    /// For what is done beside the engine, as the superuser.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// As the engine, prepared by name.
    pub(crate) fn engine_url(&self) -> String {
        format!(
            "{}&statements=named",
            self.server.url("aegis_engine", "postgres")
        )
    }

    /// A store as the engine.
    pub(crate) async fn store(&self, pool: usize) -> anyhow::Result<Store> {
        Ok(Store::connect(Config::from_url(&self.engine_url())?.with_pool_size(pool)).await?)
    }

    /// WAL written so far, in bytes.
    pub(crate) async fn wal_bytes(&self) -> anyhow::Result<f64> {
        Ok(self
            .client
            .query_one("SELECT (pg_current_wal_insert_lsn() - '0/0')::float8", &[])
            .await?
            .try_get(0)?)
    }

    /// Transactions that the server counted so far. Its sessions report when they become idle.
    pub(crate) async fn transactions(&self) -> anyhow::Result<f64> {
        // A session's counts arrive within a second of it being idle.
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        self.client
            .batch_execute("SELECT pg_stat_clear_snapshot()")
            .await?;
        let row = self.client.query_one("SELECT sum(xact_commit + xact_rollback)::float8 FROM pg_stat_database WHERE datname = current_database()", &[]).await?;
        Ok(row.try_get(0)?)
    }

    /// Switches autovacuum, for the figure that counts transactions one by one.
    pub(crate) async fn autovacuum(&self, on: bool) -> anyhow::Result<()> {
        let word = if on { "on" } else { "off" };
        self.client
            .batch_execute(&format!("ALTER SYSTEM SET autovacuum = {word}"))
            .await?;
        self.client.batch_execute("SELECT pg_reload_conf()").await?;
        Ok(())
    }

    /// Brings the tables of the engine into the state that autovacuum keeps them in.
    pub(crate) async fn tidy_up(&self) -> anyhow::Result<()> {
        self.client
            .batch_execute("VACUUM (ANALYZE) aegis.task")
            .await?;
        self.client
            .batch_execute("VACUUM (ANALYZE) aegis.task_body")
            .await?;
        self.client.batch_execute("CHECKPOINT").await?;
        Ok(())
    }
}
