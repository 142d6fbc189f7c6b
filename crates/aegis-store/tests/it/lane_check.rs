//! Questions about readers: each answer flips, live and parked tasks count, and nothing is read by scanning the tasks.

use aegis_model::{Cause, Class, ProtocolRange};
use aegis_store::guarded::SaveTo;
use aegis_store::lane_check::{Answer, Checked, Leaver, Reads, Reasons, RollBack};
use aegis_store::overrides::PauseScope;
use aegis_store::worker::Capability;

use crate::explain::{Plan, Planning, explain};
use crate::support::{Bed, Worker, registration};

/// A worker of a release that reads and writes these protocols of kind `k`.
async fn serving(bed: &Bed, release: &str, min: i32, max: i32, writes: i32) -> Worker {
    bed.worker_with(&["k"], |registration| {
        release.clone_into(&mut registration.release);
        registration.build = format!("build-{release}");
        registration.capabilities[0].protocols = ProtocolRange::new(min, max, writes).unwrap();
    })
    .await
}

async fn retire(bed: &Bed, release: &str) -> Checked {
    bed.store
        .may_retire(&Leaver::Release(release.to_owned()), 20)
        .await
        .unwrap()
}

async fn roll_back(bed: &Bed, to: &str) -> Checked {
    let to = RollBack {
        to: Some(to.to_owned()),
        ..RollBack::default()
    };
    bed.store.may_roll_back(&to, 20).await.unwrap()
}

fn no(checked: &Checked) -> &Reasons {
    match &checked.answer {
        Answer::No(reasons) => reasons,
        other => panic!("not no but {other:?}, {:?}", checked.remarks),
    }
}

/// Submits a task whose input has this protocol.
async fn stored(bed: &Bed, protocol: i32) -> uuid::Uuid {
    bed.submit_with("k", |task| task.protocol = protocol).await
}

#[tokio::test]
async fn a_release_may_go_when_another_reads_what_it_reads() {
    let bed = Bed::new().await;
    serving(&bed, "old", 1, 1, 1).await;
    stored(&bed, 1).await;
    let alone = retire(&bed, "old").await;
    let reasons = no(&alone);
    assert_eq!(
        (reasons.lanes_total, reasons.tasks_counted, reasons.at_least),
        (1, 1, false)
    );
    assert!(
        reasons.lanes[0].why().contains("nobody who remains serves"),
        "{}",
        reasons.lanes[0].why()
    );
    let new = serving(&bed, "new", 1, 2, 1).await;
    assert_eq!(retire(&bed, "old").await.answer, Answer::Yes);
    // The other reads it only while it is alive and accepts.
    bed.store.drain(new.id).await.unwrap();
    no(&retire(&bed, "old").await);
}

/// Runs that had ended, kept for their results, were counted as still draining (restate #4123).
/// Workers of a paused release claim nothing: whoever counts on them strands what is stored.
#[tokio::test]
async fn a_paused_release_is_nobody_to_leave_tasks_to() {
    let bed = Bed::new().await;
    serving(&bed, "old", 1, 1, 1).await;
    serving(&bed, "new", 1, 1, 1).await;
    stored(&bed, 1).await;
    assert!(matches!(retire(&bed, "old").await.answer, Answer::Yes));
    bed.store
        .pause(PauseScope::Release, "new", "ann", "it charges twice")
        .await
        .unwrap();
    assert_eq!(no(&retire(&bed, "old").await).lanes_total, 1);
}

#[tokio::test]
async fn te_53_what_has_ended_holds_nobody() {
    let bed = Bed::new().await;
    let worker = serving(&bed, "old", 1, 1, 1).await;
    for ends_well in [true, false] {
        let held = bed.claim(&worker).await.held;
        no(&retire(&bed, "old").await);
        if ends_well {
            bed.complete(held).await.applied().unwrap();
        } else {
            bed.store
                .cancel(held.task, "ann", "no longer")
                .await
                .unwrap();
            bed.release(held, Cause::Cancelled).await.applied().unwrap();
        }
        assert_eq!(retire(&bed, "old").await.answer, Answer::Yes);
    }
    let kept: i64 = bed
        .value("select count(*) from aegis.task_history", &[])
        .await;
    assert_eq!(kept, 2);
}

/// A version that was drained had work again, and its label said drained (temporal-worker-controller #332).
#[tokio::test]
async fn te_55_drained_is_asked_each_time_and_never_remembered() {
    let bed = Bed::new().await;
    let worker = serving(&bed, "old", 1, 1, 1).await;
    for _ in 0..2 {
        assert_eq!(retire(&bed, "old").await.answer, Answer::Yes);
        stored(&bed, 1).await;
        no(&retire(&bed, "old").await);
        let held = bed.claim_again(&worker).await.held;
        bed.complete(held).await.applied().unwrap();
    }
}

#[tokio::test]
async fn te_52_every_state_a_task_can_wait_in_holds_its_last_reader() {
    let bed = Bed::new().await;
    let worker = serving(&bed, "r", 1, 1, 1).await;
    serving(&bed, "other", 2, 2, 2).await;
    for state in [
        "ready",
        "suspect",
        "scheduled",
        "waiting",
        "running",
        "reconciling",
        "parked",
    ] {
        bed.sql("truncate aegis.task, aegis.parked").await;
        assert_eq!(retire(&bed, "r").await.answer, Answer::Yes, "{state}");
        let id = stored(&bed, 1).await;
        let become_it = match state {
            "suspect" => "update aegis.task set crashes = 1",
            "scheduled" => "update aegis.task set state = 0, run_at = now() + interval '1 day'",
            "waiting" => "update aegis.task set state = 3",
            "reconciling" => "update aegis.task set state = 4, open_ops = 1",
            "parked" => "insert into aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes, open_ops,
                    parts, epoch, rev, parked_at, error)
                select id, lane, tenant, policy, 6, priority, 1, 0, 0, 0, 0, false, 1, 1, now(), '{}' from aegis.task; delete from aegis.task",
            _ => "select",
        };
        bed.sql(become_it).await;
        if state == "running" {
            bed.acquire(&worker, 1).await;
        }
        let checked = retire(&bed, "r").await;
        let reasons = no(&checked);
        let word = match state {
            "suspect" => "ready",
            "parked" => "failed",
            other => other,
        };
        assert_eq!(reasons.tasks[0].id, id, "{state}");
        assert_eq!(
            (reasons.tasks[0].state, reasons.lanes[0].counts[word]),
            (word, 1),
            "{state}"
        );
        assert_eq!(reasons.lanes[0].remaining, ["2..2"], "{state}");
    }
}

#[tokio::test]
async fn te_48_what_was_stored_since_decides_about_the_way_back() {
    let bed = Bed::new().await;
    serving(&bed, "v1", 1, 1, 1).await;
    let new = serving(&bed, "v2", 1, 2, 2).await;
    let held = bed.claim(&new).await;
    let unknown = roll_back(&bed, "v1").await;
    assert!(
        matches!(&unknown.answer, Answer::Unknown(why) if why[0].contains("may still write")),
        "{unknown:?}"
    );
    let saved = bed
        .store
        .checkpoint(SaveTo {
            held: held.held,
            lane: held.lane,
            protocol: 2,
            data: b"{}".to_vec(),
        })
        .await
        .unwrap();
    assert!(
        matches!(saved, aegis_model::Outcome::Applied(_)),
        "{saved:?}"
    );
    let checked = roll_back(&bed, "v1").await;
    let task = &no(&checked).tasks[0];
    assert_eq!(
        (task.id, task.input, task.checkpoint),
        (held.held.task, Some(1), Some(2))
    );
    assert_eq!(task.stored(), "input 1, checkpoint 2");
    assert_eq!(task.lane, "default/k 1..2");
    // Said instead of remembered, the target may read it after all.
    let said = RollBack {
        reads: vec![Reads {
            queue: "default".to_owned(),
            kind: "k".to_owned(),
            min: 1,
            max: 2,
        }],
        ..RollBack::default()
    };
    assert_eq!(
        bed.store.may_roll_back(&said, 20).await.unwrap().answer,
        Answer::Yes
    );
}

#[tokio::test]
async fn a_way_back_is_open_once_nobody_writes_what_the_older_one_cannot_read() {
    let bed = Bed::new().await;
    serving(&bed, "v1", 1, 1, 1).await;
    let new = serving(&bed, "v2", 1, 2, 2).await;
    stored(&bed, 1).await;
    assert!(matches!(
        roll_back(&bed, "v1").await.answer,
        Answer::Unknown(_)
    ));
    let pause = bed
        .store
        .pause(PauseScope::Release, "v2", "ann", "rollback");
    pause.await.unwrap();
    assert_eq!(roll_back(&bed, "v1").await.answer, Answer::Yes);
    bed.store
        .resume(PauseScope::Release, "v2", "ann", "it is over")
        .await
        .unwrap();
    bed.store.drain(new.id).await.unwrap();
    assert_eq!(roll_back(&bed, "v1").await.answer, Answer::Yes);
    // A draining worker that still holds a task of the kind may write.
    let slow = serving(&bed, "v2", 1, 2, 2).await;
    bed.acquire(&slow, 1).await;
    bed.store.drain(slow.id).await.unwrap();
    assert!(matches!(
        roll_back(&bed, "v1").await.answer,
        Answer::Unknown(_)
    ));
}

#[tokio::test]
async fn who_stays_reads_on() {
    let bed = Bed::new().await;
    serving(&bed, "v1", 1, 1, 1).await;
    serving(&bed, "v2", 2, 2, 2).await;
    serving(&bed, "v3", 3, 3, 3).await;
    stored(&bed, 3).await;
    // Without `from` both others are replaced; with it v3 stays.
    let _ = no(&roll_back(&bed, "v1").await);
    let back = RollBack {
        to: Some("v1".to_owned()),
        from: Some("v2".to_owned()),
        ..RollBack::default()
    };
    assert_eq!(
        bed.store.may_roll_back(&back, 20).await.unwrap().answer,
        Answer::Yes
    );
}

#[tokio::test]
async fn te_50_what_cannot_be_told_is_unknown() {
    let bed = Bed::new().await;
    stored(&bed, 1).await;
    assert!(matches!(
        retire(&bed, "nobody").await.answer,
        Answer::Unknown(_)
    ));
    assert!(matches!(
        roll_back(&bed, "nobody").await.answer,
        Answer::Unknown(_)
    ));
    serving(&bed, "r", 1, 1, 1).await;
    // Who is replaced is known, what would replace it is not: it may well read everything.
    let back = RollBack {
        to: Some("nobody".to_owned()),
        from: Some("r".to_owned()),
        ..RollBack::default()
    };
    let checked = bed.store.may_roll_back(&back, 20).await.unwrap();
    assert!(
        matches!(&checked.answer, Answer::Unknown(why) if why[0].contains("--reads")),
        "{checked:?}"
    );
    assert_eq!(bed.store.all_read(20).await.unwrap().answer, Answer::Yes);
    bed.sql("update aegis.database set closed_at = now(), closed_why = 'restored'")
        .await;
    for checked in [
        retire(&bed, "nobody").await,
        bed.store.all_read(20).await.unwrap(),
    ] {
        assert!(
            matches!(&checked.answer, Answer::Unknown(why) if why[0].contains("adopt")),
            "{checked:?}"
        );
    }
}

#[tokio::test]
async fn te_49_stranded_tells_who_could_read_and_since_when_nobody_does() {
    let bed = Bed::new().await;
    let worker = serving(&bed, "r7", 1, 2, 2).await;
    let id = stored(&bed, 2).await;
    assert_eq!(bed.store.all_read(20).await.unwrap().answer, Answer::Yes);
    // Its lease has run out and nobody has noticed yet: registered, and dead.
    bed.expire(&worker).await;
    let checked = bed.store.all_read(20).await.unwrap();
    let lane = &no(&checked).lanes[0];
    assert_eq!(
        (
            lane.former[0].release.as_str(),
            lane.former[0].build.as_str()
        ),
        ("r7", "build-r7")
    );
    assert_eq!(lane.former[0].state, "lost");
    assert!(lane.unread_since.unwrap() <= checked.at);
    assert_eq!(no(&checked).tasks[0].id, id);
    // Nobody ever could.
    bed.sql("truncate aegis.worker_capability").await;
    let checked = bed.store.all_read(20).await.unwrap();
    let lane = &no(&checked).lanes[0];
    assert_eq!((lane.former.len(), lane.unread_since), (0, None));
}

#[tokio::test]
async fn paused_is_not_stranded() {
    let bed = Bed::new().await;
    serving(&bed, "r", 1, 1, 1).await;
    stored(&bed, 1).await;
    for (scope, value) in [
        (PauseScope::Queue, "default"),
        (PauseScope::Kind, "k"),
        (PauseScope::Release, "r"),
    ] {
        bed.store
            .pause(scope, value, "ann", "maintenance")
            .await
            .unwrap();
        let checked = bed.store.all_read(20).await.unwrap();
        assert_eq!(checked.answer, Answer::Yes, "{scope:?}");
        assert!(
            checked
                .remarks
                .iter()
                .any(|text| text.contains("is read and paused")),
            "{scope:?}: {:?}",
            checked.remarks
        );
        bed.store
            .resume(scope, value, "ann", "it is over")
            .await
            .unwrap();
    }
    let checked = bed.store.all_read(20).await.unwrap();
    assert!(
        checked.remarks.iter().all(|text| !text.contains("paused")),
        "{:?}",
        checked.remarks
    );
}

#[tokio::test]
async fn counts_are_bounded_and_say_so_and_every_lane_has_an_example() {
    let bed = Bed::new().await;
    bed.submit_many("many", 1200).await;
    let few = bed.submit("few").await;
    let checked = bed.store.all_read(20).await.unwrap();
    let reasons = no(&checked);
    assert_eq!((reasons.lanes_total, reasons.tasks.len()), (2, 20));
    let many = reasons
        .lanes
        .iter()
        .find(|lane| lane.kind == "many")
        .unwrap();
    assert!(many.at_least && many.counts["ready"] == 1001, "{many:?}");
    assert!(reasons.at_least);
    assert!(
        reasons.tasks.iter().any(|task| task.id == few),
        "one of each lane before a second of any"
    );
}

#[tokio::test]
async fn an_operation_is_told_with_what_is_open() {
    let bed = Bed::new().await;
    let worker = serving(&bed, "r", 1, 1, 1).await;
    let claim = bed.claim(&worker).await;
    bed.dispatch(&claim, Class::Blind).await;
    let reasons = retire(&bed, "r").await;
    let task = &no(&reasons).tasks[0];
    assert_eq!(
        (task.open_operations, task.operations.as_slice(), task.owner),
        (1, &[1][..], Some(worker.id))
    );
}

/// 20,000 tasks in 40 lanes of every state: what is read is bounded by what is told, whatever statistics say.
#[tokio::test]
async fn no_question_reads_the_whole_table() {
    use aegis_store::generated::lane;
    let bed = Bed::new().await;
    bed.sql("alter table aegis.task set (autovacuum_enabled = off)")
        .await;
    let mut many = registration(&[]);
    "r".clone_into(&mut many.release);
    many.capabilities = (0..20)
        .map(|n| Capability {
            queue: "default".to_owned(),
            kind: format!("k{n}"),
            protocols: ProtocolRange::new(1, 1, 1).unwrap(),
            slots: 1000,
        })
        .collect();
    bed.store.register(many).await.unwrap();
    bed.sql(
        "insert into aegis.tenant (name) select 't' || n from generate_series(1, 5) n;
         insert into aegis.lane (queue, kind, lo, hi) select 'default', 'k' || n % 20, 1 + n / 20, 1 + n / 20 from generate_series(0, 39) n;
         insert into aegis.task (id, lane, tenant, state, ord, run_at)
             select aegis.uuid7(), 1 + n % 40, (select min(id) from aegis.tenant), case when n % 10 < 8 then 1 else 0 end, n,
                 case when n % 10 >= 8 then now() + interval '1 day' end from generate_series(1, 20000) n;",
    )
    .await;
    let reader = bed.db.connect_as("aegis_reader").await;
    for analyzed in [false, true] {
        if analyzed {
            bed.sql("analyze aegis.task; analyze aegis.lane").await;
        }
        for planning in [Planning::Generic, Planning::Custom] {
            let told = "20".to_owned();
            let plans: Vec<(&str, Plan)> = vec![
                (
                    "stranded",
                    explain(
                        &reader,
                        &lane::STRANDED,
                        0,
                        std::slice::from_ref(&told),
                        planning,
                    )
                    .await,
                ),
                (
                    "retire",
                    explain(
                        &reader,
                        &lane::MAY_RETIRE,
                        0,
                        &[
                            "null".to_owned(),
                            "'r'".to_owned(),
                            "null".to_owned(),
                            told.clone(),
                        ],
                        planning,
                    )
                    .await,
                ),
                (
                    "roll back",
                    explain(
                        &reader,
                        &lane::MAY_ROLL_BACK,
                        0,
                        &[
                            "'{default}'".to_owned(),
                            "'{k1}'".to_owned(),
                            "'{2}'".to_owned(),
                            "'{2}'".to_owned(),
                            "null".to_owned(),
                            "null".to_owned(),
                            told,
                        ],
                        planning,
                    )
                    .await,
                ),
            ];
            for (name, plan) in plans {
                let what = format!(
                    "{name}, {planning:?}, analyzed {analyzed}: {:?}",
                    plan.reads_of_task()
                );
                assert!(
                    !plan.reads_of_task().contains(&"Seq Scan".to_owned()),
                    "{what}"
                );
                assert!(!plan.is_compiled(), "{what}");
                let read = plan.rows_of_task();
                assert!(read < 8000.0, "{what}: {read} rows of 20,000");
            }
        }
    }
}

#[tokio::test]
async fn with_many_lanes_each_is_named_and_the_first_are_looked_into() {
    let bed = Bed::new().await;
    for n in 0..25 {
        bed.submit(&format!("k{n:02}")).await;
    }
    let checked = bed.store.all_read(50).await.unwrap();
    let reasons = no(&checked);
    assert_eq!(
        (reasons.lanes.len(), reasons.lanes_total, reasons.at_least),
        (25, 25, true)
    );
    let looked_into: Vec<bool> = reasons.lanes.iter().map(|lane| lane.looked_into).collect();
    assert_eq!(looked_into.iter().filter(|one| **one).count(), 20);
    assert!(
        reasons.lanes[0]
            .readers()
            .contains("no worker that is remembered")
    );
    assert!(reasons.lanes[24].readers().contains("not looked up"));
    assert_eq!((reasons.tasks_counted, reasons.tasks.len()), (20, 20));
}
