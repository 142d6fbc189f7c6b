//! What goes wrong with a call, drawn from the seed.
//!
//! A draw depends on (seed, purpose, effect, order, how many calls were before): the same seed hits the same
//! orders in every run, whatever the ids of the tasks are and however fast the machine is. Must never read a clock.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What the service does with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// Applies it and answers.
    Good,
    /// Applies it and closes the connection without an answer.
    LostAnswer,
    /// Closes the connection without applying it.
    LostRequest,
    /// Applies it and answers after a delay, when the caller has given up.
    Late,
    /// Applies it and answers 500.
    ErrorAfter,
    /// Answers 503 without applying it.
    ErrorBefore,
}

/// How many of 1000 calls go wrong in which way; the rest is good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// Per mille of [`Behaviour::LostAnswer`].
    pub lost_answer: u16,
    /// Per mille of [`Behaviour::LostRequest`].
    pub lost_request: u16,
    /// Per mille of [`Behaviour::Late`].
    pub late: u16,
    /// Per mille of [`Behaviour::ErrorAfter`].
    pub error_after: u16,
    /// Per mille of [`Behaviour::ErrorBefore`].
    pub error_before: u16,
}

impl Shares {
    /// Every call behaves like this.
    pub fn always(behaviour: Behaviour) -> Self {
        let mut shares = Self::default();
        match behaviour {
            Behaviour::Good => {}
            Behaviour::LostAnswer => shares.lost_answer = 1000,
            Behaviour::LostRequest => shares.lost_request = 1000,
            Behaviour::Late => shares.late = 1000,
            Behaviour::ErrorAfter => shares.error_after = 1000,
            Behaviour::ErrorBefore => shares.error_before = 1000,
        }
        shares
    }

    fn of(self, mut drawn: u64) -> Behaviour {
        for (share, behaviour) in [
            (self.lost_answer, Behaviour::LostAnswer),
            (self.lost_request, Behaviour::LostRequest),
            (self.late, Behaviour::Late),
            (self.error_after, Behaviour::ErrorAfter),
            (self.error_before, Behaviour::ErrorBefore),
        ] {
            if drawn < u64::from(share) {
                return behaviour;
            }
            drawn -= u64::from(share);
        }
        Behaviour::Good
    }
}

/// What goes wrong, by effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Of reservations.
    pub reserve: Shares,
    /// Of charges, both routes.
    pub charge: Shares,
    /// Of payouts.
    pub payout: Shares,
    /// Of notifications. Each of these ends at a person, so the demo keeps them few.
    pub notify: Shares,
    /// Of 1000 probes, how many are answered "cannot tell".
    pub cannot_tell: u16,
    /// Of 1000 keys, how many are forgotten when their retention has passed; the others are kept for good.
    pub forgets: u16,
    /// Of 1000 charges, how many are applied twice when the service `doubles`.
    pub doubled: u16,
    /// After so many calls of one effect for one order everything is good, so that every task ends.
    pub calls_until_good: u32,
}

impl Faults {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        let none = Shares::default();
        Self {
            reserve: none,
            charge: none,
            payout: none,
            notify: none,
            cannot_tell: 0,
            forgets: 1000,
            doubled: 30,
            calls_until_good: u32::MAX,
        }
    }

    /// The shares of the demo.
    pub fn demo() -> Self {
        let common = Shares {
            lost_answer: 40,
            lost_request: 20,
            late: 20,
            error_after: 30,
            error_before: 30,
        };
        Self {
            // Late ones meet a drain now and then: the older token then comes after the newer one.
            reserve: Shares {
                lost_request: 10,
                late: 50,
                ..common
            },
            charge: common,
            payout: Shares {
                lost_answer: 30,
                lost_request: 20,
                late: 20,
                error_after: 15,
                error_before: 15,
            },
            notify: Shares {
                lost_answer: 15,
                lost_request: 10,
                late: 5,
                error_after: 5,
                error_before: 5,
            },
            cannot_tell: 150,
            forgets: 750,
            doubled: 30,
            calls_until_good: 3,
        }
    }
}

/// A number below 1000 that depends on the seed and on what it is drawn for.
pub(super) fn draw(seed: u64, purpose: &str, effect: &str, reference: &str, nth: u32) -> u64 {
    let bytes = digest(&[
        &seed.to_string(),
        purpose,
        effect,
        reference,
        &nth.to_string(),
    ]);
    let mut first = [0_u8; 8];
    first.copy_from_slice(&bytes[..8]);
    u64::from_be_bytes(first) % 1000
}

/// A number for a receipt, stable for what it is made of.
pub(super) fn receipt(prefix: &str, parts: &[&str]) -> String {
    let hex = hex(&digest(parts)[..5]).to_uppercase();
    format!("{prefix}-{hex}")
}

/// The SHA-256 of a request, in hexadecimal.
pub(super) fn fingerprint(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        for half in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(half), 16));
        }
        text
    })
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        // Lengths keep ("ab", "c") apart from ("a", "bc").
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

impl Faults {
    /// What happens to the `nth` call (from 1) of an effect for one order.
    pub(super) fn behaviour(
        &self,
        seed: u64,
        effect: super::Effect,
        reference: &str,
        nth: u32,
    ) -> Behaviour {
        if nth > self.calls_until_good {
            return Behaviour::Good;
        }
        let shares = match effect {
            super::Effect::Reserve => self.reserve,
            super::Effect::Charge => self.charge,
            super::Effect::Payout => self.payout,
            super::Effect::Notify => self.notify,
        };
        shares.of(draw(seed, "behaviour", effect.name(), reference, nth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payments::Effect;

    #[test]
    fn a_draw_depends_on_each_of_its_parts() {
        let base = draw(1, "a", "charge", "O-1", 1);
        assert_eq!(base, draw(1, "a", "charge", "O-1", 1));
        let others = [
            draw(2, "a", "charge", "O-1", 1),
            draw(1, "b", "charge", "O-1", 1),
            draw(1, "a", "payout", "O-1", 1),
            draw(1, "a", "charge", "O-2", 1),
            draw(1, "a", "charge", "O-1", 2),
        ];
        assert!(
            others.iter().all(|other| *other != base),
            "{base} in {others:?}"
        );
    }

    #[test]
    fn the_demo_sees_every_behaviour_and_stays_mostly_good() {
        let faults = Faults::demo();
        for seed in 1..=5 {
            for effect in Effect::ALL {
                let drawn: Vec<Behaviour> = (1001..1301)
                    .map(|n| faults.behaviour(seed, effect, &format!("O-{n}"), 1))
                    .collect();
                let good = drawn.iter().filter(|b| **b == Behaviour::Good).count();
                assert!(
                    (230..300).contains(&good),
                    "seed {seed} {effect:?}: {good} of 300 good"
                );
            }
        }
        assert_eq!(
            faults.behaviour(1, Effect::Charge, "O-1", 4),
            Behaviour::Good
        );
    }

    #[test]
    fn always_is_always() {
        for b in [
            Behaviour::Good,
            Behaviour::LostAnswer,
            Behaviour::LostRequest,
            Behaviour::Late,
            Behaviour::ErrorAfter,
            Behaviour::ErrorBefore,
        ] {
            assert!((0..1000).all(|n| Shares::always(b).of(n) == b));
        }
    }
}
