//! Act 2: a worker is frozen past its lease, and thawed with finished work in its hands.
//!
//! The demo tells that worker to keep what it has finished in hand for a moment (a file that its handler looks for), so that
//! the freeze certainly meets finished work. What happens then is the engine's doing.

use std::path::Path;
use std::time::Duration;

use super::look::until;
use super::stage::{LEASE, Stage};
use super::{DEMO, DemoError, ENGINE, count, few};
use crate::hold::Word;

pub(super) async fn act(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage
        .story
        .act("2 of 6: a worker is frozen, loses its lease, and thaws with finished work");
    for last_try in [false, true] {
        if freeze_and_thaw(stage).await? {
            return stage.tell_progress().await;
        }
        let then = if last_try {
            "the verifier will say what that means"
        } else {
            "once more"
        };
        stage.tell(&DEMO, format!("no stale write was seen this time; {then}"));
    }
    Ok(())
}

async fn freeze_and_thaw(stage: &mut Stage<'_>) -> Result<bool, DemoError> {
    let (name, hold) = (stage.workers[0].name.clone(), stage.workers[0].hold.clone());
    let before = stage.look.fenced(&name).await?.len();
    let lost_before = stage.look.ends(&name, "crash,interruption").await?;
    create(&hold)?;
    let finished = until(Duration::from_secs(6), async || {
        let in_hand = stage.look.finished_in_hand(&name).await?;
        let now = stage.look.progress().await?;
        // With nothing else in work, no more will come.
        let last =
            now.waiting == 0 && usize::try_from(now.running).is_ok_and(|n| n <= in_hand.len());
        Ok((in_hand.len() >= 2 || last).then_some(in_hand))
    });
    let finished = match finished.await? {
        Some(finished) => finished,
        None => stage.look.finished_in_hand(&name).await?,
    };
    if finished.is_empty() {
        remove(&hold)?;
        stage.tell(
            &DEMO,
            format!("{name} has nothing finished in its hands, so there is nothing to show"),
        );
        return Ok(true);
    }
    // From the last answer to the hold it is a checkpoint's way.
    tokio::time::sleep(Duration::from_millis(150)).await;
    stage.workers[0].process.send(Word::Stop).await?;
    stage.tell(
        &DEMO,
        format!(
            "freezes {name} (SIGSTOP). It has just finished {} and was about to say so",
            few(&finished, 4)
        ),
    );
    // Its lease, and the second within which somebody takes its tasks back.
    let taken = until(LEASE * 4, async || {
        let ends = stage.look.ends(&name, "crash,interruption").await? - lost_before;
        let left = stage.look.running(&name).await?.len();
        Ok((ends > 0 && left == 0).then_some(ends))
    });
    match taken.await? {
        Some(ends) => stage.tell(
            &ENGINE,
            format!(
                "its lease of {} s has run out: {} taken from it, for others to execute at a higher epoch",
                LEASE.as_secs(),
                count(ends, "order is", "orders are")
            ),
        ),
        None => stage.tell(&ENGINE, "nothing was taken back from it"),
    }
    remove(&hold)?;
    stage.workers[0].process.send(Word::Cont).await?;
    stage.tell(
        &DEMO,
        format!(
            "thaws {name} (SIGCONT). It knows nothing of all that, and says what it has finished"
        ),
    );
    let refused = until(Duration::from_secs(5), async || {
        let fenced = stage.look.fenced(&name).await?;
        Ok((fenced.len() >= before + finished.len().max(1)).then_some(fenced))
    });
    let refused = match refused.await? {
        Some(refused) => refused,
        None => stage.look.fenced(&name).await?,
    };
    let refused = &refused[before.min(refused.len())..];
    let Some((order, verb, epoch, current)) = refused.first() else {
        return Ok(false);
    };
    let current = current.map_or_else(
        || "its task has ended".to_owned(),
        |current| format!("the task is at {current}"),
    );
    stage.tell(
        &ENGINE,
        format!(
            "refuses {}: the first is `{verb}` of {order} with epoch {epoch}, and {current}. Nothing of it was written",
            count(i64::try_from(refused.len()).unwrap_or(i64::MAX), "stale write", "stale writes")
        ),
    );
    let anew = until(Duration::from_secs(5), async || {
        Ok(stage.look.accepts(&name).await?.then_some(()))
    });
    let what = match anew.await? {
        Some(()) => "stops what it executed, and registers anew under a fresh lease",
        None => "stops what it executed, and has not registered anew yet",
    };
    stage.tell(&stage.workers[0].actor, what);
    Ok(true)
}

fn create(path: &Path) -> Result<(), DemoError> {
    std::fs::write(path, b"").map_err(DemoError::Folder)
}

fn remove(path: &Path) -> Result<(), DemoError> {
    std::fs::remove_file(path).map_err(DemoError::Folder)
}
