//! Which database a command works on.

use aegis_store::{Config, Store};
use clap::Args;

use crate::arguments::ALL;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where the database is.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatabaseArguments {
    /// `postgresql://USER@HOST:PORT/DATABASE`; add `?statements=named` when no transaction pooler is between.
    #[arg(
        long,
        env = "AEGIS_DATABASE_URL",
        hide_env_values = true,
        global = true,
        help_heading = ALL,
        value_name = "URL"
    )]
    database_url: Option<String>,
    /// A second URL that goes around the pooler, for notifications and DDL.
    #[arg(
        long,
        env = "AEGIS_DATABASE_DIRECT_URL",
        hide_env_values = true,
        global = true,
        help_heading = ALL,
        value_name = "URL"
    )]
    database_direct_url: Option<String>,
}

impl DatabaseArguments {
    /// The URL, where one was given.
    pub(crate) fn given(&self) -> Option<&str> {
        self.database_url.as_deref()
    }

    /// The URL as given.
    pub(crate) fn url(&self) -> Result<&str, Failure> {
        let is_empty = |url: &str| url.trim().is_empty();
        if self.database_url.as_deref().is_some_and(is_empty) {
            return Err(Failure::new(
                Exit::Usage,
                "the database URL is empty; write postgresql://USER@HOST:PORT/DATABASE into AEGIS_DATABASE_URL, --database-url or aegis.toml, or unset it",
            ));
        }
        self.database_url.as_deref().ok_or_else(|| {
            Failure::new(Exit::Usage, "no database given; pass --database-url, set AEGIS_DATABASE_URL, or write database_url into aegis.toml (aegis dev starts one and prints its URL)")
        })
    }

    /// The URL that goes around a pooler: the direct one where it was given.
    pub(crate) fn direct(&self) -> Result<&str, Failure> {
        match &self.database_direct_url {
            Some(direct) if direct.trim().is_empty() => Err(Failure::new(
                Exit::Usage,
                "the direct database URL is empty; write one into AEGIS_DATABASE_DIRECT_URL, or unset it",
            )),
            Some(direct) => Ok(direct),
            None => self.url(),
        }
    }

    /// The configuration, without connecting.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let config = Config::from_url(self.url()?)?.with_application_name("aegis");
        match &self.database_direct_url {
            Some(direct) => Ok(config.with_direct_url(direct)?),
            None => Ok(config),
        }
    }

    /// Connects and verifies.
    pub(crate) async fn connect(&self) -> Result<Store, Failure> {
        Ok(Store::connect(self.config()?.with_pool_size(4)).await?)
    }
}
