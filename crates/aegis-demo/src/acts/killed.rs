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
        let now = stage.look.progress().await?;
        let under_way = now.ended() >= 20.min(now.all() / 10);
        let good = called && under_way && running.len() >= 2;
        Ok((good || now.is_idle()).then_some(running))
    });
    let held = match held.await? {
        Some(held) => held,
        None => stage.look.running(&name).await?,
    };
    if held.is_empty() {
        stage.tell(
            &DEMO,
            format!("{name} holds nothing, so its end would show nothing; it is left alive"),
        );
        return Ok(());
    }
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
                 Each runs alone next time, in case the order itself is what kills workers. What was charged is not charged \
                 again: the key of the operation is the same",
                killed_at.elapsed().as_secs_f64(),
                count(ends, "order is", "orders are")
            ),
        ),
        None => stage.tell(&ENGINE, "has not taken its orders back within 12 s"),
    }
    stage.tell_progress().await
}
