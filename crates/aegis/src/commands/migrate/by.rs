//! Who runs a verb that writes to the ledger, and how long it waits for its turn.

use std::time::Duration;

use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::session::Direct;
use aegis_store::{Config, install};
use clap::Args;

use super::Place;
use crate::commands::find::UNNAMED;
use crate::exit::Exit;
use crate::failure::{Failure, chain};

#[derive(Debug, Args)]
pub(crate) struct ByArguments {
    /// Who runs it, for the ledger.
    #[arg(
        long,
        env = "AEGIS_MIGRATE_BY",
        hide_env_values = true,
        default_value = UNNAMED,
        value_name = "NAME"
    )]
    by: String,
    /// The release that brings the folder, for the ledger and pg_stat_activity.
    #[arg(
        long,
        env = "AEGIS_RELEASE",
        hide_env_values = true,
        default_value = "none",
        value_name = "RELEASE"
    )]
    release: String,
    /// How long another run is waited for, in seconds.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    wait_s: u64,
}

impl ByArguments {
    /// How long another run is waited for.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_s)
    }

    /// The mutex of the database, with a ledger that is there.
    pub(crate) async fn held(&self, place: &Place<'_>) -> Result<Held, Failure> {
        let name = RunName {
            run: uuid::Uuid::now_v7().simple().to_string()[20..].to_owned(),
            by: self.by.clone(),
            release: self.release.clone(),
        };
        let refuse = |error: aegis_migrate::run::RunError| {
            Failure::new(Exit::Migrate(error.exit_code()), chain(&error))
        };
        let config = Config::from_url(place.database.direct()?)
            .map_err(|error| Failure::new(Exit::Migrate(17), chain(&error)))?;
        let (postgres, tls) = install::direct_parts(&config);
        let session = Direct::connect(postgres, tls, &name.application_name())
            .await
            .map_err(|error| refuse(error.into()))?;
        Held::take(session, &name, Duration::from_secs(self.wait_s))
            .await
            .map_err(|error| refuse(error.into()))
    }
}
