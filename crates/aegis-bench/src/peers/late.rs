//! A late completion: the owner of a job is frozen (SIGSTOP), another worker takes the job over, the owner goes on
//! (SIGCONT), finishes its handler and reports. What does the report do?
//!
//! The stored rows of the job are compared before the owner goes on and 3 s after its handler's end.

use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::catalog::Peer;
use super::clock::{now, seconds};
use super::lab::{Lab, database};
use super::takeover::{force, operator};
use super::throughput::time;

/// How long a takeover is waited for.
pub(crate) const WAIT_S: u64 = 60;

/// In which the other worker is when the owner goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Case {
    /// It has finished.
    Done,
    /// It is in its handler: where a completion without a fence does harm.
    Running,
    /// As `Done`, without the third process that rescues for the fleet: the frozen owner is the one.
    Alone,
}

impl Case {
    /// Those of an engine.
    pub(crate) fn of(peer: &Peer) -> &'static [Self] {
        if peer.led {
            &[Self::Done, Self::Running, Self::Alone]
        } else {
            &[Self::Done, Self::Running]
        }
    }

    /// As in the results.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Running => "running",
            Self::Alone => "alone",
        }
    }
}

/// One case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Late {
    pub(crate) case: Case,
    /// From the freeze to the start in the other worker; `None`: it was not taken over.
    pub(crate) takeover_s: Option<f64>,
    pub(crate) rows_changed: bool,
    /// Whether the owner's handler came to its end.
    pub(crate) handler_ended: bool,
    /// How the owner's process ended, if it did.
    pub(crate) owner_exit: Option<String>,
    /// What the owner said after it went on.
    pub(crate) said: Vec<String>,
    /// (worker, what), in order.
    pub(crate) effects: Vec<(String, String)>,
    pub(crate) before: Value,
    pub(crate) after: Value,
}

/// What the report did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    NoTakeover,
    Refused,
    Accepted,
}

impl Late {
    pub(crate) fn verdict(&self) -> Verdict {
        match (self.takeover_s, self.rows_changed) {
            (None, _) => Verdict::NoTakeover,
            (Some(_), false) => Verdict::Refused,
            (Some(_), true) => Verdict::Accepted,
        }
    }

    /// Whether the job's rows were gone before the owner went on, as where a completed job is deleted.
    pub(crate) fn rows_gone(&self) -> bool {
        self.before.as_array().is_some_and(Vec::is_empty)
    }

    /// Whether somebody who reads the owner's log, or watches its process, would notice.
    pub(crate) fn told(&self) -> bool {
        let words = [
            "error",
            "exception",
            "conflict",
            "no longer",
            "already",
            "fenced",
            "lost",
            "refused",
            "late",
        ];
        self.owner_exit.is_some()
            || self
                .said
                .iter()
                .any(|line| words.iter().any(|word| line.to_lowercase().contains(word)))
    }
}

/// Freezes once.
pub(crate) async fn measure(lab: &Lab, peer: &Peer, case: Case) -> anyhow::Result<Late> {
    let db = database(peer, &format!("late_{}", case.word()));
    lab.fresh(peer, &db, "fast", 2).await?;
    let within = Duration::from_mins(1);
    let leader = if peer.led && case != Case::Alone {
        let leader = lab.start_driver(
            peer,
            &db,
            "leader",
            &json!({"mode": "fast", "c": 2, "name": "L"}),
        )?;
        leader.await_event("ready", within).await?;
        led(lab, &db).await?;
        Some(leader)
    } else {
        None
    };
    let with = json!({"mode": "fast", "c": 2, "name": "A", "hold_ms": 3000, "log": true});
    let mut owner = lab.start_driver(peer, &db, "worker", &with)?;
    owner.await_event("ready", within).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    lab.start_driver(peer, &db, "hold", &json!({"mode": "fast"}))?
        .finish(within)
        .await?;
    owner.await_event("start", within).await?;
    tokio::time::sleep(Duration::from_millis(700)).await;
    owner.signal(Signal::SIGSTOP)?;
    let frozen = now();
    let other_ms = if case == Case::Running { 12_000 } else { 200 };
    let with = json!({"mode": "fast", "c": 2, "name": "B", "hold_ms": other_ms, "log": true});
    let other = lab.start_driver(peer, &db, "worker", &with)?;
    other.await_event("ready", within).await?;
    force(operator(lab, peer, &db).await?).await?;
    // Whoever is not taken over by then is not; that is a result too.
    let taken = other.heard("start", Duration::from_secs(WAIT_S)).await;
    let taken = taken.map(|event| time(&event, "t")).transpose()?;
    if taken.is_some() {
        if case != Case::Running {
            other.await_event("handler_done", within).await?;
        }
        // Its completion has to be there, or its own first writes.
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    let look = lab.client(&db).await?;
    let before: Value = look.query_one(peer.rows, &[]).await?.try_get(0)?;
    let said_before = owner.said().len();
    owner.signal(Signal::SIGCONT)?;
    let handler_ended = owner
        .heard("handler_done", Duration::from_secs(20))
        .await
        .is_some();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after: Value = look.query_one(peer.rows, &[]).await?.try_get(0)?;
    if case == Case::Running {
        other.heard("handler_done", Duration::from_secs(30)).await;
    }
    let rows = look
        .query("SELECT worker, what FROM bench_effects ORDER BY id", &[])
        .await?;
    let effects = rows
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()
        .context("the effects")?;
    let late = Late {
        case,
        takeover_s: taken.map(|at| seconds(at - frozen)),
        rows_changed: before != after,
        handler_ended,
        owner_exit: owner.ended()?.map(|status| status.to_string()),
        said: owner.said().split_off(said_before),
        effects,
        before,
        after,
    };
    drop((leader, owner, other, look));
    lab.drop_database(&db).await?;
    Ok(late)
}

/// Until the one that rescues for the fleet holds its lock: who starts later cannot have it.
async fn led(lab: &Lab, db: &str) -> anyhow::Result<()> {
    let sql = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = \
        (SELECT oid FROM pg_database WHERE datname = $1)";
    let waiting = async {
        while lab
            .admin()
            .query_one(sql, &[&db])
            .await?
            .try_get::<_, i64>(0)?
            == 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .context("nobody leads the fleet after a minute")?
}
