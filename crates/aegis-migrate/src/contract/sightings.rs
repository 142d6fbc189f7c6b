//! Who still writes the old side, as the sync trigger has noted it.
//!
//! Invariants: each write of the old side since a time is seen, also between two looks; without the trigger, or without its table,
//! nobody would be seen, so nothing is known.

use aegis_backfill::sync::Rule;
use jiff::Timestamp;
use tokio_postgres::GenericClient;

use super::look::Seen;
use super::reconciled::is_there;

/// How far back a single look sees, beside the minute that a note stands for: more than two looks are apart.
pub const BACK_S: i64 = 30;

/// Whether nobody has written the old side since `since`.
pub async fn old_side(
    client: &impl GenericClient,
    rule: &Rule,
    since: Timestamp,
) -> Result<Seen, tokio_postgres::Error> {
    if !is_there(client, "aegis_migrate.sighting").await? {
        return Ok(Seen::unknown("there is no table of sightings"));
    }
    match rule.state(client).await? {
        None => {
            return Ok(Seen::unknown(
                "the sync trigger, which notes them, is not there",
            ));
        }
        Some(state) if !state.enabled => {
            return Ok(Seen::unknown(
                "the sync trigger, which notes them, is disabled",
            ));
        }
        Some(_) => {}
    }
    let rows = client
        .query(
            include_str!("../../sql/contract/sightings.sql"),
            &[&rule.change, &"old", &since],
        )
        .await?;
    let mut writers = Vec::new();
    for row in &rows {
        let (program, role): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let last: Timestamp = row.try_get(2)?;
        let program = if program.is_empty() {
            "no application_name"
        } else {
            &program
        };
        writers.push(format!("{program} as {role} at {last}"));
    }
    Ok(if writers.is_empty() {
        Seen::holds("nobody wrote the old side")
    } else {
        Seen::fails(format!(
            "the old side was written by {}",
            writers.join(", ")
        ))
    })
}
