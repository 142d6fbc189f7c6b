//! Act 3: version 2, with a newer checkpoint, replaces version 1 while orders are in work.

use std::time::Duration;

use super::look::until;
use super::stage::Stage;
use super::{DEMO, DemoError, ENGINE};

pub(super) async fn act(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.story.act("3 of 6: version 2 replaces version 1");
    let newer = stage.start_workers(3, 2).await?;
    stage.tell(
        &DEMO,
        "three workers of version 2 run. They read protocol 1 and 2 and write 2: their checkpoints have another shape",
    );
    let older = std::mem::replace(&mut stage.workers, newer);
    stage.tell(
        &DEMO,
        "sends SIGTERM to the workers of version 1, in the middle of their work",
    );
    stage.drain(older).await?;
    // Long enough for version 2 to have finished some, and to have others in work that the rollback meets.
    let before = stage.look.progress().await?.ended();
    let moved = until(Duration::from_secs(10), async || {
        let newer = stage.look.newer().await?;
        let now = stage.look.progress().await?;
        let enough = newer >= 6 && now.ended() >= before + 12;
        Ok((enough || now.is_idle()).then_some(newer))
    });
    let moved = moved.await?.unwrap_or_default();
    stage.tell(
        &ENGINE,
        format!(
            "version 2 goes on where version 1 stopped: the old checkpoints are brought to its shape as they are read.\n\
             {moved} orders hold protocol 2 by now and have moved to another lane"
        ),
    );
    stage.tell_progress().await
}
