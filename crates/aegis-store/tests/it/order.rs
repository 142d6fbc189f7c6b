//! Who is served next: order, priority, fairness between tenants, slots, pauses, protocols, and the walk over lanes.

use std::collections::{BTreeMap, BTreeSet};

use aegis_model::{Cause, ProtocolRange, State};
use aegis_store::overrides::PauseScope;
use aegis_store::{Cursor, NewTask};
use uuid::Uuid;

use crate::support::{Bed, capability, release, request};

fn ids(claims: &[aegis_store::Claim]) -> BTreeSet<Uuid> {
    claims.iter().map(|claim| claim.held.task).collect()
}

#[tokio::test]
async fn the_oldest_ready_task_is_first() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let mut submitted = Vec::new();
    for _ in 0..5 {
        submitted.push(bed.submit("k").await);
    }
    for id in submitted {
        assert_eq!(bed.claim_again(&worker).await.held.task, id);
    }
}

/// A minute of head start for each level, no strict class: what has waited longer than that is first again.
#[tokio::test]
async fn priority_is_a_head_start_and_nothing_starves() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let last = bed.submit_with("k", |task| task.priority = 9).await;
    let middle = bed.submit("k").await;
    let first = bed.submit_with("k", |task| task.priority = 0).await;
    // As if the last one had waited since nine minutes and a second: longer than all the credit of the first.
    let old = bed.submit_with("k", |task| task.priority = 9).await;
    bed.sql(&format!(
        "update aegis.task set ord = ord - 541000000 where id = '{old}'"
    ))
    .await;
    for id in [old, first, middle, last] {
        assert_eq!(bed.claim_again(&worker).await.held.task, id);
    }
}

#[tokio::test]
async fn a_task_scheduled_long_ago_does_not_jump_the_queue() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let scheduled = bed.submit_with("k", |task| task.run_at = Some(soon)).await;
    assert_eq!(bed.state(scheduled).await, State::Scheduled);
    let ready = bed.submit("k").await;
    bed.tick(&worker).await;
    assert_eq!(
        bed.state(scheduled).await,
        State::Scheduled,
        "promoted early"
    );
    bed.sql("update aegis.task set run_at = now() - interval '1 day' where state = 0")
        .await;
    assert!(bed.tick(&worker).await.claimable);
    assert_eq!(bed.state(scheduled).await, State::Ready);
    for id in [ready, scheduled] {
        assert_eq!(bed.claim_again(&worker).await.held.task, id);
    }
}

#[tokio::test]
async fn a_run_at_in_the_past_is_ready_at_once() {
    let bed = Bed::new().await;
    let past = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    let id = bed.submit_with("k", |task| task.run_at = Some(past)).await;
    assert_eq!(bed.state(id).await, State::Ready);
}

/// Claims `count` tasks, completes nothing, and tells how many each tenant got.
async fn shares(bed: &Bed, worker: &crate::support::Worker, count: usize) -> BTreeMap<i32, usize> {
    let mut shares = BTreeMap::new();
    for claim in bed.acquire(worker, count).await {
        *shares.entry(claim.tenant).or_default() += 1;
    }
    shares
}

async fn submit_for(bed: &Bed, kind: &str, tenant: &str, count: usize) -> i32 {
    let mut task = NewTask::new(kind, "{}");
    tenant.clone_into(&mut task.tenant);
    bed.store.submit_batch(vec![task; count]).await.unwrap();
    bed.store.tenant_id(tenant).await.unwrap()
}

#[tokio::test]
async fn an_old_backlog_of_one_tenant_does_not_hold_up_another() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let big = submit_for(&bed, "k", "big", 500).await;
    let small = submit_for(&bed, "k", "small", 50).await;
    assert_eq!(
        shares(&bed, &worker, 20).await,
        [(big, 10), (small, 10)].into()
    );
    // As few free slots as tasks asked for: the share is dealt before the slots are.
    let mut call = request(&worker, 20);
    call.capacity[0].kind_free = 20;
    call.capacity[0].queue_free = 20;
    let claims = bed.store.acquire(call).await.unwrap().claims;
    let of_small = claims.iter().filter(|claim| claim.tenant == small).count();
    assert_eq!((claims.len(), of_small), (20, 10));
    // What one tenant cannot use goes to the other.
    let rest = shares(&bed, &worker, 100).await;
    assert_eq!(rest, [(big, 70), (small, 30)].into());
}

#[tokio::test]
async fn weights_divide_what_there_is() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let one = submit_for(&bed, "k", "one", 200).await;
    let three = submit_for(&bed, "k", "three", 200).await;
    bed.sql("update aegis.tenant set weight = 3 where name = 'three'")
        .await;
    assert_eq!(
        shares(&bed, &worker, 40).await,
        [(one, 10), (three, 30)].into()
    );
}

/// A tenant's share is one, in however many lanes it waits.
#[tokio::test]
async fn a_tenant_in_many_lanes_has_one_share() {
    let bed = Bed::new().await;
    let kinds: Vec<String> = (0..9).map(|n| format!("k{n}")).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let worker = bed.worker(&kinds).await;
    for kind in &kinds {
        submit_for(&bed, kind, "wide", 100).await;
    }
    let narrow = submit_for(&bed, "k0", "narrow", 100).await;
    let wide = bed.store.tenant_id("wide").await.unwrap();
    assert_eq!(
        shares(&bed, &worker, 60).await,
        [(wide, 30), (narrow, 30)].into()
    );
}

#[tokio::test]
async fn no_more_of_a_kind_or_queue_is_taken_than_it_has_free() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["a", "b"]).await;
    bed.submit_many("a", 50).await;
    bed.submit_many("b", 50).await;
    let count_of = async |kind_free: [i32; 2], queue_free: i32, count: usize| {
        let mut call = request(&worker, count);
        for (n, one) in call.capacity.iter_mut().enumerate() {
            one.kind_free = kind_free[n];
            one.queue_free = queue_free;
        }
        let claims = bed.store.acquire(call).await.unwrap().claims;
        let mut counts = [0, 0];
        for claim in claims {
            let lane = bed.store.lane(claim.lane).await.unwrap();
            counts[usize::from(lane.kind == "b")] += 1;
        }
        counts
    };
    assert_eq!(count_of([3, 100], 100, 10).await, [3, 7]);
    assert_eq!(count_of([0, 100], 100, 4).await, [0, 4]);
    let [a, b] = count_of([100, 100], 5, 10).await;
    assert_eq!(a + b, 5, "a queue's slots were exceeded");
    // The older kind's backlog does not use the queue's slots up without filling them.
    assert_eq!(count_of([1, 100], 6, 6).await, [1, 5]);
    assert_eq!(count_of([0, 0], 5, 5).await, [0, 0]);
}

#[tokio::test]
async fn each_pause_holds_back_its_own_and_nothing_else() {
    let bed = Bed::new().await;
    for scope in [
        PauseScope::Queue,
        PauseScope::Kind,
        PauseScope::Release,
        PauseScope::Tenant,
    ] {
        let worker = bed
            .worker_with(&["a"], |r| {
                r.capabilities[0].queue = "q1".to_owned();
                let mut other = capability("b");
                other.queue = "q2".to_owned();
                r.capabilities.push(other);
            })
            .await;
        let paused = bed
            .submit_with("a", |task| {
                task.queue = "q1".to_owned();
                task.tenant = "t1".to_owned();
            })
            .await;
        let free = bed
            .submit_with("b", |task| {
                task.queue = "q2".to_owned();
                task.tenant = "t2".to_owned();
            })
            .await;
        let value = match scope {
            PauseScope::Queue => "q1",
            PauseScope::Kind => "a",
            PauseScope::Release => "r1",
            PauseScope::Tenant => "t1",
        };
        bed.store.pause(scope, value, "ann", "why").await.unwrap();
        let expected = match scope {
            PauseScope::Release => BTreeSet::new(),
            _ => [free].into(),
        };
        assert_eq!(ids(&bed.acquire(&worker, 10).await), expected, "{scope:?}");
        assert!(
            bed.store
                .resume(scope, value, "ann", "it is over")
                .await
                .unwrap()
        );
        assert!(
            !bed.store
                .resume(scope, value, "ann", "it is over")
                .await
                .unwrap()
        );
        let rest: BTreeSet<Uuid> = [paused, free]
            .into_iter()
            .filter(|id| !expected.contains(id))
            .collect();
        assert_eq!(ids(&bed.acquire(&worker, 10).await), rest, "{scope:?}");
    }
}

/// Paused tenants, however many, neither end the walk nor take places in it.
#[tokio::test]
async fn tenants_behind_many_paused_ones_are_served() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    for n in 0..40 {
        submit_for(&bed, "k", &format!("paused {n}"), 2).await;
    }
    bed.sql("insert into aegis.pause (scope, value, who, why) select 'tenant', name, 'ann', 'why' from aegis.tenant")
        .await;
    let free = submit_for(&bed, "k", "free", 2).await;
    assert_eq!(shares(&bed, &worker, 10).await, [(free, 2)].into());
}

/// More empty lanes than one walk looks at: the cursor comes back with nothing claimed, and the next walk goes on behind it.
#[tokio::test]
async fn lanes_behind_many_empty_ones_are_served() {
    let bed = Bed::new().await;
    let worker = bed
        .worker_with(&["k"], |r| {
            r.capabilities[0].protocols = ProtocolRange::new(1, 1000, 1).unwrap();
        })
        .await;
    bed.sql("insert into aegis.lane (queue, kind, lo, hi) select 'default', 'k', n, n from generate_series(1, 400) n")
        .await;
    let last = bed.submit_with("k", |task| task.protocol = 400).await;
    let mut call = request(&worker, 1);
    let mut walks = 0;
    let claimed = loop {
        let acquired = bed.store.acquire(call.clone()).await.unwrap();
        walks += 1;
        if let Some(claim) = acquired.claims.first() {
            break claim.held.task;
        }
        assert!(walks < 4, "the walk does not go on");
        call.request = Uuid::new_v4();
        call.cursor = acquired.cursor.expect("an open gate answers a cursor");
    };
    assert_eq!(claimed, last);
}

/// 40 lanes with 4 tenants each are 160 heads: five claims see all of them.
#[tokio::test]
async fn m20_the_walk_serves_every_tenant_of_every_lane() {
    let bed = Bed::new().await;
    let kinds: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let worker = bed.worker(&kinds).await;
    let mut batch = Vec::new();
    for kind in &kinds {
        for tenant in 0..4 {
            let mut task = NewTask::new(*kind, "{}");
            task.tenant = format!("t{tenant}");
            batch.push(task);
        }
    }
    bed.store.submit_batch(batch).await.unwrap();
    let heads = 40 * 4;
    let mut served = BTreeSet::new();
    let mut call = request(&worker, 100);
    // Anywhere to begin with.
    call.cursor = Cursor {
        lane: 17,
        tenant: 2,
    };
    for _ in 0..heads / 32 {
        call.request = Uuid::new_v4();
        let acquired = bed.store.acquire(call.clone()).await.unwrap();
        assert_eq!(acquired.claims.len(), 32);
        served.extend(
            acquired
                .claims
                .iter()
                .map(|claim| (claim.lane, claim.tenant)),
        );
        call.cursor = acquired.cursor.unwrap();
    }
    assert_eq!(served.len(), heads, "heads were left unserved");
}

#[tokio::test]
async fn a_worker_gets_only_what_it_reads_whole() {
    let bed = Bed::new().await;
    let reads = |min, max| {
        move |r: &mut aegis_store::worker::Registration| {
            r.capabilities[0].protocols = ProtocolRange::new(min, max, max).unwrap();
        }
    };
    let old = bed.worker_with(&["k"], reads(1, 1)).await;
    let new = bed.worker_with(&["k"], reads(1, 2)).await;
    let newest = bed.worker_with(&["k"], reads(2, 3)).await;
    let id = bed.submit("k").await;
    let claim = bed.claim_again(&new).await;
    assert_eq!(claim.protocol, 1);
    // Its checkpoint in protocol 2 moves it to the lane 1..2: the old worker cannot read it any more.
    let to = aegis_store::guarded::SaveTo {
        held: claim.held,
        lane: claim.lane,
        protocol: 2,
        data: b"{}".to_vec(),
    };
    let saved = bed.store.checkpoint(to).await.unwrap().applied().unwrap();
    let lane = bed.store.lane(saved.lane).await.unwrap();
    assert_eq!((lane.range.lo, lane.range.hi), (1, 2));
    let mut held = claim.held;
    held.rev = saved.rev;
    let after = bed
        .store
        .release(release(held, Cause::Drain))
        .await
        .unwrap();
    assert_eq!(after.applied(), Some(State::Ready));
    assert!(
        bed.acquire(&old, 1).await.is_empty(),
        "protocol 2 for a reader of 1"
    );
    assert!(
        bed.acquire(&newest, 1).await.is_empty(),
        "protocol 1 for a reader of 2..3"
    );
    let again = bed.claim_again(&new).await;
    assert_eq!((again.held.task, again.has_parts), (id, true));
}

/// te_02 and rl_02: a worker neither takes, nor ends, what it cannot run.
#[tokio::test]
async fn te_47_rl_02_a_kind_that_nobody_here_runs_stays_as_it_is() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["mine"]).await;
    let other = bed.submit("theirs").await;
    assert!(bed.acquire(&worker, 10).await.is_empty());
    assert!(!bed.tick(&worker).await.claimable);
    assert_eq!(bed.state(other).await, State::Ready);
    assert!(bed.causes(other).await.is_empty());
}

#[tokio::test]
async fn what_is_asked_for_beyond_the_capabilities_is_not_given() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["a"]).await;
    bed.submit("b").await;
    let mut call = request(&worker, 5);
    call.capacity[0].kind = "b".to_owned();
    assert!(bed.store.acquire(call).await.unwrap().claims.is_empty());
}
