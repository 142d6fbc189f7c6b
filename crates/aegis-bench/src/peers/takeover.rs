//! Takeover: the owner of a job is killed by SIGKILL; how long until another worker starts the job.
//!
//! The kill comes 3 s after the other worker is ready, so a figure that hangs on a timer's phase is always in the same one.

use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::Peer;
use super::clock::{now, seconds};
use super::driver::Driver;
use super::lab::{Lab, database};
use super::throughput::time;

/// Not within this is "over".
pub(crate) const CAP: Duration = Duration::from_mins(1);

/// One takeover; `None` is over the cap.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Takeover {
    pub(crate) seconds: Option<f64>,
}

/// Kills once.
pub(crate) async fn measure(lab: &Lab, peer: &Peer, round: u32) -> anyhow::Result<Takeover> {
    let db = database(peer, &format!("takeover_{round}"));
    lab.fresh(peer, &db, "fast", 2).await?;
    let within = Duration::from_mins(1);
    let mut owner = lab.start_driver(
        peer,
        &db,
        "worker",
        &json!({"mode": "fast", "c": 2, "name": "A", "hold_ms": 600_000}),
    )?;
    owner.await_event("ready", within).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    lab.start_driver(peer, &db, "hold", &json!({"mode": "fast"}))?
        .finish(within)
        .await?;
    owner.await_event("start", within).await?;
    let other = lab.start_driver(
        peer,
        &db,
        "worker",
        &json!({"mode": "fast", "c": 2, "name": "B", "hold_ms": 200}),
    )?;
    other.await_event("ready", within).await?;
    let operator = operator(lab, peer, &db).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(
        other.all("start").is_empty(),
        "the job ran in both workers before the kill"
    );
    owner.kill().await?;
    let killed = now();
    force(operator).await?;
    let started = other.heard("start", CAP).await;
    drop(other);
    lab.drop_database(&db).await?;
    let taken = started.map(|event| time(&event, "t")).transpose()?;
    Ok(Takeover {
        seconds: taken.map(|at| seconds(at - killed)),
    })
}

/// The process that makes the operator's call, where one is needed; it waits for its line.
pub(crate) async fn operator(lab: &Lab, peer: &Peer, db: &str) -> anyhow::Result<Option<Driver>> {
    if !peer.forced {
        return Ok(None);
    }
    let operator = lab.start_driver(peer, db, "force", &json!({}))?;
    operator
        .await_event("ready", Duration::from_mins(1))
        .await?;
    Ok(Some(operator))
}

/// Makes the call.
pub(crate) async fn force(operator: Option<Driver>) -> anyhow::Result<()> {
    if let Some(mut operator) = operator {
        operator.say("go").await?;
        operator.finish(Duration::from_secs(30)).await?;
    }
    Ok(())
}
