//! Start latency: one job every 50 ms into an idle worker, from the return of the enqueue's call to the handler's start.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::catalog::Peer;
use super::clock::seconds;
use super::lab::{Lab, database};
use super::throughput::time;

/// Jobs of a round.
pub(crate) const SAMPLES: u64 = 100;
const EVERY_MS: u64 = 50;

/// One round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// From the call's return, in milliseconds. A notification can come before the caller has its answer: then it is
    /// below zero.
    pub(crate) after_return_ms: Vec<f64>,
    /// From the call's start.
    pub(crate) after_call_ms: Vec<f64>,
}

/// Feeds once.
pub(crate) async fn measure(lab: &Lab, peer: &Peer, c: u32) -> anyhow::Result<Latency> {
    let db = database(peer, "latency");
    lab.fresh(peer, &db, "latency", c).await?;
    let worker = lab.start_driver(
        peer,
        &db,
        "worker",
        &json!({"mode": "latency", "c": c, "name": "A"}),
    )?;
    worker.await_event("ready", Duration::from_mins(1)).await?;
    // Ready to be asked is not yet idle: registering, listening and first polls come after it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let with = json!({"mode": "latency", "n": SAMPLES, "ms": EVERY_MS, "c": c});
    let feed = lab
        .start_driver(peer, &db, "feed", &with)?
        .finish(Duration::from_mins(2))
        .await?;
    let mut started = HashMap::new();
    for _ in 0..300 {
        started = worker
            .all("lat")
            .into_iter()
            .filter_map(|event| Some((event["seq"].as_u64()?, event["t"].as_i64()?)))
            .collect();
        if started.len() as u64 >= SAMPLES {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.stop(Duration::from_secs(15)).await?;
    lab.drop_database(&db).await?;
    ensure!(
        started.len() as u64 == SAMPLES,
        "{} of {SAMPLES} jobs started within 15 s of the last",
        started.len()
    );
    let mut latency = Latency {
        after_return_ms: Vec::new(),
        after_call_ms: Vec::new(),
    };
    for sent in feed.all("sent") {
        if let Some(at) = sent["seq"].as_u64().and_then(|seq| started.get(&seq)) {
            latency
                .after_return_ms
                .push(seconds(at - time(&sent, "t1")?) * 1000.0);
            latency
                .after_call_ms
                .push(seconds(at - time(&sent, "t0")?) * 1000.0);
        }
    }
    Ok(latency)
}
