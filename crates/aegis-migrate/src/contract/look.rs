//! Looking at who still needs the old form, in the target itself. A look that cannot see everything says so: it is kept as one that
//! failed, never as one that held.

use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::GenericClient;

use super::attempt::Attempt;
use super::bundle::{Attestation, Bundle};
use super::need::Need;
use super::window::Look;

/// The source of what this tool sees by itself.
pub const TARGET: &str = "target";

/// Whether a need holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// None when it could not be seen.
    pub holds: Option<bool>,
    /// In a person's words.
    pub detail: String,
}

impl Seen {
    pub(super) fn holds(detail: impl Into<String>) -> Self {
        Self {
            holds: Some(true),
            detail: detail.into(),
        }
    }

    pub(super) fn fails(detail: impl Into<String>) -> Self {
        Self {
            holds: Some(false),
            detail: detail.into(),
        }
    }

    pub(super) fn unknown(detail: impl Into<String>) -> Self {
        Self {
            holds: None,
            detail: detail.into(),
        }
    }
}

/// Sessions of the runtime roles that are older than the shut door.
pub async fn clients(
    client: &impl GenericClient,
    roles: &[String],
    closed_at: Timestamp,
) -> Result<Seen, tokio_postgres::Error> {
    let rows = client
        .query(
            include_str!("../../sql/contract/clients.sql"),
            &[&roles, &closed_at],
        )
        .await?;
    let mut old = Vec::new();
    let mut hidden = false;
    for row in &rows {
        let (role, program): (String, String) = (row.try_get("role")?, row.try_get("program")?);
        let sessions: i64 = row.try_get("sessions")?;
        hidden |= row.try_get::<_, bool>("hidden")?;
        let program = if program.is_empty() {
            "no application_name"
        } else {
            &program
        };
        old.push(format!("{sessions} of {role} ({program})"));
    }
    Ok(if hidden {
        Seen::unknown(
            "sessions of other roles are hidden; grant pg_read_all_stats to the role that observes",
        )
    } else if old.is_empty() {
        Seen::holds("no session of a runtime role is older than the shut door")
    } else {
        Seen::fails(format!(
            "sessions from before the door was shut: {}",
            old.join(", ")
        ))
    })
}

/// Workers of the engine, when this database is one's.
pub async fn workers(
    client: &impl GenericClient,
    closed_at: Timestamp,
) -> Result<Option<Seen>, tokio_postgres::Error> {
    if !has_engine(client).await? {
        return Ok(None);
    }
    let rows = client
        .query(
            include_str!("../../sql/contract/workers.sql"),
            &[&closed_at],
        )
        .await?;
    let mut old = Vec::new();
    for row in &rows {
        let (release, workers): (String, i64) = (row.try_get("release")?, row.try_get("workers")?);
        old.push(format!("{workers} of release {release}"));
    }
    Ok(Some(if old.is_empty() {
        Seen::holds("no worker from before the door was shut")
    } else {
        Seen::fails(format!(
            "workers from before the door was shut: {}",
            old.join(", ")
        ))
    }))
}

/// Executions of the engine's tasks, when this database is one's.
pub async fn tasks(
    client: &impl GenericClient,
    closed_at: Timestamp,
) -> Result<Option<Seen>, tokio_postgres::Error> {
    if !has_engine(client).await? {
        return Ok(None);
    }
    let row = client
        .query_one(include_str!("../../sql/contract/tasks.sql"), &[&closed_at])
        .await?;
    let running: i64 = row.try_get("tasks")?;
    Ok(Some(if running == 0 {
        Seen::holds("no execution from before the door was shut")
    } else {
        Seen::fails(format!(
            "{running} executions from before the door was shut still run"
        ))
    }))
}

pub(super) async fn has_engine(client: &impl GenericClient) -> Result<bool, tokio_postgres::Error> {
    client
        .query_one(include_str!("../../sql/contract/engine.sql"), &[])
        .await?
        .try_get(0)
}

/// Keeps a look at `need`. `at` is the database's time when there is none.
pub async fn keep(
    client: &impl GenericClient,
    attempt: &Attempt,
    need: Need,
    source: &str,
    at: Option<Timestamp>,
    seen: &Seen,
) -> Result<(), tokio_postgres::Error> {
    client
        .execute(
            include_str!("../../sql/contract/look.sql"),
            &[
                &attempt.change,
                &attempt.number,
                &need.name(),
                &at,
                &source,
                &seen.holds,
                &seen.detail,
            ],
        )
        .await?;
    Ok(())
}

/// Keeps what a bundle says, as looks of its own source at its own time.
pub async fn keep_bundle(
    client: &impl GenericClient,
    attempt: &Attempt,
    bundle: &Bundle,
    by: &str,
) -> Result<(), tokio_postgres::Error> {
    let source = format!("bundle of {by} from {}", bundle.source);
    for seen in &bundle.facts {
        let kept = Seen {
            holds: seen.holds,
            detail: seen.detail.clone(),
        };
        keep(client, attempt, seen.need, &source, Some(bundle.at), &kept).await?;
    }
    Ok(())
}

/// Keeps what a person answers for, with the envelope as it came.
pub async fn keep_attestation(
    client: &impl GenericClient,
    attempt: &Attempt,
    attestation: &Attestation,
    by: &str,
    envelope: &Value,
) -> Result<(), tokio_postgres::Error> {
    client
        .execute(
            include_str!("../../sql/contract/attest.sql"),
            &[
                &attempt.change,
                &attempt.number,
                &attestation.need.name(),
                &by,
                &attestation.until,
                &attestation.reason,
                envelope,
            ],
        )
        .await?;
    Ok(())
}

/// The looks at one need, by source, oldest first.
pub async fn looks(
    client: &impl GenericClient,
    attempt: &Attempt,
    need: Need,
) -> Result<Vec<(String, Vec<Look>)>, tokio_postgres::Error> {
    let rows = client
        .query(
            include_str!("../../sql/contract/looks.sql"),
            &[&attempt.change, &attempt.number, &need.name()],
        )
        .await?;
    let mut sources: Vec<(String, Vec<Look>)> = Vec::new();
    for row in &rows {
        let source: String = row.try_get("source")?;
        let look = Look {
            at: row.try_get("at")?,
            holds: row.try_get("holds")?,
            detail: row.try_get("detail")?,
        };
        match sources.last_mut() {
            Some((last, looks)) if *last == source => looks.push(look),
            _ => sources.push((source, vec![look])),
        }
    }
    Ok(sources)
}

/// Who answers for which need, and until when.
pub async fn attestations(
    client: &impl GenericClient,
    attempt: &Attempt,
) -> Result<Vec<(Need, String, Timestamp, String)>, tokio_postgres::Error> {
    let rows = client
        .query(
            include_str!("../../sql/contract/attestations.sql"),
            &[&attempt.change, &attempt.number],
        )
        .await?;
    let mut found = Vec::new();
    for row in &rows {
        let name: String = row.try_get("need")?;
        // A need of a newer release blocks nothing and shows nothing here.
        if let Some(need) = Need::from_name(&name) {
            found.push((
                need,
                row.try_get("by_whom")?,
                row.try_get("until")?,
                row.try_get("reason")?,
            ));
        }
    }
    Ok(found)
}
