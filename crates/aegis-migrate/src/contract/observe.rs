//! Looking again and again, for as long as `[contract] observe` says. It holds no mutex: looks are only added, and each is its own.
//!
//! Invariants: a look is kept only while its attempt is under way; one that the server refuses is kept as one that failed; when
//! nobody looks there is a hole, which is never filled afterwards.

use tokio_postgres::Client;

use super::attempt::{Attempt, AttemptError};
use super::judge;
use super::look::{self, Seen, TARGET};
use super::need::Need;
use super::subject::Subject;

/// How long one look may take.
pub const BOUND: &str = "SET statement_timeout = '5s'; SET lock_timeout = '1s'";

/// One look at everything that is watched and can be seen here; each is kept.
///
/// # Errors
/// The attempt is not under way any more, or the session is lost.
pub async fn sample(
    client: &mut Client,
    subject: &Subject<'_>,
) -> Result<Vec<(Need, Seen)>, AttemptError> {
    let attempt = Attempt::under_way(client, &subject.id).await?;
    let mut seen = Vec::new();
    for need in watched(subject) {
        match judge::look_now(client, subject, &attempt, need, None).await {
            Ok(Some(one)) => seen.push((need, one)),
            Ok(None) => {}
            Err(error) => match error.as_db_error() {
                Some(db) => seen.push((
                    need,
                    Seen {
                        holds: None,
                        detail: db.message().to_owned(),
                    },
                )),
                None => return Err(error.into()),
            },
        }
    }
    let transaction = client.transaction().await?;
    let still = Attempt::under_way(&transaction, &subject.id).await?;
    if still.number != attempt.number {
        return Err(AttemptError::NotClosed {
            change: attempt.change,
        });
    }
    for (need, one) in &seen {
        look::keep(&transaction, &attempt, *need, TARGET, None, one).await?;
    }
    transaction.commit().await?;
    Ok(seen)
}

/// What of the evidence is watched here.
pub fn watched(subject: &Subject<'_>) -> impl Iterator<Item = Need> {
    Need::ALL.into_iter().filter(|need| {
        need.is_watched() && need.is_seen_here() && subject.contract.evidence.contains(need)
    })
}
