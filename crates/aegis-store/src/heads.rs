//! What a claimer remembers of the (lane, tenant) heads that it saw, so that its next claim starts where this one ended.
//!
//! While somebody holds an old snapshot (a dump), what was finished since cannot leave the index, and each claim would pass
//! over all of it at every head. A hint is only a hint: what lies before it (a task that came with a head start) and heads that
//! are new are found by the full look, once a second, and whenever the hints do not fill the batch.
//!
//! Invariants: hints are kept only of a look that saw every head there was, so that none waits for its turn longer than that;
//! and they are given only for kinds that this look was for, else a kind whose slot has just become free would wait too.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::claim::KindCapacity;
use crate::generated::task::AcquireRow;

/// How long hints stand.
const FULL_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Claimers remembered at once; more forget each other's hints.
const CLAIMERS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Heads {
    by_worker: Mutex<HashMap<Uuid, Seen>>,
}

struct Seen {
    looked: Instant,
    /// The (queue, kind) pairs that it looked for.
    kinds: HashSet<(String, String)>,
    /// The lowest `ord` that can still be ready, by (lane, tenant).
    from: HashMap<(i32, i32), i64>,
}

/// As parameters of the next call.
#[derive(Default)]
pub(crate) struct Hints {
    pub(crate) lanes: Vec<i32>,
    pub(crate) tenants: Vec<i32>,
    pub(crate) ords: Vec<i64>,
}

impl Heads {
    /// What `worker` saw lately; nothing when it is time for a full look.
    pub(crate) fn hints(&self, worker: Uuid, capacity: &[KindCapacity]) -> Hints {
        let by_worker = self.lock();
        let mut hints = Hints::default();
        if let Some(seen) = by_worker.get(&worker)
            && seen.looked.elapsed() < FULL_LOOK_EVERY
            && kinds(capacity).all(|kind| seen.kinds.contains(&kind))
        {
            for ((lane, tenant), ord) in &seen.from {
                hints.lanes.push(*lane);
                hints.tenants.push(*tenant);
                hints.ords.push(*ord);
            }
        }
        hints
    }

    /// Takes an answer of acquire.
    pub(crate) fn learn(&self, worker: Uuid, capacity: &[KindCapacity], rows: &[AcquireRow]) {
        let mut by_worker = self.lock();
        if rows.first().is_some_and(|row| !row.hinted) {
            by_worker.remove(&worker);
            if !rows.iter().all(|row| row.saw_all) {
                return;
            }
            if by_worker.len() >= CLAIMERS_MAX {
                by_worker.clear();
            }
            let seen = Seen {
                looked: Instant::now(),
                kinds: kinds(capacity).collect(),
                from: HashMap::new(),
            };
            by_worker.insert(worker, seen);
        }
        let Some(seen) = by_worker.get_mut(&worker) else {
            return;
        };
        for row in rows {
            if let (Some(lane), Some(tenant), Some(ord)) = (row.lane, row.tenant, row.ord) {
                let from = seen.from.entry((lane, tenant)).or_insert(ord);
                *from = ord.max(*from);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, Seen>> {
        self.by_worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What there is room for.
fn kinds(capacity: &[KindCapacity]) -> impl Iterator<Item = (String, String)> {
    let free = capacity
        .iter()
        .filter(|one| one.kind_free > 0 && one.queue_free > 0);
    free.map(|one| (one.queue.clone(), one.kind.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(head: Option<(i32, i32, i64)>, hinted: bool, saw_all: bool) -> AcquireRow {
        AcquireRow {
            id: None,
            lane: head.map(|(lane, ..)| lane),
            tenant: head.map(|(_, tenant, _)| tenant),
            ord: head.map(|(.., ord)| ord),
            epoch: None,
            rev: None,
            floor: None,
            timeline: None,
            failures: None,
            interruptions: None,
            crashes: None,
            snoozes: None,
            parts: None,
            pending: None,
            cancel_cause: None,
            protocol: None,
            content_type: None,
            input: None,
            trace: None,
            cursor_lane: 0,
            cursor_tenant: 0,
            saw_all,
            hinted,
            adopted: true,
        }
    }

    fn capacity(kind: &str, kind_free: i32) -> KindCapacity {
        KindCapacity {
            queue: "q".to_owned(),
            kind: kind.to_owned(),
            kind_free,
            queue_free: 1,
        }
    }

    fn hints(heads: &Heads, worker: Uuid) -> Vec<(i32, i32, i64)> {
        let hints = heads.hints(worker, &[capacity("a", 1)]);
        let mut all: Vec<_> = hints
            .lanes
            .into_iter()
            .zip(hints.tenants)
            .zip(hints.ords)
            .map(|((lane, tenant), ord)| (lane, tenant, ord))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn each_head_goes_on_behind_what_was_claimed() {
        let (heads, worker) = (Heads::default(), Uuid::from_u128(1));
        assert!(hints(&heads, worker).is_empty());
        let full = |head| row(head, false, true);
        // Two heads, of which one was claimed from.
        heads.learn(
            worker,
            &[capacity("a", 1)],
            &[
                full(None),
                full(Some((1, 1, 10))),
                full(Some((1, 2, 20))),
                full(Some((1, 1, 12))),
            ],
        );
        assert_eq!(hints(&heads, worker), [(1, 1, 12), (1, 2, 20)]);
        let more = |head| row(head, true, false);
        heads.learn(
            worker,
            &[capacity("a", 1)],
            &[more(None), more(Some((1, 2, 25)))],
        );
        assert_eq!(hints(&heads, worker), [(1, 1, 12), (1, 2, 25)]);
        // The next full look forgets what is gone.
        heads.learn(
            worker,
            &[capacity("a", 1)],
            &[full(None), full(Some((1, 2, 26)))],
        );
        assert_eq!(hints(&heads, worker), [(1, 2, 26)]);
        assert!(hints(&heads, Uuid::from_u128(2)).is_empty());
    }

    #[test]
    fn a_look_that_did_not_see_everything_gives_no_hints() {
        let (heads, worker) = (Heads::default(), Uuid::from_u128(1));
        heads.learn(
            worker,
            &[capacity("a", 1)],
            &[row(None, false, true), row(Some((1, 1, 10)), false, true)],
        );
        heads.learn(
            worker,
            &[capacity("a", 1)],
            &[row(None, false, false), row(Some((1, 1, 11)), false, false)],
        );
        assert!(hints(&heads, worker).is_empty());
    }

    #[test]
    fn a_kind_that_had_no_room_at_the_look_asks_for_another() {
        let (heads, worker) = (Heads::default(), Uuid::from_u128(1));
        let answer = [row(None, false, true), row(Some((1, 1, 10)), false, true)];
        heads.learn(worker, &[capacity("a", 1), capacity("b", 0)], &answer);
        let lanes = |free| {
            heads
                .hints(worker, &[capacity("a", 1), capacity("b", free)])
                .lanes
        };
        assert_eq!(lanes(0), [1]);
        assert!(lanes(1).is_empty());
    }

    #[test]
    fn hints_are_forgotten_in_time_and_in_number() {
        let heads = Heads::default();
        let answer = [row(None, false, true), row(Some((1, 1, 10)), false, true)];
        for n in 0..=CLAIMERS_MAX as u128 {
            heads.learn(Uuid::from_u128(n), &[capacity("a", 1)], &answer);
        }
        assert_eq!(heads.lock().len(), 1);
        let last = Uuid::from_u128(CLAIMERS_MAX as u128);
        if let Some(seen) = heads.lock().get_mut(&last) {
            seen.looked -= FULL_LOOK_EVERY;
        }
        assert!(hints(&heads, last).is_empty());
    }
}
