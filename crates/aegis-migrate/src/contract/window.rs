//! Whether something held during a whole time, judged from looks at it. A time without a look is a hole, not "held".

use jiff::{SignedDuration, Timestamp};

/// One look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When, by the target's clock.
    pub at: Timestamp,
    /// Whether it held; none when the look failed.
    pub holds: Option<bool>,
    /// What was seen.
    pub detail: String,
}

/// What looks say of a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Window {
    /// It held in every look, from `since` on, without a hole, and long enough.
    Held {
        /// The first look of the unbroken time.
        since: Timestamp,
        /// The last.
        until: Timestamp,
    },
    /// It did not hold in the newest look.
    Refuted {
        /// What was seen.
        detail: String,
    },
    /// Not yet long enough, or a hole, or a failed look.
    Inconclusive {
        /// Why, in a person's words.
        why: String,
        /// How much of the time is covered by now.
        covered: SignedDuration,
    },
    /// No look.
    Empty,
}

/// Judges looks in the order of their time. `gap` is the longest time between two looks that is no hole.
pub fn judge(looks: &[Look], long_enough: SignedDuration, gap: SignedDuration) -> Window {
    let Some(last) = looks.last() else {
        return Window::Empty;
    };
    if last.holds == Some(false) {
        return Window::Refuted {
            detail: last.detail.clone(),
        };
    }
    // Backwards from the newest: as far as every look held and no hole is between two of them.
    let mut since = last.at;
    let mut broken: Option<String> = None;
    let mut later: Option<&Look> = None;
    for look in looks.iter().rev() {
        if let Some(later) = later
            && later.at.duration_since(look.at) > gap
        {
            broken = Some(format!(
                "nobody looked between {} and {}",
                look.at, later.at
            ));
            break;
        }
        match look.holds {
            Some(true) => since = look.at,
            Some(false) => {
                broken = Some(format!("it did not hold at {}: {}", look.at, look.detail));
                break;
            }
            None => {
                broken = Some(format!("the look at {} failed: {}", look.at, look.detail));
                break;
            }
        }
        later = Some(look);
    }
    let covered = last.at.duration_since(since);
    if last.holds == Some(true) && covered >= long_enough {
        return Window::Held {
            since,
            until: last.at,
        };
    }
    let covered = if last.holds == Some(true) {
        covered
    } else {
        SignedDuration::ZERO
    };
    Window::Inconclusive {
        why: broken.unwrap_or_else(|| {
            format!(
                "watched for {} s of {} s",
                covered.as_secs(),
                long_enough.as_secs()
            )
        }),
        covered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: SignedDuration = SignedDuration::from_secs(60);
    const GAP: SignedDuration = SignedDuration::from_secs(25);

    fn looks(seen: &[(i64, Option<bool>)]) -> Vec<Look> {
        seen.iter()
            .map(|(second, holds)| Look {
                at: Timestamp::from_second(1_800_000_000 + second).unwrap(),
                holds: *holds,
                detail: format!("look {second}"),
            })
            .collect()
    }

    fn judged(seen: &[(i64, Option<bool>)]) -> Window {
        judge(&looks(seen), ENOUGH, GAP)
    }

    const fn held(second: i64) -> (i64, Option<bool>) {
        (second, Some(true))
    }

    #[test]
    fn held_without_a_hole_for_long_enough() {
        let seen = [held(0), held(20), held(40), held(60)];
        assert!(matches!(judged(&seen), Window::Held { .. }));
        assert!(matches!(judged(&seen[..3]), Window::Inconclusive { .. }));
        assert_eq!(judged(&[]), Window::Empty);
    }

    #[test]
    fn a_hole_begins_the_time_anew() {
        let Window::Inconclusive { why, covered } =
            judged(&[held(0), held(20), held(60), held(80), held(100)])
        else {
            panic!("a hole of 40 s is no proof");
        };
        assert!(why.contains("nobody looked"), "{why}");
        assert_eq!(covered.as_secs(), 40);
        let later = [held(0), held(60), held(80), held(100), held(120)];
        assert!(matches!(judged(&later), Window::Held { .. }));
    }

    #[test]
    fn one_look_in_which_it_did_not_hold_begins_the_time_anew() {
        let seen = [held(0), held(20), (40, Some(false)), held(60), held(80)];
        assert!(matches!(judged(&seen), Window::Inconclusive { .. }));
        let last = [held(0), held(20), held(40), held(60), (80, Some(false))];
        assert!(matches!(judged(&last), Window::Refuted { .. }));
    }

    #[test]
    fn a_look_that_failed_is_not_one_that_held() {
        let last = [held(0), held(20), held(40), held(60), (80, None)];
        let Window::Inconclusive { covered, .. } = judged(&last) else {
            panic!("a failed look proves nothing");
        };
        assert_eq!(covered, SignedDuration::ZERO);
        let inside = [held(0), held(20), (40, None), held(60), held(80)];
        assert!(matches!(judged(&inside), Window::Inconclusive { .. }));
    }

    #[test]
    fn clocks_that_stand_cover_nothing() {
        assert!(matches!(
            judged(&[held(0), held(0), held(0)]),
            Window::Inconclusive { .. }
        ));
    }
}
