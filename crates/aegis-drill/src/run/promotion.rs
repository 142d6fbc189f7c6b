//! Promotion of an asynchronous standby that lacks its primary's last transactions.
//!
//! Invariants: the tail is read from the killed primary itself, started again when nobody can reach it but the drill; both
//! lives are read before anybody writes to the new one. Must never let a client reach the old primary after the promotion.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aegis_devpg::Server;
use aegis_store::{Config, Store};
use tokio::task::spawn_blocking;

use super::breaking::Drill;
use super::late::Late;
use super::stage::{Stage, socket};
use crate::error::DrillError;
use crate::facts;
use crate::history::{Event, now_ns};
use crate::tail;
use crate::zombie::Report;

const LOOK: Duration = Duration::from_millis(50);
const CLAIMS_WITHIN: Duration = Duration::from_secs(15);
const HAS_IT_WITHIN: Duration = Duration::from_secs(10);
/// The tail is at least so long, and has so many moves.
const TAIL: Duration = Duration::from_millis(1500);
const TAIL_WITHIN: Duration = Duration::from_secs(15);
const TAIL_MOVES: i64 = 40;
const REASON: &str = "a standby of the drill was promoted";

impl Drill {
    /// False when there was no standby to promote: it is tried again.
    pub(super) async fn promote(&mut self, stage: &mut Stage) -> Result<bool, DrillError> {
        let standby = match stage.servers.start(Some(stage.admin_url.clone())).await {
            Ok(standby) => Arc::new(standby),
            Err(error) => {
                tracing::warn!(%error, "there is no standby to promote");
                return Ok(false);
            }
        };
        let url = standby.url(standby.superuser(), "postgres");
        // Whoever claims now holds a claim of the life that ends.
        let late = self.haunt(Late::start(stage, Report::Complete)?);
        let deadline = Instant::now() + CLAIMS_WITHIN;
        let mut there = false;
        while !there && Instant::now() < deadline + HAS_IT_WITHIN {
            self.go_on_for(stage, LOOK).await?;
            there = match self.claimed(late) {
                Some((task, epoch)) => {
                    let client = facts::connect(&url).await?;
                    facts::still_held(&client, task, epoch).await?
                        // It may have ended there meanwhile.
                        || Instant::now() > deadline
                }
                None => Instant::now() > deadline,
            };
        }
        let standby_says = facts::connect(&url).await?;
        facts::cut_standby(&standby_says).await?;
        while facts::follows(&standby_says).await? {
            tokio::time::sleep(LOOK).await;
        }
        let had = facts::moved(&standby_says).await?;
        let began = Instant::now();
        while began.elapsed() < TAIL
            || (stage.moved().await < had + TAIL_MOVES && began.elapsed() < TAIL_WITHIN)
        {
            self.go_on_for(stage, LOOK).await?;
        }
        stage.blocking(Server::crash).await?;
        stage.proxy.cut_all();
        stage.calm.cut_all();
        if !facts::promote(&standby_says).await? {
            return Err(DrillError::Child {
                name: "the standby".to_owned(),
                why: "it was not promoted within a minute".to_owned(),
            });
        }
        drop(standby_says);
        let shared = facts::read(&facts::connect(&url).await?).await?;
        let old_url = std::mem::replace(&mut stage.admin_url, url);
        let old = std::mem::replace(&mut stage.server, standby);
        // Told before anybody can reach it, so that what is told later happened later.
        let promoted_ns = now_ns();
        stage.history.tell(Event::Promoted)?;
        stage.proxy.point_at(socket(&stage.server));
        stage.calm.point_at(socket(&stage.server));
        stage.adopt_if_asked().await;
        let old = reread(old).await?;
        let lost = facts::read(&facts::connect(&old_url).await?).await?;
        stage.tails.push(tail::judge(promoted_ns, &lost, &shared));
        stage.bury(old).await?;
        Ok(true)
    }
}

/// The killed primary, which nobody can reach now, up again.
async fn reread(old: Arc<Server>) -> Result<Arc<Server>, DrillError> {
    let restarted = spawn_blocking(move || old.restart().map(|()| old))
        .await
        .map_err(|error| DrillError::system("restart PostgreSQL")(error.into()))??;
    Ok(restarted)
}

impl Stage {
    /// How many moves of tasks the database knows; 0 when it is away.
    async fn moved(&self) -> i64 {
        match facts::connect(&self.admin_url).await {
            Ok(admin) => facts::moved(&admin).await.unwrap_or_default(),
            Err(_) => 0,
        }
    }

    /// Ends a server for ever. The first one's folder has to stay.
    async fn bury(&mut self, old: Arc<Server>) -> Result<(), DrillError> {
        let keeps = self.first.is_none();
        let old = spawn_blocking(move || {
            old.halt()?;
            Ok::<_, aegis_devpg::Error>(keeps.then_some(old))
        })
        .await
        .map_err(|error| DrillError::system("stop PostgreSQL")(error.into()))??;
        if old.is_some() {
            self.first = old;
        }
        Ok(())
    }

    /// `aegis db adopt`, when the engine has closed acquisition until somebody does. A database that cannot say so has not.
    pub(super) async fn adopt_if_asked(&self) {
        let Ok(config) = Config::from_url(&self.direct_url) else {
            return;
        };
        let Ok(store) = Store::connect_unverified(config.with_pool_size(1)) else {
            return;
        };
        if let Ok(status) = store.database_status().await
            && status.closed_at.is_some()
        {
            match store.adopt("drill", REASON).await {
                Ok(floor) => tracing::info!(floor, "the database was adopted"),
                Err(error) => tracing::warn!(%error, "the database was not adopted"),
            }
        }
    }
}
