//! What is known of one need, and whether a contract may go on with it. Missing, stale and inconclusive are never "shown".

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::need::Need;

/// How one need stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// Seen to hold, by this tool or in a signed bundle.
    Shown,
    /// A named person answers for it until a time.
    Attested {
        /// Who signed.
        by: String,
        /// From then on it counts no more.
        until: Timestamp,
    },
    /// The policy of this environment does not ask for it.
    Excluded {
        /// The policy's reason.
        reason: String,
    },
    /// Seen not to hold.
    Refuted,
    /// Looked at, but the look has a hole, or came out both ways.
    Inconclusive,
    /// Nobody looked.
    Missing,
}

/// One need with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What was asked.
    pub need: Need,
    /// How it stands.
    #[serde(flatten)]
    pub standing: Standing,
    /// Where it was seen: `target`, `bundle of NAME`, `attestation of NAME`, `policy`.
    pub source: String,
    /// When it was seen; none when it was not.
    pub at: Option<Timestamp>,
    /// Older than this it is stale. Seconds.
    pub age_limit_s: i64,
    /// What was seen, in a person's words.
    pub detail: String,
}

/// Why a fact does not carry a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Block {
    /// The need that is not met.
    pub need: Need,
    /// In a person's words.
    pub why: String,
    /// What to do.
    pub way_out: &'static str,
}

impl Fact {
    /// A need that nobody looked at.
    pub fn missing(need: Need, detail: impl Into<String>) -> Self {
        Self {
            need,
            standing: Standing::Missing,
            source: "none".to_owned(),
            at: None,
            age_limit_s: 0,
            detail: detail.into(),
        }
    }

    /// Why this does not carry a contract at `now`; none when it does.
    pub fn blocks(&self, now: Timestamp) -> Option<Block> {
        let why = match &self.standing {
            Standing::Shown => self.is_stale(now),
            Standing::Attested { by, until } if *until <= now => {
                Some(format!("the attestation of {by} ended at {until}"))
            }
            // An attestation has its own end; its age does not count.
            Standing::Excluded { .. } | Standing::Attested { .. } => None,
            Standing::Refuted => Some(self.detail.clone()),
            Standing::Inconclusive => Some(format!("inconclusive: {}", self.detail)),
            Standing::Missing => Some(format!("missing: {}", self.detail)),
        }?;
        Some(Block {
            need: self.need,
            why,
            way_out: match self.standing {
                Standing::Shown | Standing::Inconclusive | Standing::Missing => self.need.look_on(),
                _ => self.need.way_out(),
            },
        })
    }

    fn is_stale(&self, now: Timestamp) -> Option<String> {
        let Some(at) = self.at else {
            return Some("it says shown, but not when".to_owned());
        };
        let age = now.duration_since(at);
        if age < SignedDuration::from_secs(-60) {
            return Some(format!(
                "it was seen at {at}, which is in the future: a clock is wrong"
            ));
        }
        (age > SignedDuration::from_secs(self.age_limit_s)).then(|| {
            format!(
                "stale: seen {} s ago, and may be {} s old",
                age.as_secs(),
                self.age_limit_s
            )
        })
    }
}

/// What blocks, for the needs that were asked; a need without a fact blocks too.
pub fn blocks(asked: &[Need], facts: &[Fact], now: Timestamp) -> Vec<Block> {
    asked
        .iter()
        .filter_map(|need| match facts.iter().find(|fact| fact.need == *need) {
            Some(fact) => fact.blocks(now),
            None => Fact::missing(*need, "nothing was collected").blocks(now),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(standing: Standing, at: Option<&str>) -> Fact {
        Fact {
            need: Need::Workers,
            standing,
            source: "target".to_owned(),
            at: at.map(|at| at.parse().unwrap()),
            age_limit_s: 60,
            detail: "two workers of release 1".to_owned(),
        }
    }

    #[test]
    fn only_a_fresh_shown_fact_an_attestation_in_time_and_an_exclusion_carry() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let until = |at: &str| Standing::Attested {
            by: "ana".to_owned(),
            until: at.parse().unwrap(),
        };
        let carries = |standing, at| fact(standing, at).blocks(now).is_none();
        assert!(carries(Standing::Shown, Some("2026-11-30T09:59:30Z")));
        assert!(!carries(Standing::Shown, Some("2026-11-30T09:58:00Z")));
        assert!(!carries(Standing::Shown, Some("2026-11-30T10:05:00Z")));
        assert!(!carries(Standing::Shown, None));
        assert!(carries(until("2026-11-30T11:00:00Z"), None));
        assert!(!carries(until("2026-11-30T10:00:00Z"), None));
        let excluded = Standing::Excluded {
            reason: "no cluster here".to_owned(),
        };
        assert!(carries(excluded, None));
        for standing in [Standing::Refuted, Standing::Inconclusive, Standing::Missing] {
            assert!(!carries(standing, Some("2026-11-30T10:00:00Z")));
        }
    }

    #[test]
    fn only_what_was_seen_not_to_hold_sends_somebody_to_look_for_who_it_is() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        for need in [Need::Sightings, Need::Clients, Need::Workers, Need::Tasks] {
            let way_out = |standing, at| {
                let fact = Fact {
                    need,
                    ..fact(standing, at)
                };
                fact.blocks(now).unwrap().way_out
            };
            for standing in [Standing::Inconclusive, Standing::Missing] {
                let longer = way_out(standing, Some("2026-11-30T10:00:00Z"));
                assert!(longer.starts_with("observe longer"), "{need}: {longer}");
            }
            let stale = way_out(Standing::Shown, Some("2026-11-30T09:00:00Z"));
            assert!(stale.starts_with("observe longer"), "{need}: {stale}");
            let refuted = way_out(Standing::Refuted, Some("2026-11-30T10:00:00Z"));
            assert!(
                refuted.contains("then observe again") || refuted.contains("and observe again"),
                "{need}: {refuted}"
            );
        }
    }

    #[test]
    fn a_need_without_a_fact_blocks() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let facts = [fact(Standing::Shown, Some("2026-11-30T10:00:00Z"))];
        let found = blocks(&[Need::Workers, Need::Pods], &facts, now);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].need, Need::Pods);
        assert!(found[0].why.starts_with("missing"), "{}", found[0].why);
    }
}
