//! Act 1: a worker is killed in the middle of its work.

use std::time::{Duration, Instant};

use super::look::until;
use super::stage::Stage;
use super::{DEMO, DemoError, ENGINE, count, few};
use crate::hold::Word;

pub(super) async fn act(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.story.act("1 of 6: a worker is killed");
    let name = stage.workers[0].name.clone();
    // Best with a call on its way, whose answer nobody will hear.
    let held = until(Duration::from_secs(12), async || {
        let running = stage.look.running(&name).await?;
        let called = running.iter().any(|(_, open)| open.is_some());
        let under_way = stage.look.progress().await?.ended() >= 20;
        Ok((called && under_way && running.len() >= 2).then_some(running))
    });
    let held = match held.await? {
        Some(held) => held,
        None => stage.look.running(&name).await?,
    };
    let mut worker = stage.workers.remove(0);
    worker.process.send(Word::Kill).await?;
    worker.process.ended(Duration::from_secs(5)).await;
    let killed_at = Instant::now();
    let orders: Vec<String> = held
        .iter()
        .map(|(order, open)| match open {
            Some(open) => format!("{order} (its {open} has no answer yet)"),
            None => order.clone(),
        })
        .collect();
    stage.tell(
        &DEMO,
        format!(
            "kills {} (SIGKILL, process {}). In its hands were {}",
            worker.name,
            worker.process.pid,
            few(&orders, 4)
        ),
    );
    let replacement = stage.start_workers(1, 1).await?;
    for worker in &replacement {
        stage.tell(&worker.actor, "takes its place");
    }
    stage.workers.extend(replacement);
    if held.is_empty() {
        stage.tell(&DEMO, "it held nothing, so there is nothing to take over");
        return Ok(());
    }
    let taken = until(Duration::from_secs(12), async || {
        let ends = stage.look.ends(&name, "crash,interruption").await?;
        let left = stage.look.running(&name).await?.len();
        Ok((ends > 0 && left == 0).then_some(ends))
    });
    match taken.await? {
        Some(ends) => stage.tell(
            &ENGINE,
            format!(
                "{:.1} s after the kill its lease has run out: {} back in the queue at a higher epoch.\n\
                 Each runs alone next time, in case the order itself is what kills workers. What was charged is not charged\n\
                 again: the key of the operation is the same",
                killed_at.elapsed().as_secs_f64(),
                count(ends, "order is", "orders are")
            ),
        ),
        None => stage.tell(&ENGINE, "has not taken its orders back within 12 s"),
    }
    stage.tell_progress().await
}
