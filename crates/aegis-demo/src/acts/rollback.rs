//! Act 4 and 5: a rollback to version 1, which cannot read what version 2 saved; then version 2 comes back.

use std::time::Duration;

use super::look::until;
use super::stage::Stage;
use super::{DEMO, DemoError, ENGINE};

/// How long the tasks of the newer protocol are seen waiting.
const SEEN: Duration = Duration::from_secs(2);

pub(super) async fn act(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.story.act("4 of 6: a rollback to version 1");
    let older = stage.start_workers(3, 1).await?;
    let newer = std::mem::replace(&mut stage.workers, older);
    stage.tell(
        &DEMO,
        "three workers of version 1 run again; those of version 2 get SIGTERM",
    );
    stage.drain(newer).await?;
    let stranded = until(Duration::from_secs(3), async || {
        let stranded = stage.look.stranded().await?;
        Ok((!stranded.is_empty()).then_some(stranded))
    });
    let Some(_) = stranded.await? else {
        stage.tell(
            &DEMO,
            "no order held anything of protocol 2 when version 2 ended, so nothing has to wait",
        );
        return back(stage).await;
    };
    let before = stage.look.progress().await?.ended();
    tokio::time::sleep(SEEN).await;
    for lane in stage.look.stranded().await? {
        stage.tell(
            &ENGINE,
            format!(
                "lane {}/{} protocol {}..{}: {} tasks wait, and no worker alive reads protocol {}",
                stage.run.queue,
                crate::run::KIND,
                lane.lo,
                lane.hi,
                lane.tasks,
                lane.hi
            ),
        );
    }
    let after = stage.look.progress().await?.ended();
    stage.tell(
        &ENGINE,
        format!(
            "version 1 is never given a checkpoint that it cannot read. Meanwhile it finished {} orders of its own protocol",
            after - before
        ),
    );
    back(stage).await
}

async fn back(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.story.act("5 of 6: version 2 comes back");
    let newer = stage.start_workers(3, 2).await?;
    let older = std::mem::replace(&mut stage.workers, newer);
    stage.drain(older).await?;
    let taken = until(Duration::from_secs(10), async || {
        Ok(stage.look.stranded().await?.is_empty().then_some(()))
    });
    match taken.await? {
        Some(()) => stage.tell(&ENGINE, "what had waited for protocol 2 is taken up again"),
        None => stage.tell(&ENGINE, "some tasks still wait for protocol 2"),
    }
    stage.tell_progress().await
}
