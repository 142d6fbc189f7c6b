//! The judgement: both witnesses together, counts, breaches, and what comes out of them.
//!
//! A breach that a damaged record alone could make seem so does not fail a run by itself; it makes it inconclusive,
//! and is listed all the same. When the two witnesses are of different runs nothing is compared.

use super::breach::{Counts, Doubt, Judgement, Verdict};
use super::facts::{EngineFacts, TaskState};
use super::reading::Record;
use super::{effects, engine};

/// Judges a run.
pub fn judge(facts: &EngineFacts, record: &Record) -> Verdict {
    let mut doubts = record.doubts.clone();
    let mut counts = Counts::default();
    let mut breaches = Vec::new();
    let together = same_run(facts, record, &mut doubts);
    engine::judge(facts, &mut counts, &mut breaches);
    if together {
        effects::judge(facts, &record.lines, &mut counts, &mut breaches);
    }
    if facts.submissions.is_empty() {
        doubts.push(Doubt::NothingSubmitted);
    }
    for task in facts
        .tasks
        .iter()
        .filter(|task| task.state == TaskState::Other)
    {
        doubts.push(Doubt::StateUnknown {
            task: task.id.clone(),
        });
    }
    let proven = |breach: &super::Breach| doubts.is_empty() || !breach.kind.rests_on_absence();
    let verdict = if breaches.iter().any(proven) {
        Judgement::Fail
    } else if doubts.is_empty() {
        Judgement::Pass
    } else {
        Judgement::Inconclusive
    };
    Verdict {
        verdict,
        counts,
        breaches,
        doubts,
    }
}

fn same_run(facts: &EngineFacts, record: &Record, doubts: &mut Vec<Doubt>) -> bool {
    match (record.run(), facts.run.as_deref()) {
        (_, None) => {
            doubts.push(Doubt::RunUnknown);
            false
        }
        // A record without its head, or without any line: a doubt that the reading has raised.
        (None, Some(_)) => !record.lines.is_empty(),
        (Some(ours), Some(theirs)) if ours == theirs => true,
        (Some(ours), Some(theirs)) => {
            doubts.push(Doubt::OtherRun {
                record: ours.to_owned(),
                database: theirs.to_owned(),
            });
            false
        }
    }
}
