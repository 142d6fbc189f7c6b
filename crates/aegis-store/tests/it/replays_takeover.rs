//! Public failures of other engines around takeover, shutdown and readers, replayed on the store. The numbers are those of
//! `docs/replays.toml`.

use aegis_model::{Cause, Class, FenceReason, Held, Outcome, ProtocolRange, State, WorkerState};
use aegis_store::generated::{task, worker};
use aegis_store::guarded::SaveTo;
use aegis_testkit::Stepper;
use jiff::{Span, Timestamp};
use uuid::Uuid;

use crate::raw;
use crate::support::{Bed, Worker};

/// What is stored of a task's progress and effects, and which failures were charged.
async fn standing(bed: &Bed, id: Uuid) -> (String, String, i32) {
    let progress = "select coalesce(string_agg(to_jsonb(c)->>'data', ','), '') from aegis.checkpoint c where c.task = $1";
    let effects = "select coalesce(string_agg(o.state::text, ','), '') from aegis.operation o where o.task = $1";
    (
        bed.value(progress, &[&id]).await,
        bed.value(effects, &[&id]).await,
        bed.live(id, "failures").await,
    )
}

/// SIGTERM was handled worse than SIGKILL (aegra #519); rollouts were blamed on crashes (ricwo/pq #26).
#[tokio::test]
async fn te_09_te_10_what_is_handed_back_stands_no_worse_than_what_was_killed() {
    for case in ["fresh", "checkpoint", "idempotent", "queryable", "blind"] {
        let bed = Bed::new().await;
        let (drained, killed, next) = (
            bed.worker(&["k"]).await,
            bed.worker(&["k"]).await,
            bed.worker(&["k"]).await,
        );
        let mut tasks = Vec::new();
        for who in [&drained, &killed] {
            let claim = bed.claim(who).await;
            let held = match case {
                "fresh" => claim.held,
                "checkpoint" => {
                    let to = SaveTo {
                        held: claim.held,
                        lane: claim.lane,
                        protocol: 1,
                        data: b"7".to_vec(),
                    };
                    let saved = bed.store.checkpoint(to).await.unwrap();
                    Held {
                        rev: saved.applied().unwrap().rev,
                        ..claim.held
                    }
                }
                class => {
                    let class = [Class::Idempotent, Class::Queryable, Class::Blind]
                        .into_iter()
                        .find(|one| one.word() == class);
                    bed.dispatch(&claim, class.unwrap()).await
                }
            };
            tasks.push(held);
        }
        bed.store.drain(drained.id).await.unwrap();
        bed.release(tasks[0], Cause::Drain).await.applied().unwrap();
        bed.expire(&killed).await;
        assert_eq!(bed.tick(&next).await.reaped, 1, "{case}");
        let (one, other) = (tasks[0].task, tasks[1].task);
        assert_eq!(bed.state(one).await, bed.state(other).await, "{case}");
        assert_eq!(
            standing(&bed, one).await,
            standing(&bed, other).await,
            "{case}"
        );
        // Nobody blames a deploy on a crash.
        assert_eq!(bed.live::<i32>(one, "crashes").await, 0, "{case}");
        assert_eq!(bed.live::<i32>(one, "interruptions").await, 1, "{case}");
        assert!(
            !bed.causes(one).await.contains(&"crash".to_owned()),
            "{case}"
        );
    }
}

/// A rollout stranded what the previous version had begun (decocms #4219); recovery hung on version and executor
/// (dbos-transact-java #219); a hash of the source decided who may go on (druks #619).
#[tokio::test]
async fn te_13_te_28_te_49_another_build_goes_on_with_what_it_can_read() {
    let bed = Bed::new().await;
    let old = bed.worker(&["k"]).await;
    let held = bed.claim(&old).await.held;
    bed.expire(&old).await;
    let new = bed
        .worker_with(&["k"], |registration| {
            "r2".clone_into(&mut registration.release);
            "another build".clone_into(&mut registration.build);
            "another name".clone_into(&mut registration.name);
            registration.capabilities[0].protocols = ProtocolRange::new(1, 2, 2).unwrap();
        })
        .await;
    assert_eq!(bed.tick(&new).await.reaped, 1);
    let again = bed.acquire_suspect(&new).await.unwrap().held;
    assert_eq!(again.task, held.task);
    assert_eq!(bed.complete(again).await.applied(), Some(State::Succeeded));
}

/// A restart of the database dropped the locks that were the leases (good_job #90); a lock was taken twice and leaked
/// (good_job PR #1735).
#[tokio::test]
async fn te_25_rl_21_a_lease_outlives_every_connection() {
    let bed = Bed::new().await;
    let (owner, other) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&owner).await.held;
    let locks = "select count(*) from pg_locks where locktype = 'advisory'
         and database = (select oid from pg_database where datname = current_database())";
    assert_eq!(bed.value::<i64>(locks, &[]).await, 0);
    let ended: i64 = bed
        .value(
            "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
            &[],
        )
        .await;
    assert!(ended > 0, "nobody was connected");
    let store = Bed::store_as(&bed.db, "aegis_engine").await;
    assert_eq!(store.tick(other.id).await.unwrap().reaped, 0);
    let request = crate::support::request(&other, 10);
    assert!(store.acquire(request).await.unwrap().claims.is_empty());
    let group = vec![aegis_store::guarded::Completion { held, result: None }];
    let ends = store.complete(group).await.unwrap();
    assert_eq!(ends[0].applied(), Some(State::Succeeded));
}

/// A job that came back to the same worker ended its whole loop (pyzeebe #212).
#[tokio::test]
async fn te_34_the_same_worker_may_get_a_task_again_at_a_newer_epoch() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let first = bed.claim(&worker).await.held;
    bed.release(first, Cause::Snooze).await.applied().unwrap();
    bed.sql("update aegis.task set state = 1, run_at = null where state = 0")
        .await;
    let second = bed.claim_again(&worker).await.held;
    assert_eq!((second.task, second.owner), (first.task, first.owner));
    assert!(second.epoch > first.epoch);
    assert_eq!(
        bed.complete(first).await,
        Outcome::Fenced(FenceReason::Epoch {
            current: second.epoch
        })
    );
    assert_eq!(bed.complete(second).await.applied(), Some(State::Succeeded));
}

/// A checkpoint looked at the run's state without a lock and was written all the same (absurd).
#[tokio::test]
async fn te_45_a_checkpoint_that_waits_for_the_reaper_is_fenced() {
    let bed = Bed::new().await;
    let stepper = Stepper::new(&bed.db).await;
    let (writer, reaper) = (stepper.conn("writer").await, stepper.conn("reaper").await);
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    bed.expire(&worker).await;
    reaper.run("begin").await;
    assert_eq!(
        raw::number(&reaper, "aegis.expire_workers()").done().await,
        1
    );
    assert_eq!(raw::number(&reaper, "aegis.reap(100)").done().await, 1);
    let (held, lane) = (claim.held, claim.lane);
    let pending = raw::start(&writer, "checkpoint", async move |client| {
        let params = task::CheckpointParams {
            ids: &[held.task],
            claim_ids: &[held.claim_id],
            epochs: &[held.epoch],
            revs: &[held.rev],
            worker: held.owner,
            protocol: 1,
            content_type: 0,
            data: b"late",
            lane,
        };
        task::checkpoint(&*client, &params).await.unwrap().is_some()
    });
    assert_eq!(pending.blocked().await, ["reaper"]);
    reaper.run("commit").await;
    assert!(!pending.done().await, "a late checkpoint was written");
    let stored: i64 = bed
        .value("select count(*) from aegis.checkpoint", &[])
        .await;
    assert_eq!(stored, 0);
}

/// A task for a version that nobody serves yet failed or was lost (trigger.dev PR #4664).
#[tokio::test]
async fn te_54_a_task_for_a_version_that_is_not_there_yet_waits_and_then_runs() {
    let bed = Bed::new().await;
    let old = bed.worker(&["k"]).await;
    let id = bed.submit_with("k", |task| task.protocol = 2).await;
    assert!(bed.acquire(&old, 10).await.is_empty());
    bed.tick(&old).await;
    assert_eq!(bed.state(id).await, State::Ready);
    let new = bed
        .worker_with(&["k"], |registration| {
            registration.capabilities[0].protocols = ProtocolRange::new(1, 2, 2).unwrap();
        })
        .await;
    let held = bed.claim_again(&new).await.held;
    let charged = "failures + interruptions + crashes + snoozes";
    assert_eq!((held.task, bed.live::<i32>(id, charged).await), (id, 0));
    assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
}

/// Leases were judged by the clock of a worker's machine (matrix-authentication-service PR #3307, db-scheduler #364).
#[tokio::test]
async fn te_63_a_workers_clock_moves_no_lease() {
    let bed = Bed::new().await;
    let engine = bed.engine().await;
    let mut number = 1;
    for minutes in [-1_000_000, -10, 10, 1_000_000] {
        let one = bed.worker(&["k"]).await;
        let held = bed.claim(&one).await.held;
        let sent_at = Timestamp::now()
            .checked_add(Span::new().minutes(minutes))
            .unwrap();
        number += 1;
        let renewed = worker::renew(&engine, one.id, number, 1, 1, 1, sent_at).await;
        assert!(renewed.unwrap().is_some(), "{minutes}");
        let off: f64 = bed
            .value(
                "select abs(extract(epoch from lease_until - clock_timestamp() - ttl_ms * interval '1 ms'))::float8
                 from aegis.worker_lease where worker = $1",
                &[&one.id],
            )
            .await;
        assert!(off < 60.0, "{minutes} min: the lease is off by {off} s");
        assert_eq!(bed.tick(&one).await.reaped, 0);
        assert_eq!(bed.complete(held).await.applied(), Some(State::Succeeded));
    }
}

/// A row that moved to another partition under a lock crashed the rescuer with 40001 (oban #1030).
#[tokio::test]
async fn te_68_no_row_that_is_locked_moves_between_partitions() {
    let bed = Bed::new().await;
    let partitioned: Vec<String> = bed
        .value(
            "select array_agg(c.relname::text || '.' || a.attname order by 1) from pg_partitioned_table p
             join pg_class c on c.oid = p.partrelid join pg_attribute a on a.attrelid = c.oid and a.attnum = any (p.partattrs::int2[])
             where c.relnamespace = 'aegis'::regnamespace",
            &[],
        )
        .await;
    // By the task's id, which carries its day and never changes: none by a state, and the live rows not at all.
    assert!(!partitioned.is_empty());
    for column in &partitioned {
        let (table, column) = column.split_once('.').unwrap();
        assert!(
            !["task", "parked", "worker", "worker_lease"].contains(&table),
            "{table} is partitioned"
        );
        assert!(
            ["id", "task", "day", "task_id"].contains(&column),
            "{table} is partitioned by {column}"
        );
    }
}

/// The leader was frozen with a session's lock in its hand, and nobody took anything over (awa 0.6.9); a stale leader went
/// on for 19 days (oban #1488).
#[tokio::test]
async fn te_71_rl_08_housekeeping_holds_nothing_that_a_frozen_worker_could_keep() {
    let bed = Bed::new().await;
    let (keeper, dead, next) = (
        bed.worker(&["k"]).await,
        bed.worker(&["k"]).await,
        bed.worker(&["k"]).await,
    );
    bed.tick(&keeper).await;
    // The keeper does nothing from here on; its connections stay.
    let left: i64 = bed
        .value(
            "select (select count(*) from pg_locks l join pg_stat_activity a using (pid)
                     where a.datname = current_database() and a.pid <> pg_backend_pid() and a.usename = 'aegis_engine')
                  + (select count(*) from pg_stat_activity where datname = current_database() and usename = 'aegis_engine'
                     and state <> 'idle')",
            &[],
        )
        .await;
    assert_eq!(left, 0, "a lock or a transaction outlived the tick");
    let held: Vec<Held> = vec![bed.claim(&dead).await.held];
    bed.expire(&dead).await;
    assert_eq!(bed.tick(&next).await.reaped, 1);
    assert_eq!(bed.state(held[0].task).await, State::Ready);
    let state = bed.store.tick(dead.id).await.unwrap().state;
    assert_eq!(state, Some(WorkerState::Lost));
}

/// The worker that lost its lease kept its claims in hand (hatchet #2432): the database's side of it.
#[tokio::test]
async fn te_29_a_lost_worker_is_told_to_stop_each_of_its_executions() {
    let bed = Bed::new().await;
    let (lost, next): (Worker, Worker) = (bed.worker(&["k"]).await, bed.worker(&["k"]).await);
    let held = bed.claim(&lost).await.held;
    bed.expire(&lost).await;
    bed.tick(&next).await;
    let conn = aegis_store::worker::LeaseConn::connect(bed.store.config())
        .await
        .unwrap();
    let orders = conn.orders(lost.id, &[held]).await.unwrap();
    assert_eq!(orders.len(), 1);
    assert_eq!(
        (orders[0].0, orders[0].1, orders[0].2),
        (held.task, held.epoch, aegis_store::worker::Order::Lost)
    );
}
