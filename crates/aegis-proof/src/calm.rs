//! Liveness (RL-I10): from here on nothing goes wrong any more, and every task ends within a bounded number of steps.
//!
//! The continuation is one path and not all of them: requests arrive, replies are not lost, who died or drained is started again,
//! time moves only when nothing else can happen, people decide when they may. A state from which this path does not end every task
//! is a trap: something is waited for that no longer comes.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;

use stateright::Model as _;

use crate::action::Action;
use crate::bounds::Bounds;
use crate::protocol::Protocol;
use crate::world::{Mode, World};

/// The property's name.
pub const SERVED: &str = "RL-I10 served in the end";
/// Longer than any path of the calm that ends.
const STEPS_MAX: usize = 400;
/// Until when time may move: far behind every explored state, since a moment is a byte here.
const TICKS: u8 = 120;
/// Far more claims than a task needs to end: who goes round uses them up.
const CLAIMS: u8 = 60;
/// Processes of which there are always some left.
const ENOUGH: u8 = 200;

/// The calm after the explored part, and the states that are known to end in it.
#[derive(Debug)]
pub struct Calm {
    protocol: Protocol,
    served: Mutex<HashSet<u64>>,
}

impl Calm {
    /// After a world of these bounds.
    pub fn after(bounds: &Bounds) -> Self {
        Self {
            protocol: Protocol::new(Bounds {
                ticks: TICKS,
                claims: CLAIMS,
                // Nobody crashes here; it bounds how many processes may be started.
                crashes: ENOUGH,
                ..bounds.clone()
            }),
            served: Mutex::default(),
        }
    }

    /// Whether every task ends; else the steps to where it stands still or goes round.
    ///
    /// # Errors
    /// The path, of which the last steps show what is waited for.
    pub fn serves(&self, world: &World) -> Result<(), Vec<Action>> {
        let mut world = world.clone();
        let mut seen = Vec::new();
        let mut path = Vec::new();
        while !world.is_over() {
            let known = fingerprint(&world);
            if self.is_known(known) {
                break;
            }
            if path.len() >= STEPS_MAX {
                return Err(path);
            }
            seen.push(known);
            // Whoever has drained is replaced by its successor.
            for process in &mut world.processes {
                if process.mode == Mode::Drained {
                    process.mode = Mode::Dead;
                }
            }
            let Some((action, next)) = self.step(&world) else {
                return Err(path);
            };
            path.push(action);
            world = next;
        }
        if let Ok(mut served) = self.served.lock() {
            served.extend(seen);
        }
        Ok(())
    }

    fn is_known(&self, known: u64) -> bool {
        self.served
            .lock()
            .is_ok_and(|served| served.contains(&known))
    }

    /// The first thing that can happen, in the order of a calm day.
    fn step(&self, world: &World) -> Option<(Action, World)> {
        let mut actions = Vec::new();
        self.protocol.actions(world, &mut actions);
        let mut actions: Vec<_> = actions
            .into_iter()
            .filter_map(|action| rank(&action).map(|rank| (rank, action)))
            .collect();
        actions.sort_by_key(|(rank, _)| *rank);
        actions.into_iter().find_map(|(_, action)| {
            let next = self.protocol.next_state(world, action)?;
            Some((action, next))
        })
    }
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Its turn; `None`: it does not happen on a calm day.
fn rank(action: &Action) -> Option<u8> {
    Some(match action {
        Action::Renew { .. } => 0,
        Action::Deliver { lost: false, .. } => 1,
        Action::Claim { lost: false, .. } | Action::Write { lost: false, .. } => 2,
        Action::AskAgain { .. } | Action::ReadBack { .. } => 3,
        Action::Call { .. } => 4,
        Action::Decide { .. } => 5,
        Action::TimeOut { .. } => 6,
        Action::StandDown { .. } | Action::HandBack { .. } | Action::Finish { .. } => 7,
        Action::Reap { .. } | Action::ReapWrite { .. } | Action::ReturnAbsent { .. } => 8,
        Action::Resolve { .. } => 9,
        Action::Register { .. } => 10,
        Action::Replicate => 11,
        Action::Acquire { lost: false, .. } => 12,
        Action::Tick => 13,
        _ => return None,
    })
}
