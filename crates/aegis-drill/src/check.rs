//! The checker: histories, the oracle's record and the database's facts in, counts out. Pure.
//!
//! Invariants: what is not there is never counted as fine (a task that nobody knows is lost); every count that is not 0 has an
//! example. Must never read a file, a clock or a database.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::facts::{Facts, Loss, Move};
use crate::history::{Event, Line};
use crate::oracle::CLASSES;
use crate::oracle::record::{Entry, What};
use crate::tail::Tail;

/// A statement that arrived in time and waited for a lock has to be judged after the wait. Nearer than this to the end of the
/// lease, the guard's moment and the trigger's may lie on two sides of it, on a busy machine.
const LATE_MS: i64 = 500;
/// Above any wait and any lease, and below the jumps that are made.
const JUMP_MS: i64 = 1_800_000;
/// A request that left before a jump has arrived, or never will, so soon.
const LIFE_NS: i64 = 5_000_000_000;
const EXAMPLES_MAX: usize = 20;
const RECONCILING: i16 = 4;
const SUCCEEDED: i16 = 5;
const UNKNOWN: i16 = 4;

/// What is judged.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What every process saw, in any order.
    pub history: Vec<Line>,
    /// What really happened outside.
    pub oracle: Vec<Entry>,
    /// What the database says.
    pub facts: Facts,
    /// What each promotion took away.
    pub tails: Vec<Tail>,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Accepted tasks.
    pub tasks: u64,
    /// Accepted tasks that are nowhere; effects and own rows that were reported and are not there.
    pub lost: u64,
    /// Effects beyond the first of an operation, by class; `own_sql` is the handler's own row.
    pub effects_doubled: BTreeMap<String, u64>,
    /// What became of the operations whose process was frozen between its last look at the lease and the call, by class. The
    /// second effect of a queryable one, which nothing on our side can prevent, is counted here and not among the doubled ones.
    #[serde(default)]
    pub window: BTreeMap<String, WindowFound>,
    /// Effects of a task that came after one of a newer claim, or that named no claim. `None`: an older program, which did not
    /// count it.
    #[serde(default)]
    pub out_of_order: Option<u64>,
    /// The same, where nothing on our side can prevent it: the request of a queryable operation that a process sent which had
    /// been frozen in the window, one over a jump of the database's clock, and those whose dispatch a promotion lost.
    #[serde(default)]
    pub out_of_order_apart: u64,
    /// Blind operations that were sent more than once.
    pub blind_repeated: u64,
    /// Writes that were let through under a claim that was over.
    pub stale_accepted: u64,
    /// Writes that were let through after the lease had ended.
    pub late_accepted: u64,
    /// Effects without a dispatch in the ledger, and tasks that nobody was told of.
    pub phantom: u64,
    /// Claims by a worker whose gate was closed.
    pub claims_after_drain: u64,
    /// Tasks that the reaper took from a worker that was not lost, and workers that were declared lost while they had a lease.
    /// `None`: an older program, which did not count it.
    #[serde(default)]
    pub taken_from_the_living: Option<u64>,
    /// Tasks that are neither ended nor visibly waiting for a person.
    pub stranded: u64,
    /// Tasks of a worker whose lease had ended that were claimed again.
    pub takeovers: u64,
    /// Reports of frozen processes that were refused.
    pub stale_refused: u64,
    /// Writes whose answer was lost, and that were read back.
    pub unknown_commits_resolved: u64,
    /// Claims whose answer was lost, and that were asked for again.
    pub claims_repeated: u64,
    /// Tasks that wait for a person, with an unknown operation.
    pub unknown_in_queue: u64,
    /// Failed or quarantined tasks: ended visibly, and for a person to look at.
    pub parked: u64,
    /// Gates that closed while the worker held tasks.
    pub drains_with_tasks: u64,
    /// Tasks with a newer checkpoint that a worker began which does not read it.
    #[serde(default)]
    pub incompatible: u64,
    /// Accepted tasks that stood only in the tail that a promotion lost: no engine can have them, and nobody else lost them.
    #[serde(default)]
    pub lost_with_the_tail: u64,
    /// Effects whose dispatch stood only in a lost tail, and was not made again.
    #[serde(default)]
    pub effects_without_ledger: u64,
    /// Effects of queryable and blind operations whose dispatch was lost with the tail, beyond the first: sent again by a
    /// database that had forgotten the first request.
    #[serde(default)]
    pub repeated_after_the_tail: BTreeMap<String, u64>,
    /// Second effects of queryable operations over a jump of the database's clock, which ended their quiet period too early.
    #[serde(default)]
    pub doubled_over_a_jump: u64,
    /// Moves of tasks that promotions lost.
    #[serde(default)]
    pub tail_rows: u64,
    /// Late reports of claims from before a promotion that were refused after it.
    #[serde(default)]
    pub refused_after_promotion: u64,
    /// Tasks that were taken back because the database's clock jumped past their lease.
    #[serde(default)]
    pub taken_over_at_a_jump: u64,
    /// Writes under a lease that stood further ahead than any is given, because the clock had jumped back.
    #[serde(default)]
    pub longer_after_a_jump: u64,
    /// By cut and class: tasks, lost, doubled, waiting for a person.
    pub cuts: BTreeMap<String, BTreeMap<String, CutFound>>,
    /// The first of what is broken, for a person.
    pub examples: Vec<String>,
}

/// What came of the tasks that stood at a cut when their process was killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutFound {
    /// Tasks.
    pub tasks: u64,
    /// Nowhere, neither ended nor waiting for a person, or ended without their effect.
    pub lost: u64,
    /// With more than one effect.
    pub doubled: u64,
    /// Waiting for a person.
    pub in_queue: u64,
}

/// Operations whose process woke up in the window, after their task had been taken over and had ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowFound {
    /// Tasks.
    pub tasks: u64,
    /// Requests that reached the outside, the takeover's among them.
    pub requests: u64,
    /// Effects beyond the first.
    pub doubled: u64,
}

impl Found {
    /// Doubled effects of all classes.
    pub fn doubled(&self) -> u64 {
        self.effects_doubled.values().sum()
    }

    /// Everything that must be 0.
    pub fn broken(&self) -> u64 {
        self.lost
            + self.doubled()
            + self.out_of_order.unwrap_or_default()
            + self.blind_repeated
            + self.stale_accepted
            + self.late_accepted
            + self.phantom
            + self.claims_after_drain
            + self.taken_from_the_living.unwrap_or_default()
            + self.stranded
            + self.incompatible
            + self
                .cuts
                .values()
                .flat_map(BTreeMap::values)
                .map(|cut| cut.lost + cut.doubled)
                .sum::<u64>()
    }

    fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(text());
        }
    }
}

/// Judges.
pub fn check(evidence: &Evidence) -> Found {
    let mut found = Found::default();
    let accepted: HashSet<Uuid> = evidence
        .history
        .iter()
        .filter_map(|line| match line.event {
            Event::Accepted { task } => Some(task),
            _ => None,
        })
        .collect();
    found.tasks = accepted.len() as u64;
    let effects = effects(&evidence.oracle);
    tasks(evidence, &accepted, &mut found);
    window(evidence, &mut found);
    outside(evidence, &effects, &mut found);
    order(evidence, &mut found);
    moves(&evidence.facts.moves, &mut found);
    living(&evidence.facts, &mut found);
    for tail in &evidence.tails {
        found.tail_rows += tail.rows;
        let (stale, late, after_drain) = tail.wrong;
        found.stale_accepted += stale;
        found.late_accepted += late;
        found.claims_after_drain += after_drain;
        if tail.wrong != (0, 0, 0) {
            found.example(|| {
                format!(
                    "in a lost tail: stale, late, after a drain: {:?}",
                    tail.wrong
                )
            });
        }
    }
    reports(evidence, &mut found);
    newer(evidence, &mut found);
    cuts(evidence, &effects, &mut found);
    found.drains_with_tasks = count(evidence.facts.drains.iter().filter(|one| one.held > 0));
    found
}

/// What moves alone tell.
pub(crate) fn judge_moves(all: &[Move]) -> Found {
    let mut found = Found::default();
    moves(all, &mut found);
    found
}

/// Who began tasks with a newer checkpoint than it reads.
fn newer(evidence: &Evidence, found: &mut Found) {
    let mut reads: HashSet<u32> = HashSet::new();
    let mut saved: HashMap<Uuid, i64> = HashMap::new();
    for line in &evidence.history {
        match line.event {
            Event::Reads { .. } => drop(reads.insert(line.pid)),
            Event::NewerSaved { task } => drop(saved.insert(task, line.ns)),
            _ => {}
        }
    }
    for line in &evidence.history {
        if let Event::Started { task } = line.event
            && saved.get(&task).is_some_and(|ns| *ns < line.ns)
            && !reads.contains(&line.pid)
        {
            found.incompatible += 1;
            found.example(|| {
                format!(
                    "incompatible: task {task} was begun by process {}",
                    line.pid
                )
            });
        }
    }
}

/// How many effects each operation had.
fn effects(oracle: &[Entry]) -> HashMap<&str, u64> {
    let mut effects = HashMap::new();
    for entry in oracle.iter().filter(|entry| entry.what == What::Applied) {
        *effects.entry(entry.operation.as_str()).or_default() += 1;
    }
    effects
}

fn tasks(evidence: &Evidence, accepted: &HashSet<Uuid>, found: &mut Found) {
    let known: HashSet<Uuid> = evidence.facts.tasks.iter().map(|one| one.task).collect();
    for task in accepted.difference(&known) {
        if evidence.tails.iter().any(|tail| tail.tasks.contains(task)) {
            found.lost_with_the_tail += 1;
            continue;
        }
        found.lost += 1;
        found.example(|| format!("lost: task {task} was accepted and is nowhere"));
    }
    for task in &evidence.facts.tasks {
        let id = task.task;
        if !accepted.contains(&id) {
            found.phantom += 1;
            found.example(|| format!("phantom: nobody was told of task {id}"));
        }
        match task.state {
            RECONCILING => found.unknown_in_queue += 1,
            6 | 8 => found.parked += 1,
            0..RECONCILING => {
                found.stranded += 1;
                let state = task.state;
                found.example(|| format!("stranded: task {id} is in state {state}"));
            }
            _ => {}
        }
        if task.own > 1 {
            *found
                .effects_doubled
                .entry("own_sql".to_owned())
                .or_default() += task.own - 1;
            found.example(|| format!("doubled: task {id} has {} rows of its own", task.own));
        }
        if task.own == 0 && task.state == SUCCEEDED {
            found.lost += 1;
            found.example(|| format!("lost: task {id} succeeded without its own row"));
        }
    }
}

fn outside(evidence: &Evidence, effects: &HashMap<&str, u64>, found: &mut Found) {
    for class in CLASSES {
        found.effects_doubled.entry(class.to_owned()).or_default();
    }
    let mut class_of: HashMap<&str, &str> = HashMap::new();
    let mut sent: HashMap<&str, u64> = HashMap::new();
    let mut by_task: HashSet<(&str, &str)> = HashSet::new();
    for entry in &evidence.oracle {
        if matches!(entry.what, What::Applied | What::Lost) {
            class_of.insert(&entry.operation, &entry.class);
            *sent.entry(&entry.operation).or_default() += 1;
        }
        if entry.what == What::Applied {
            by_task.insert((&entry.task, &entry.class));
        }
    }
    let in_window = in_window(evidence);
    let over_a_jump = over_a_jump(evidence);
    for (operation, count) in effects {
        let class = class_of.get(operation).copied().unwrap_or("unknown");
        let mut beyond = count - 1;
        // Nobody sent again but a database that had forgotten the first request; once for each time.
        if matches!(class, "queryable" | "blind") {
            let forgotten = forgotten(evidence, operation).min(beyond);
            beyond -= forgotten;
            if forgotten > 0 {
                *found
                    .repeated_after_the_tail
                    .entry(class.to_owned())
                    .or_default() += forgotten;
            }
        }
        // The frozen process sends once: a third effect is somebody else's.
        if class == "queryable" && beyond == 1 && in_window.contains(operation) {
            continue;
        }
        if class == "queryable" && beyond == 1 && over_a_jump.contains(operation) {
            found.doubled_over_a_jump += 1;
            continue;
        }
        if beyond > 0 {
            *found.effects_doubled.entry(class.to_owned()).or_default() += beyond;
            found.example(|| format!("doubled: {class} operation {operation} has {count} effects"));
        }
    }
    for (operation, count) in sent {
        if class_of.get(operation) == Some(&"blind") && count > 1 + forgotten(evidence, operation) {
            found.blind_repeated += 1;
            found.example(|| {
                format!("repeated: blind operation {operation} was sent {count} times")
            });
        }
    }
    let ledger: HashMap<&str, _> = evidence
        .facts
        .operations
        .iter()
        .map(|one| (one.id.as_str(), one))
        .collect();
    for operation in effects.keys() {
        if ledger.get(operation).is_none_or(|one| one.state == 0) {
            if forgotten(evidence, operation) > 0 {
                found.effects_without_ledger += 1;
                continue;
            }
            found.phantom += 1;
            found.example(|| {
                format!("phantom: operation {operation} has an effect and no dispatch")
            });
        }
    }
    for (id, operation) in ledger {
        if operation.state == 2 && !effects.contains_key(id) {
            found.lost += 1;
            found.example(|| format!("lost: operation {id} succeeded and has no effect"));
        }
        if operation.state == UNKNOWN
            && !evidence
                .facts
                .tasks
                .iter()
                .any(|task| task.task == operation.task && task.state == RECONCILING)
        {
            found.stranded += 1;
            found.example(|| format!("stranded: operation {id} is unknown and in nobody's queue"));
        }
    }
    for line in &evidence.history {
        if let Event::Told { task, class } = &line.event
            && !by_task.contains(&(task.to_string().as_str(), class.as_str()))
        {
            found.lost += 1;
            found.example(|| {
                format!("lost: task {task} was told of a {class} effect that is not there")
            });
        }
    }
}

/// Do the effects of each task stand in the order of its claims? The record's order is the order of the effects.
fn order(evidence: &Evidence, found: &mut Found) {
    let (in_window, over_a_jump) = (in_window(evidence), over_a_jump(evidence));
    let mut newest: HashMap<&str, (i64, i64, i64)> = HashMap::new();
    let mut wrong = 0;
    let applied = evidence.oracle.iter();
    for entry in applied.filter(|one| one.what == What::Applied) {
        let (task, operation) = (entry.task.as_str(), entry.operation.as_str());
        let before = newest.get(task).copied();
        if let Some(token) = entry
            .token
            .filter(|token| before.is_none_or(|b| b <= *token))
        {
            newest.insert(task, token);
            continue;
        }
        let queryable = entry.class == "queryable";
        let late = queryable && (in_window.contains(operation) || over_a_jump.contains(operation));
        if entry.token.is_some() && (late || forgotten(evidence, operation) > 0) {
            found.out_of_order_apart += 1;
            continue;
        }
        wrong += 1;
        found.example(|| {
            format!(
                "out of order: operation {operation} of task {task} took effect under {:?} after {before:?}",
                entry.token
            )
        });
    }
    found.out_of_order = Some(wrong);
}

/// How often the dispatch of an operation was lost with a tail.
fn forgotten(evidence: &Evidence, operation: &str) -> u64 {
    let tails = evidence.tails.iter();
    count(tails.filter(|tail| tail.intents.contains(operation)))
}

/// Operations between whose first two effects, or a moment before, the database's clock jumped forward.
fn over_a_jump(evidence: &Evidence) -> HashSet<&str> {
    let jumps: Vec<i64> = evidence
        .history
        .iter()
        .filter_map(|line| match line.event {
            Event::DatabaseClock { moved_ms } if moved_ms > JUMP_MS => Some(line.ns),
            _ => None,
        })
        .collect();
    let mut first: HashMap<&str, i64> = HashMap::new();
    let mut over = HashSet::new();
    for entry in evidence
        .oracle
        .iter()
        .filter(|one| one.what == What::Applied)
    {
        let operation = entry.operation.as_str();
        let Some(before) = first.get(operation) else {
            first.insert(operation, entry.ns);
            continue;
        };
        let between = before - LIFE_NS..entry.ns;
        if jumps.iter().any(|jump| between.contains(jump)) {
            over.insert(operation);
        }
    }
    over
}

/// Operations of the tasks whose process was frozen in the window.
fn in_window(evidence: &Evidence) -> HashSet<&str> {
    let tasks: HashSet<Uuid> = evidence
        .history
        .iter()
        .filter_map(|line| match line.event {
            Event::Window { task, .. } => Some(task),
            _ => None,
        })
        .collect();
    let operations = evidence.facts.operations.iter();
    operations
        .filter(|one| tasks.contains(&one.task))
        .map(|one| one.id.as_str())
        .collect()
}

fn window(evidence: &Evidence, found: &mut Found) {
    for line in &evidence.history {
        let Event::Window { task, class } = &line.event else {
            continue;
        };
        let task = task.to_string();
        let of = |what: &[What]| {
            count(
                evidence
                    .oracle
                    .iter()
                    .filter(|entry| entry.task == task && what.contains(&entry.what)),
            )
        };
        let one = found.window.entry(class.clone()).or_default();
        one.tasks += 1;
        one.requests += of(&[What::Applied, What::Replayed, What::Refused]);
        one.doubled += of(&[What::Applied]).saturating_sub(1);
    }
}

/// Was this move of an owned row let through after the owner's lease?
///
/// A guard judges after its statement arrived: a lease that was over then is proof, whatever the machine was busy with, and so
/// is a lease that is not there. One that ended while the statement waited is proof only when it is long over.
fn is_late(one: &Move) -> bool {
    match (one.arrived_late_ms, one.late_ms) {
        // No statement lasts so long: the clock was moved under it.
        (Some(arrived), Some(seen)) if arrived <= 0 && seen - arrived > JUMP_MS => false,
        (Some(arrived), Some(seen)) => arrived > 0 || seen > LATE_MS,
        _ => true,
    }
}

fn moves(moves: &[Move], found: &mut Found) {
    let mut claims: HashSet<(Uuid, i64)> = HashSet::new();
    let mut taken: HashSet<Uuid> = HashSet::new();
    for one in moves {
        let task = one.task;
        let claims_it = one.new_claim.is_some() && one.new_claim != one.old_claim;
        let goes_back = one.new_epoch.is_some_and(|epoch| epoch < one.old_epoch)
            || one.new_rev.is_some_and(|rev| rev < one.old_rev);
        if goes_back || (claims_it && one.old_claim.is_some()) {
            found.stale_accepted += 1;
            found.example(|| format!("stale: task {task} moved from {one:?}"));
        }
        if claims_it {
            if !claims.insert((task, one.new_epoch.unwrap_or_default())) {
                found.stale_accepted += 1;
                found.example(|| format!("stale: task {task} was claimed twice at one epoch"));
            }
            if one.worker_state != Some(0) {
                found.claims_after_drain += 1;
                found.example(|| format!("after drain: task {task} was claimed by a closed gate"));
            }
            if taken.remove(&task) {
                found.takeovers += 1;
            }
        }
        let over = one.late_ms.unwrap_or(i64::MIN);
        // What nobody executes is taken back without a guard, and has no owner or another epoch after the first of these writes.
        // Whatever else moves an owned row does so on the owner's behalf.
        let let_go = one.new_owner.is_none() && one.new_claim.is_none();
        let takes_back = one.housekeeping && (let_go || one.new_epoch != Some(one.old_epoch));
        if one.old_owner.is_some() && !takes_back && is_late(one) {
            found.late_accepted += 1;
            found.example(|| format!("late: task {task} was written after its lease: {one:?}"));
        }
        if one.old_owner.is_some() && !takes_back && one.late_ms.is_some_and(|late| late < -JUMP_MS)
        {
            found.longer_after_a_jump += 1;
        }
        if one.old_owner.is_some() && one.new_owner.is_none() && one.new_rev.is_some() && over > 0 {
            taken.insert(task);
            if over > JUMP_MS {
                found.taken_over_at_a_jump += 1;
            }
        }
    }
}

/// What housekeeping took from who was still there. A lease is judged and the loss seen a moment apart, so one that has no more than
/// that left is over; one that has an hour left was over before the clock was moved back.
fn living(facts: &Facts, found: &mut Found) {
    let early = |one: &&Loss| one.left_ms > LATE_MS && one.left_ms < JUMP_MS;
    let tasks: Vec<&Move> = facts.moves.iter().filter(|one| one.living).collect();
    let workers: Vec<&Loss> = facts.losses.iter().filter(early).collect();
    for one in &tasks {
        let task = one.task;
        found.example(|| format!("taken: task {task} was taken from a worker that was not lost"));
    }
    for Loss { worker, left_ms } in &workers {
        found.example(|| {
            format!("taken: worker {worker} was declared lost with {left_ms} ms of its lease left")
        });
    }
    found.taken_from_the_living = Some((tasks.len() + workers.len()) as u64);
}

/// Reports of frozen processes, and what workers counted.
fn reports(evidence: &Evidence, found: &mut Found) {
    let mut counted: HashMap<u32, (u64, u64)> = HashMap::new();
    for line in &evidence.history {
        match &line.event {
            Event::Late {
                task,
                epoch,
                report,
                answer,
            } => match answer.as_str() {
                "fenced" => {
                    found.stale_refused += 1;
                    if spans_promotion(evidence, *task, *epoch, line) {
                        found.refused_after_promotion += 1;
                    }
                }
                "applied" => {
                    let newer = evidence
                        .facts
                        .moves
                        .iter()
                        .any(|one| one.task == *task && one.old_epoch > *epoch);
                    *if newer {
                        &mut found.stale_accepted
                    } else {
                        &mut found.late_accepted
                    } += 1;
                    found.example(|| {
                        format!("late: {report} of task {task} at epoch {epoch} was applied")
                    });
                }
                _ => {}
            },
            Event::Counts {
                unknown_resolved,
                acquire_repeated,
                ..
            } => {
                let most = counted.entry(line.pid).or_default();
                most.0 = most.0.max(*unknown_resolved);
                most.1 = most.1.max(*acquire_repeated);
            }
            _ => {}
        }
    }
    found.unknown_commits_resolved = counted.values().map(|counts| counts.0).sum();
    found.claims_repeated = counted.values().map(|counts| counts.1).sum();
}

/// Was this report's claim made before a promotion, and the report after it?
fn spans_promotion(evidence: &Evidence, task: Uuid, epoch: i64, report: &Line) -> bool {
    let claimed = evidence.history.iter().find(|line| {
        line.pid == report.pid
            && matches!(line.event, Event::Claimed { task: t, epoch: e } if t == task && e == epoch)
    });
    claimed.is_some_and(|claimed| {
        let between = claimed.ns..report.ns;
        let mut tails = evidence.tails.iter();
        tails.any(|tail| between.contains(&tail.promoted_ns))
    })
}

/// The tasks that stood at a cut: `operation CLASS/KEY CUT`.
fn cuts(evidence: &Evidence, effects: &HashMap<&str, u64>, found: &mut Found) {
    let tasks: HashMap<Uuid, i16> = evidence
        .facts
        .tasks
        .iter()
        .map(|task| (task.task, task.state))
        .collect();
    let mut of_task: HashMap<Uuid, &str> = HashMap::new();
    for operation in &evidence.facts.operations {
        of_task.insert(operation.task, &operation.id);
    }
    let mut seen = HashSet::new();
    for line in &evidence.history {
        let Event::Held { task, point } = &line.event else {
            continue;
        };
        if !seen.insert(*task) {
            continue;
        }
        let words: Vec<&str> = point.split([' ', '/']).collect();
        let (Some(class), Some(cut)) = (words.get(1), words.last()) else {
            continue;
        };
        let of_cut = found.cuts.entry((*cut).to_owned()).or_default();
        let of_class = of_cut.entry((*class).to_owned()).or_default();
        of_class.tasks += 1;
        let happened = of_task.get(task).and_then(|id| effects.get(id)).copied();
        let happened = happened.unwrap_or_default();
        match tasks.get(task) {
            Some(&RECONCILING) => of_class.in_queue += 1,
            Some(&SUCCEEDED) if happened > 0 => {}
            _ => of_class.lost += 1,
        }
        if happened > 1 {
            of_class.doubled += 1;
        }
    }
}

fn count(all: impl Iterator) -> u64 {
    all.count() as u64
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
