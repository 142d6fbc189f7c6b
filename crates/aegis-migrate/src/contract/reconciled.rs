//! What the last full pass says: for the switch that forward holds everywhere, for a contract that one direction does.
//!
//! Invariants: only the newest pass of a kind counts; a pass that asked another question than the change does (its expressions or its
//! query), one from before the trigger was changed, or from before new writes count,
//! is no evidence; without the table of passes nothing is known, which is never "zero".

use aegis_backfill::sync::TriggerState;
use jiff::Timestamp;
use tokio_postgres::GenericClient;

use super::fact::{Fact, Standing};
use super::look::TARGET;
use super::need::Need;
use crate::change::{Change, Reconcile};
use crate::run::data;

/// Which question a pass answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The new side is what forward makes of the old one: what the switch needs.
    Forward,
    /// One of the directions holds: what a contract needs.
    Agrees,
}

/// The newest pass of a change.
#[derive(Debug, Clone)]
pub struct Pass {
    /// When what it read was true.
    pub started_at: Timestamp,
    /// Whether it counted nothing wrong.
    pub is_zero: bool,
    /// The hash of what it asked.
    pub asked_sha256: String,
    /// The trigger during it.
    pub trigger_sha256: Option<String>,
    /// Rows that it counted as mismatching.
    pub mismatching: i64,
    /// Whether it counted nothing else as wrong.
    pub is_only_mismatching: bool,
    /// What it counted, in words.
    pub counted: String,
}

/// What is known for this question, at most as old as `[reconcile] max_age`.
pub async fn fact(
    client: &impl GenericClient,
    change: &Change,
    question: Question,
) -> Result<Fact, tokio_postgres::Error> {
    let id = change.id.to_string();
    let Some(reconcile) = &change.reconcile else {
        return Ok(if change.sync.is_none() && change.backfill.is_none() {
            Fact {
                standing: Standing::Excluded {
                    reason: "no row is moved by this change".to_owned(),
                },
                ..Fact::missing(Need::Reconciled, "nothing to count")
            }
        } else {
            Fact::missing(Need::Reconciled, "the change has no [reconcile]")
        });
    };
    let kind = kind(change, question).unwrap_or_default();
    let Some(pass) = newest(client, &id, kind).await? else {
        return Ok(Fact::missing(
            Need::Reconciled,
            format!("no pass of kind {kind} has ended here"),
        ));
    };
    let fact = says(client, change, reconcile, &pass).await?;
    if fact.standing != Standing::Shown || question == Question::Forward || change.switch.is_none()
    {
        return Ok(fact);
    }
    let since: Option<Timestamp> = client
        .query_opt(
            include_str!("../../sql/contract/writes_new_since.sql"),
            &[&id],
        )
        .await?
        .map(|row| row.try_get(0))
        .transpose()?;
    let why = match since {
        None => "the new side is not written yet: `aegis migrate switch`".to_owned(),
        Some(since) if pass.started_at < since => format!(
            "the last pass began at {}, before new writes counted ({since})",
            pass.started_at
        ),
        Some(_) => return Ok(fact),
    };
    Ok(Fact {
        standing: Standing::Inconclusive,
        detail: why,
        ..fact
    })
}

/// What a pass says by itself: whether it asked what the change asks, counted nothing wrong, and met the trigger that is there now.
async fn says(
    client: &impl GenericClient,
    change: &Change,
    reconcile: &Reconcile,
    pass: &Pass,
) -> Result<Fact, tokio_postgres::Error> {
    let known = |standing, detail| Fact {
        need: Need::Reconciled,
        standing,
        source: TARGET.to_owned(),
        at: Some(pass.started_at),
        age_limit_s: i64::try_from(reconcile.max_age.0.as_secs()).unwrap_or(i64::MAX),
        detail,
    };
    if !data::asked(change).is_ok_and(|asked| asked.sha256() == pass.asked_sha256) {
        let why = "the last pass was made by another edition of this change, with other expressions or another query";
        return Ok(known(Standing::Inconclusive, why.to_owned()));
    }
    if !pass.is_zero {
        return Ok(known(Standing::Refuted, pass.counted.clone()));
    }
    if let Some(rule) = change.sync_rule()
        && let Some(why) = other_trigger(rule.state(client).await?, pass.trigger_sha256.as_deref())
    {
        return Ok(known(Standing::Inconclusive, why.to_owned()));
    }
    Ok(known(Standing::Shown, pass.counted.clone()))
}

/// Rows that the newest pass of forward counted as mismatching, while one of the directions holds for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrittenNew {
    /// So many; a program has written them on the new side.
    Rows(i64),
    /// It is not known, and why.
    Unknown(String),
}

/// How many rows forward does not make though one of the directions holds for each: what a switch may accept by its number. Both counts
/// are of one state of the database, and as fresh and of the same question and trigger as for any fact.
pub async fn written_new(
    client: &impl GenericClient,
    change: &Change,
    now: Timestamp,
) -> Result<WrittenNew, tokio_postgres::Error> {
    let unknown = |why: &str| Ok(WrittenNew::Unknown(why.to_owned()));
    let reconcile = change.reconcile.as_ref();
    let Some(reconcile) = reconcile.filter(|one| one.sql.is_none()) else {
        return unknown(
            "only a pass that compares the sides of [sync] tells which direction holds",
        );
    };
    let id = change.id.to_string();
    let (Some(forward), Some(agrees)) = (
        newest(client, &id, "forward").await?,
        newest(client, &id, "agrees").await?,
    ) else {
        return unknown("no pass has ended here");
    };
    if forward.started_at != agrees.started_at {
        return unknown("the newest passes of forward and agrees are not of one count");
    }
    if let Some(block) = says(client, change, reconcile, &agrees).await?.blocks(now) {
        return Ok(WrittenNew::Unknown(format!("agrees: {}", block.why)));
    }
    // What forward counted is what may be accepted; all else of it has to hold.
    let but_for_rows = Pass {
        is_zero: true,
        ..forward.clone()
    };
    if let Some(block) = says(client, change, reconcile, &but_for_rows)
        .await?
        .blocks(now)
    {
        return Ok(WrittenNew::Unknown(format!("forward: {}", block.why)));
    }
    if !forward.is_only_mismatching {
        return Ok(WrittenNew::Unknown(format!("forward: {}", forward.counted)));
    }
    Ok(WrittenNew::Rows(forward.mismatching))
}

/// The newest pass of a kind; none when there is none, or no table of them.
pub async fn newest(
    client: &impl GenericClient,
    change: &str,
    kind: &str,
) -> Result<Option<Pass>, tokio_postgres::Error> {
    if !is_there(client, "aegis_migrate.reconcile_pass").await? {
        return Ok(None);
    }
    let row = client
        .query_opt(
            include_str!("../../sql/contract/pass.sql"),
            &[&change, &kind],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let wrong: (i64, i64, i64) = (
        row.try_get("missing")?,
        row.try_get("mismatch")?,
        row.try_get("orphaned")?,
    );
    let rows: Option<i64> = row.try_get("rows_counted")?;
    let lsn: String = row.try_get("snapshot_lsn")?;
    let rows = rows.map_or_else(String::new, |rows| format!(" of {rows} rows"));
    Ok(Some(Pass {
        started_at: row.try_get("started_at")?,
        is_zero: row.try_get("is_zero")?,
        asked_sha256: row.try_get("asked_sha256")?,
        trigger_sha256: row.try_get("trigger_sha256")?,
        mismatching: wrong.1,
        is_only_mismatching: wrong.0 == 0 && wrong.2 == 0,
        counted: format!(
            "{} missing, {} mismatching, {} orphaned{rows} at {lsn}",
            wrong.0, wrong.1, wrong.2
        ),
    }))
}

/// Whether the trigger is the one of the newest pass of this question; true without a trigger or a pass.
pub(super) async fn trigger_is_same(
    client: &impl GenericClient,
    change: &Change,
    question: Question,
) -> Result<bool, tokio_postgres::Error> {
    let (Some(rule), Some(kind)) = (change.sync_rule(), kind(change, question)) else {
        return Ok(true);
    };
    let Some(pass) = newest(client, &change.id.to_string(), kind).await? else {
        return Ok(true);
    };
    let state = rule.state(client).await?;
    Ok(other_trigger(state, pass.trigger_sha256.as_deref()).is_none())
}

/// The kind of pass that answers; none without `[reconcile]`.
fn kind(change: &Change, question: Question) -> Option<&'static str> {
    let reconcile = change.reconcile.as_ref()?;
    Some(match (&reconcile.sql, question) {
        (Some(_), _) => "sql",
        (None, Question::Forward) => "forward",
        (None, Question::Agrees) => "agrees",
    })
}

/// Why a pass says nothing of the trigger that is there now; none when it was the same.
pub fn other_trigger(now: Option<TriggerState>, then: Option<&str>) -> Option<&'static str> {
    match (now, then) {
        (None, _) => Some("the sync trigger is not there"),
        (Some(now), _) if !now.uncovered.is_empty() => {
            Some("a table that inherits from the other one has no sync trigger")
        }
        (Some(now), _) if !now.enabled => Some("the sync trigger is disabled"),
        (Some(_), None) => Some("the pass ran without the sync trigger"),
        (Some(now), Some(then)) if now.definition != then => {
            Some("the sync trigger is another one than during the pass")
        }
        (Some(_), Some(_)) => None,
    }
}

/// Whether a table of this tool is there.
pub(super) async fn is_there(
    client: &impl GenericClient,
    table: &str,
) -> Result<bool, tokio_postgres::Error> {
    client
        .query_one(
            include_str!("../../sql/contract/table_there.sql"),
            &[&table],
        )
        .await?
        .try_get(0)
}
