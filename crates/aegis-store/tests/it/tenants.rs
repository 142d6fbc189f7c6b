//! RL-I15: what a claim writes stays in the rows of the task that was claimed, also where tasks of several tenants were given
//! by one call to one worker.

use std::collections::BTreeMap;

use aegis_model::Class;
use uuid::Uuid;

use crate::guarded::{CASES, write};
use crate::support::Bed;

/// All rows that name a task.
async fn of(bed: &Bed, task: Uuid) -> BTreeMap<String, Vec<String>> {
    let mut rows = bed.rows().await;
    let id = task.to_string();
    for table in rows.values_mut() {
        table.retain(|row| row.contains(&id));
    }
    rows.retain(|_, table| !table.is_empty());
    rows
}

#[tokio::test]
async fn rl_i15_a_claims_writes_leave_the_rows_of_other_tenants_alone() {
    let bed = Bed::new().await;
    let engine = bed.engine().await;
    for statement in CASES {
        let worker = bed.worker(&["k"]).await;
        for tenant in ["ours", "theirs"] {
            bed.submit_with("k", |task| tenant.clone_into(&mut task.tenant))
                .await;
        }
        // One acquire call, so one claim id, one owner, one epoch and one rev for both.
        let mut claims = bed.acquire(&worker, 2).await;
        let theirs = claims.pop().unwrap();
        let ours = claims.pop().unwrap();
        assert_eq!(ours.held.claim_id, theirs.held.claim_id);
        assert_ne!(ours.tenant, theirs.tenant);
        let held = bed.dispatch(&ours, Class::Fenced).await;
        bed.dispatch(&theirs, Class::Fenced).await;

        let before = of(&bed, theirs.held.task).await;
        assert!(before.len() > 1, "a task and its operation: {before:?}");
        let written = write(&engine, statement, &[held], ours.lane).await;
        assert_eq!(written.unwrap(), [held.task], "{statement}");
        assert_eq!(of(&bed, theirs.held.task).await, before, "{statement}");
        // They go on as if nothing had been.
        let theirs = aegis_model::Held {
            rev: theirs.held.rev + 1,
            ..theirs.held
        };
        let written = write(&engine, statement, &[theirs], ours.lane).await;
        assert_eq!(written.unwrap(), [theirs.task], "{statement}");
    }
}
