//! Every fact of a contract, judged as it stands now: what was watched, and a look of this moment.
//!
//! Invariants: `status` and `run` ask the same function; what is watched needs both an unbroken time and a look now; a need that
//! this tool sees by itself cannot be answered for by a person; what was refuted cannot either.

use jiff::{SignedDuration, Timestamp};
use tokio_postgres::GenericClient;

use super::attempt::Attempt;
use super::dependents;
use super::fact::{Fact, Standing};
use super::keyring::Keyring;
use super::look::{self, Seen, TARGET};
use super::need::Need;
use super::reconciled::{self, Question};
use super::sightings;
use super::subject::Subject;
use super::window::{self, Look, Window};
use crate::run::lost::is_lost;

/// How far apart the looks of `contract observe` are.
pub const EVERY: SignedDuration = SignedDuration::from_secs(10);
/// The longest time between two of them that is no hole.
pub const GAP: SignedDuration = SignedDuration::from_secs(25);
/// How long ago the observation of the target may have ended.
pub const FRESH: SignedDuration = SignedDuration::from_mins(5);

/// All facts that are asked for ([`Subject::asked`]), in the order of [`Need::ALL`].
///
/// # Errors
/// The database's, of the first that could not be read.
pub async fn facts(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    attempt: &Attempt,
    keyring: &Keyring,
) -> Result<Vec<Fact>, tokio_postgres::Error> {
    let each = each(client, subject, attempt, keyring).await?;
    each.into_iter().map(|(_, fact)| fact).collect()
}

/// As [`facts`], each with what kept it from being read: for people who look at the others too. The client is in no transaction.
///
/// # Errors
/// The database's, where nothing can be judged: the attestations could not be read, or the connection is lost.
pub async fn each(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    attempt: &Attempt,
    keyring: &Keyring,
) -> Result<Vec<(Need, Result<Fact, tokio_postgres::Error>)>, tokio_postgres::Error> {
    let attested = look::attestations(client, attempt).await?;
    let mut facts = Vec::new();
    for need in subject.asked() {
        if let Some(reason) = keyring.exclusion(need) {
            let excluded = Fact {
                standing: Standing::Excluded {
                    reason: reason.to_owned(),
                },
                source: "policy".to_owned(),
                ..Fact::missing(need, reason)
            };
            facts.push((need, Ok(excluded)));
            continue;
        }
        let fact = match one(client, subject, attempt, keyring, need).await {
            Err(error) if is_lost(&error) => return Err(error),
            Err(error) => {
                facts.push((need, Err(error)));
                continue;
            }
            Ok(fact) => fact,
        };
        let answer = attested.iter().find(|(of, ..)| *of == need);
        let fact = match answer {
            Some((_, by, until, reason))
                if fact.standing == Standing::Missing && may_be_attested(need) =>
            {
                Fact {
                    standing: Standing::Attested {
                        by: by.clone(),
                        until: *until,
                    },
                    source: format!("attestation of {by}"),
                    ..Fact::missing(need, reason)
                }
            }
            _ => fact,
        };
        facts.push((need, Ok(fact)));
    }
    Ok(facts)
}

/// Whether a person may answer for it: what this tool cannot see, and what may live in another database.
pub const fn may_be_attested(need: Need) -> bool {
    !need.is_seen_here() || matches!(need, Need::Workers | Need::Tasks)
}

/// A look of this moment; none when there is nothing to look at here.
pub async fn look_now(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    attempt: &Attempt,
    need: Need,
    since: Option<Timestamp>,
) -> Result<Option<Seen>, tokio_postgres::Error> {
    match need {
        Need::Clients if subject.contract.revoke_from.is_empty() => Ok(None),
        Need::Clients => {
            let roles = &subject.contract.revoke_from;
            let seen = look::clients(client, roles, attempt.closed_at).await?;
            Ok(Some(seen))
        }
        Need::Workers => look::workers(client, attempt.closed_at).await,
        Need::Tasks => look::tasks(client, attempt.closed_at).await,
        Need::Dependents => Ok(Some(dependents::look(client, subject).await?)),
        Need::Sightings => {
            let Some(rule) = &subject.rule else {
                return Ok(None);
            };
            let back = attempt.now - SignedDuration::from_secs(sightings::BACK_S);
            let seen = sightings::old_side(client, rule, since.unwrap_or(back)).await?;
            Ok(Some(seen))
        }
        Need::Reconciled | Need::Pods | Need::Cronjobs | Need::RollbackWindow => Ok(None),
    }
}

async fn one(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    attempt: &Attempt,
    keyring: &Keyring,
    need: Need,
) -> Result<Fact, tokio_postgres::Error> {
    match need {
        Need::Reconciled => reconciled::fact(client, subject.change, Question::Agrees).await,
        Need::RollbackWindow => Ok(Fact::missing(need, "nobody has answered for it")),
        Need::Dependents => Ok(
            match look_now(client, subject, attempt, need, None).await? {
                Some(seen) => of_look(need, &seen, attempt.now),
                None => Fact::missing(need, "nothing to look at"),
            },
        ),
        _ => watched(client, subject, attempt, keyring, need).await,
    }
}

/// A need that must have held for the whole observation, in each source, and holds now.
async fn watched(
    client: &impl GenericClient,
    subject: &Subject<'_>,
    attempt: &Attempt,
    keyring: &Keyring,
    need: Need,
) -> Result<Fact, tokio_postgres::Error> {
    let long_enough =
        SignedDuration::try_from(subject.contract.observe.0).unwrap_or(SignedDuration::MAX);
    let mut found: Vec<Fact> = Vec::new();
    let mut since = None;
    for (source, looks) in look::looks(client, attempt, need).await? {
        let limit = if source == TARGET {
            FRESH
        } else {
            keyring.bundle_age()
        };
        let gap = if source == TARGET { GAP } else { limit };
        let judged = window::judge(&looks, long_enough, gap);
        if let (true, Window::Held { since: from, .. }) = (source == TARGET, &judged) {
            since = Some(*from);
        }
        found.push(of_window(need, &source, &looks, judged, limit));
    }
    if let Some(now) = look_now(client, subject, attempt, need, since).await? {
        let now = of_look(need, &now, attempt.now);
        if now.standing == Standing::Shown {
            // One look is no observation.
            if !found.iter().any(|fact| fact.source == TARGET) {
                found.push(Fact::missing(need, "nobody has observed it yet"));
            }
        } else {
            found.push(now);
        }
    }
    // The worst source is what is known; among equals the one that is nearest to stale.
    let left = |fact: &Fact| {
        let age = fact
            .at
            .map_or(0, |at| attempt.now.duration_since(at).as_secs());
        age.saturating_sub(fact.age_limit_s)
    };
    let worst = found
        .into_iter()
        .max_by_key(|fact| (rank(&fact.standing), left(fact)));
    Ok(worst.unwrap_or_else(|| {
        Fact::missing(
            need,
            if need.is_seen_here() {
                "it cannot be seen in this database"
            } else {
                "no bundle was handed in"
            },
        )
    }))
}

const fn rank(standing: &Standing) -> u8 {
    match standing {
        Standing::Shown | Standing::Attested { .. } | Standing::Excluded { .. } => 0,
        Standing::Missing => 1,
        Standing::Inconclusive => 2,
        Standing::Refuted => 3,
    }
}

fn of_look(need: Need, seen: &Seen, at: Timestamp) -> Fact {
    Fact {
        need,
        standing: match seen.holds {
            Some(true) => Standing::Shown,
            Some(false) => Standing::Refuted,
            None => Standing::Inconclusive,
        },
        source: TARGET.to_owned(),
        at: Some(at),
        age_limit_s: FRESH.as_secs(),
        detail: seen.detail.clone(),
    }
}

fn of_window(
    need: Need,
    source: &str,
    looks: &[Look],
    judged: Window,
    limit: SignedDuration,
) -> Fact {
    let last = looks.last();
    let (standing, detail) = match judged {
        Window::Held { since, until } => (
            Standing::Shown,
            format!(
                "it held from {since} to {until}: {}",
                last.map_or("", |look| look.detail.as_str())
            ),
        ),
        Window::Refuted { detail } => (Standing::Refuted, detail),
        Window::Inconclusive { why, .. } => (Standing::Inconclusive, why),
        Window::Empty => (Standing::Missing, "nobody has looked".to_owned()),
    };
    Fact {
        need,
        standing,
        source: source.to_owned(),
        at: last.map(|look| look.at),
        age_limit_s: limit.as_secs(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_ten_seconds_apart_and_one_may_be_missed() {
        assert_eq!(EVERY.as_secs(), 10);
        assert!(EVERY + EVERY < GAP && GAP < EVERY + EVERY + EVERY);
    }
}
