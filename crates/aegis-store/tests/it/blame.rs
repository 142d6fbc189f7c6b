//! Who is to blame when an execution is lost: crash, interruption, absence; suspects, quarantine, neighbours.

use aegis_model::{Cause, Held, State, WorkerState};
use aegis_store::worker::{Beat, LeaseConn, Order, Renewed};
use aegis_testkit::Stepper;
use uuid::Uuid;

use crate::support::{Bed, Worker};

/// `failures, interruptions, crashes, snoozes` of a live task.
async fn counters(bed: &Bed, id: Uuid) -> [i32; 4] {
    let sql =
        "select array[failures, interruptions, crashes, snoozes] from aegis.task where id = $1";
    bed.value::<Vec<i32>>(sql, &[&id]).await.try_into().unwrap()
}

/// Ends a worker as a crash of its process would, and takes its tasks back.
async fn crash(bed: &Bed, dead: &Worker, by: &Worker) -> i32 {
    bed.expire(dead).await;
    bed.tick(by).await.reaped
}

fn beat(number: i64) -> Beat {
    Beat {
        number,
        executing: 1,
        claim_ticks: 2,
        progress_ticks: 3,
    }
}

#[tokio::test]
async fn te_23_a_lost_worker_is_charged_with_a_crash_and_never_comes_back() {
    let bed = Bed::new().await;
    let (dead, alive) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&dead).await.held;
    assert_eq!(crash(&bed, &dead, &alive).await, 1);
    assert_eq!(bed.state(held.task).await, State::Ready);
    assert_eq!(counters(&bed, held.task).await, [0, 0, 1, 0]);
    assert_eq!(bed.live::<i64>(held.task, "epoch").await, held.epoch + 1);
    let events = bed.store.events(held.task).await.unwrap();
    assert_eq!(
        (events[0].cause.as_str(), events[0].epoch),
        ("crash", held.epoch)
    );
    assert_eq!(events[0].owner, Some(dead.id));
    let state = bed.store.tick(dead.id).await.unwrap().state;
    assert_eq!(state, Some(WorkerState::Lost));
    let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
    assert_eq!(conn.renew(dead.id, beat(1)).await.unwrap(), Renewed::Lost);
    assert!(bed.acquire(&dead, 1).await.is_empty());
}

#[tokio::test]
async fn a_lease_that_ended_when_the_database_had_just_come_up_is_an_interruption() {
    let bed = Bed::new().await;
    let (dead, alive) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&dead).await.held;
    bed.expire(&dead).await;
    bed.sql("update aegis.database set up_since = clock_timestamp() - interval '10 s'")
        .await;
    bed.tick(&alive).await;
    assert_eq!(counters(&bed, held.task).await, [0, 1, 0, 0]);
}

#[tokio::test]
async fn a_new_postmaster_moves_up_since() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.sql(
        "update aegis.database set postmaster_started = postmaster_started - interval '1 h', up_since = up_since - interval '1 h'",
    )
    .await;
    bed.tick(&worker).await;
    let moved = "select up_since > clock_timestamp() - interval '1 min' and postmaster_started = pg_postmaster_start_time() from aegis.database";
    assert!(bed.value::<bool>(moved, &[]).await);
}

/// The database recovers from a crash, stalls, or is cut off: the postmaster's start does not move, the reap job is late.
#[tokio::test]
async fn m19_a_late_reap_job_of_a_fleet_is_an_outage_and_charges_nobody() {
    // Who is left of a fleet of so many, and whether the one that ticks was there when the job became due.
    for (fleet, survivor_ticks, is_outage) in
        [(2, true, true), (2, false, false), (1, false, false)]
    {
        let bed = Bed::new().await;
        let dead = bed.worker(&["k"]).await;
        let mut others = Vec::new();
        for _ in 1..fleet {
            others.push(bed.worker(&["k"]).await);
        }
        let held = bed.claim(&dead).await.held;
        bed.sql(
            "update aegis.worker set registered_at = registered_at - interval '1 h';
             update aegis.housekeeping set next_at = clock_timestamp() - interval '10 min' where job = 'reap'",
        )
        .await;
        bed.expire(&dead).await;
        // Registered after the job became due: it is no witness. When only newcomers tick, the fleet has died, not the database.
        let late = bed.worker(&["k"]).await;
        let ticking = if survivor_ticks { &others[0] } else { &late };
        let tick = bed.store.tick(ticking.id).await.unwrap();
        assert_eq!(tick.reaped, 1);
        let expected = if is_outage {
            [0, 1, 0, 0]
        } else {
            [0, 0, 1, 0]
        };
        assert_eq!(
            counters(&bed, held.task).await,
            expected,
            "a fleet of {fleet}, a survivor ticks: {survivor_ticks}"
        );
    }
}

/// What a tick promises is never so late that the next one would take it for an outage.
#[tokio::test]
async fn a_fleet_that_looks_again_as_told_sees_no_outage() {
    for ttl_ms in [3_000, 30_000, 600_000] {
        let bed = Bed::new().await;
        let worker = bed.worker_with(&["k"], |r| r.ttl_ms = ttl_ms).await;
        bed.worker_with(&["k"], |r| r.ttl_ms = ttl_ms).await;
        bed.sql("update aegis.worker set registered_at = registered_at - interval '1 h'")
            .await;
        let promised = bed.tick(&worker).await.next_due_ms;
        let before: String = bed
            .value("select up_since::text from aegis.database", &[])
            .await;
        bed.sql(&format!(
            "update aegis.housekeeping set next_at = next_at - {promised} * interval '1 ms'"
        ))
        .await;
        bed.store.tick(worker.id).await.unwrap();
        let after: String = bed
            .value("select up_since::text from aegis.database", &[])
            .await;
        assert_eq!(before, after, "ttl {ttl_ms}, promised {promised}");
    }
}

#[tokio::test]
async fn a_successor_speaks_for_its_predecessor_before_and_after_the_reaper() {
    let bed = Bed::new().await;
    let alive = bed.worker(&["k"]).await;
    for registers_first in [true, false] {
        let dead = bed.worker(&["k"]).await;
        let held = bed.claim(&dead).await.held;
        let mut registration = crate::support::registration(&["k"]);
        registration.predecessor = Some(dead.id);
        let forgiven = if registers_first {
            let forgiven = bed.store.register(registration).await.unwrap();
            assert_eq!(
                bed.tick(&alive).await.reaped,
                1,
                "the predecessor is lost at once"
            );
            forgiven
        } else {
            assert_eq!(crash(&bed, &dead, &alive).await, 1);
            assert_eq!(counters(&bed, held.task).await, [0, 0, 1, 0]);
            bed.store.register(registration).await.unwrap()
        };
        assert_eq!(forgiven, i32::from(!registers_first));
        assert_eq!(counters(&bed, held.task).await, [0, 1, 0, 0]);
        assert_eq!(bed.causes(held.task).await, ["interruption"]);
        // Not a suspect: it is given like any other.
        let claim = bed.claim_again(&alive).await;
        assert_eq!(claim.held.task, held.task);
        bed.complete(claim.held).await.applied().unwrap();
    }
}

#[tokio::test]
async fn a_stopped_worker_leaves_an_interruption_at_most() {
    let bed = Bed::new().await;
    let (worker, alive) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&worker).await.held;
    assert!(!bed.store.stop(worker.id).await.unwrap(), "it holds a task");
    bed.release(held, Cause::Drain).await.applied().unwrap();
    assert!(bed.store.stop(worker.id).await.unwrap());
    assert!(!bed.store.stop(worker.id).await.unwrap());
    assert_eq!(bed.tick(&alive).await.reaped, 0);
    assert_eq!(counters(&bed, held.task).await, [0, 1, 0, 0]);
}

#[tokio::test]
async fn each_cause_moves_its_own_counter() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let id = bed.submit("k").await;
    let mut expected = [0; 4];
    for (cause, counter, bumps) in [
        (Cause::Failure, 0, 0),
        (Cause::Drain, 1, 1),
        (Cause::Snooze, 3, 0),
        (Cause::Cancelled, 4, 0),
    ] {
        let claim = bed.claim_again(&worker).await;
        if cause == Cause::Failure {
            bed.fail(claim.held).await.applied().unwrap();
            bed.sql("update aegis.task set state = 1, run_at = null where state = 0")
                .await;
        } else {
            bed.release(claim.held, cause).await.applied().unwrap();
        }
        if counter < 4 {
            expected[counter] += 1;
        }
        assert_eq!(counters(&bed, id).await, expected, "{cause:?}");
        let epoch: i64 = bed.live(id, "epoch").await;
        assert_eq!(epoch, claim.held.epoch + bumps, "{cause:?}");
        assert_eq!(cause.bumps_epoch(), bumps == 1, "{cause:?}");
    }
    assert_eq!(
        bed.causes(id).await,
        ["failure", "drain", "snooze", "cancelled"]
    );
}

/// A poison task among neighbours: all become suspects, each is tried alone, and only the poison is set aside.
#[tokio::test]
async fn te_61_te_62_rl_41_a_poison_task_is_quarantined_after_three_crashes_alone_and_condemns_no_neighbour()
 {
    let bed = Bed::new().await;
    let keeper = bed.worker(&["other"]).await;
    let mut victim = bed.worker(&["k"]).await;
    let all = bed.submit_many("k", 5).await;
    let poison = all[2];
    assert_eq!(bed.acquire(&victim, 5).await.len(), 5);
    assert_eq!(crash(&bed, &victim, &keeper).await, 5);
    let mut crashes_alone = 0;
    for _ in 0..20 {
        victim = bed.worker(&["k"]).await;
        assert!(
            bed.acquire(&victim, 10).await.is_empty(),
            "a suspect in company"
        );
        let tick = bed.tick(&victim).await;
        let Some(claim) = bed.acquire_suspect(&victim).await else {
            assert!(!tick.suspects);
            break;
        };
        assert!(tick.suspects);
        assert!(
            bed.acquire_suspect(&victim).await.is_none(),
            "two suspects at once"
        );
        if claim.held.task == poison {
            crashes_alone += 1;
            crash(&bed, &victim, &keeper).await;
        } else {
            bed.complete(claim.held).await.applied().unwrap();
        }
    }
    assert_eq!(crashes_alone, 3);
    for id in all {
        let state = if id == poison {
            State::Quarantined
        } else {
            State::Succeeded
        };
        assert_eq!(bed.state(id).await, state);
    }
    assert!(bed.store.redrive(poison, "ann", "fixed").await.unwrap());
    assert_eq!(counters(&bed, poison).await, [0; 4]);
}

#[tokio::test]
async fn a_suspect_is_given_only_to_a_worker_that_holds_nothing() {
    let bed = Bed::new().await;
    let (dead, busy) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&dead).await.held;
    crash(&bed, &dead, &busy).await;
    let busy_with = bed.claim(&busy).await;
    assert!(bed.acquire_suspect(&busy).await.is_none());
    bed.complete(busy_with.held).await.applied().unwrap();
    // Paused like any other.
    bed.store
        .pause(
            aegis_store::overrides::PauseScope::Tenant,
            "default",
            "ann",
            "why",
        )
        .await
        .unwrap();
    assert!(bed.acquire_suspect(&busy).await.is_none());
    bed.sql("delete from aegis.pause").await;
    let mut call = crate::support::request(&busy, 1);
    let first = bed.store.acquire_suspect(call.clone()).await.unwrap();
    assert_eq!(first.claims[0].held.task, held.task);
    let repeated = bed.store.acquire_suspect(call.clone()).await.unwrap();
    assert_eq!(repeated.claims[0].held, first.claims[0].held);
    call.request = Uuid::new_v4();
    assert!(
        bed.store
            .acquire_suspect(call)
            .await
            .unwrap()
            .claims
            .is_empty()
    );
}

#[tokio::test]
async fn one_worker_becomes_empty_for_suspects_that_have_waited_a_minute() {
    let bed = Bed::new().await;
    let dead = bed.worker(&["k"]).await;
    let (one, two) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&dead).await.held;
    crash(&bed, &dead, &one).await;
    let tick = bed.tick(&one).await;
    assert!(tick.suspects && !tick.duty, "only after a minute");
    bed.sql("update aegis.task set ord = ord - 61000000").await;
    assert!(bed.tick(&one).await.duty);
    assert!(!bed.tick(&two).await.duty, "two on duty");
    // A frozen one does not keep it.
    bed.sql(
        "update aegis.housekeeping set holder_until = now() - interval '1 s' where job = 'suspect'",
    )
    .await;
    assert!(bed.tick(&two).await.duty);
    assert!(!bed.tick(&one).await.duty);
    let claim = bed.acquire_suspect(&two).await.unwrap();
    assert_eq!(claim.held.task, held.task);
    let tick = bed.tick(&two).await;
    assert!(!tick.suspects && !tick.duty, "nothing waits any more");
    assert!(!bed.tick(&one).await.duty);
}

#[tokio::test]
async fn a_running_task_that_two_beats_did_not_name_goes_back() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
    let held = bed.claim(&worker).await.held;
    let named = [held.task];
    let absent = async |names: &[Uuid], start_ttl_ms| {
        conn.return_absent(worker.id, names, start_ttl_ms)
            .await
            .unwrap()
    };
    assert!(absent(&[], 0).await.is_empty(), "one beat is not two");
    assert!(absent(&named, 0).await.is_empty());
    assert!(absent(&[], 0).await.is_empty(), "it was named between");
    assert!(
        absent(&[], 60_000).await.is_empty(),
        "younger than the start deadline"
    );
    assert_eq!(absent(&[], 0).await, named);
    assert_eq!(counters(&bed, held.task).await, [0, 1, 0, 0]);
    assert_eq!(bed.live::<i64>(held.task, "epoch").await, held.epoch + 1);
    assert_eq!(bed.causes(held.task).await, ["absent"]);
    // Claimed again by the same worker and named neither: the old beat does not count for the new claim.
    let again = bed.claim_again(&worker).await;
    assert_eq!(again.held.task, held.task);
    assert!(absent(&[], 60_000).await.is_empty());
    bed.complete(again.held).await.applied().unwrap();
}

#[tokio::test]
async fn somebodys_open_row_lock_costs_no_beat() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let holder = stepper.conn("holder").await;
    let worker = bed.worker(&["k"]).await;
    let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
    let held = bed.claim(&worker).await.held;
    assert!(
        conn.return_absent(worker.id, &[], 0)
            .await
            .unwrap()
            .is_empty()
    );
    holder.run("begin").await;
    holder.run("select from aegis.task for update").await;
    assert!(
        conn.return_absent(worker.id, &[], 0)
            .await
            .unwrap()
            .is_empty()
    );
    let renewed = conn.renew(worker.id, beat(1)).await.unwrap();
    assert!(matches!(
        renewed,
        Renewed::Alive {
            state: WorkerState::Accepting,
            ..
        }
    ));
    holder.run("rollback").await;
    assert_eq!(
        conn.return_absent(worker.id, &[], 0).await.unwrap(),
        [held.task]
    );
}

#[tokio::test]
async fn an_older_beat_moves_nothing_and_loses_nothing() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
    conn.renew(worker.id, beat(7)).await.unwrap();
    let lease = "select lease_until::text || ' ' || beat from aegis.worker_lease";
    let before: String = bed.value(lease, &[]).await;
    bed.store.drain(worker.id).await.unwrap();
    for older in [7, 6] {
        let renewed = conn.renew(worker.id, beat(older)).await.unwrap();
        assert!(matches!(
            renewed,
            Renewed::Alive {
                state: WorkerState::Draining,
                ..
            }
        ));
    }
    assert_eq!(bed.value::<String>(lease, &[]).await, before);
    conn.renew(worker.id, beat(8)).await.unwrap();
    assert_ne!(bed.value::<String>(lease, &[]).await, before);
    // A renewal never shortens: the clock of the database went back, say.
    bed.sql("update aegis.worker_lease set lease_until = lease_until + interval '1 h'")
        .await;
    let before: String = bed
        .value("select lease_until::text from aegis.worker_lease", &[])
        .await;
    conn.renew(worker.id, beat(9)).await.unwrap();
    let after: String = bed
        .value("select lease_until::text from aegis.worker_lease", &[])
        .await;
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_beat_hears_only_what_has_to_be_obeyed() {
    let bed = Bed::new().await;
    let (worker, other) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
    let mut held: Vec<Held> = Vec::new();
    for _ in 0..4 {
        held.push(bed.claim(&worker).await.held);
    }
    assert!(conn.orders(worker.id, &held).await.unwrap().is_empty());
    bed.store.cancel(held[1].task, "ann", "why").await.unwrap();
    bed.complete(held[2]).await.applied().unwrap();
    bed.release(held[3], Cause::Drain).await.applied().unwrap();
    bed.claim_again(&other).await;
    let orders = conn.orders(worker.id, &held).await.unwrap();
    let by_task = |id: Uuid| {
        orders
            .iter()
            .find(|(task, ..)| *task == id)
            .map(|(_, epoch, order)| (*epoch, *order))
    };
    assert_eq!(orders.len(), 3);
    assert_eq!(
        by_task(held[1].task),
        Some((
            held[1].epoch,
            Order::Cancel(aegis_model::CancelCause::Requested)
        ))
    );
    assert_eq!(by_task(held[2].task), Some((held[2].epoch, Order::Lost)));
    assert_eq!(by_task(held[3].task), Some((held[3].epoch, Order::Lost)));
}

/// More rows that cannot be reaped than a page holds, in front of one that can.
#[tokio::test]
async fn rl_03_rows_that_cannot_be_reaped_do_not_starve_the_others() {
    let bed = Bed::new().await;
    let (dead, alive) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    bed.submit_many("k", 600).await;
    let last = bed.submit("k").await;
    assert_eq!(
        bed.acquire(&dead, 500).await.len() + bed.acquire(&dead, 500).await.len(),
        601
    );
    bed.sql(&format!(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
         create trigger refuse before insert on aegis.task_event for each row when (new.task <> '{last}') execute function refuse()"
    ))
    .await;
    assert_eq!(crash(&bed, &dead, &alive).await, 1);
    assert_eq!(bed.state(last).await, State::Ready);
    bed.sql("drop trigger refuse on aegis.task_event").await;
    assert_eq!(bed.tick(&alive).await.reaped, 500);
    // A full page: the next tick goes on at once.
    assert_eq!(bed.store.tick(alive.id).await.unwrap().reaped, 100);
}
