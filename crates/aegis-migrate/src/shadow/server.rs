//! The private server and its databases.

use std::path::PathBuf;
use std::sync::Arc;

use aegis_devpg::{Durability, Options, Server};
use tokio_postgres::{Client, NoTls};

use super::ShadowError;

/// Which PostgreSQL.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// The folder of its programs; `None`: the newest on the machine.
    pub binaries: Option<PathBuf>,
    /// Fetch pinned ones when the machine has none.
    pub fetch: bool,
}

/// A server that ends with this process. Nothing of it is kept.
#[derive(Debug)]
pub struct Private {
    server: Arc<Server>,
}

impl Private {
    /// Starts it.
    pub async fn start(options: &ServerOptions) -> Result<Self, ShadowError> {
        let options = Options {
            durability: Durability::Fast,
            binaries: options.binaries.clone(),
            fetch: options.fetch,
            settings: vec![("max_connections".to_owned(), "20".to_owned())],
            ..Options::default()
        };
        let started = tokio::task::spawn_blocking(move || Server::start(&options)).await;
        let server = started
            .map_err(|error| ShadowError::Lost(error.to_string()))?
            .map_err(ShadowError::Server)?;
        Ok(Self {
            server: Arc::new(server),
        })
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.server.version().0
    }

    /// Its superuser, who stands in for whoever owns what in production.
    pub fn superuser(&self) -> &str {
        self.server.superuser()
    }

    /// The URL of a database of it.
    pub fn url(&self, database: &str) -> String {
        self.server.url(self.server.superuser(), database)
    }

    /// A new database, empty.
    pub async fn database(&self, name: &str) -> Result<Client, ShadowError> {
        let postgres = connect(&self.url("postgres"), "postgres").await?;
        let made = format!(
            "CREATE DATABASE {} TEMPLATE template0",
            aegis_catalog::quote(name)
        );
        postgres
            .batch_execute(&made)
            .await
            .map_err(ShadowError::Sql)?;
        connect(&self.url(name), name).await
    }

    /// Ends it, and returns when it has ended.
    pub async fn stop(self) {
        let server = self.server;
        // The end of a server takes part of a second, on a thread that may wait.
        tokio::task::spawn_blocking(move || drop(server)).await.ok();
    }
}

async fn connect(url: &str, database: &str) -> Result<Client, ShadowError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .map_err(|source| ShadowError::Connect {
            database: database.to_owned(),
            source,
        })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a private server ended");
        }
    });
    Ok(client)
}
