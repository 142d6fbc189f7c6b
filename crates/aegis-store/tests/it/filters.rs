//! Which tasks a filter finds, and what a page of it costs.

use std::collections::{BTreeMap, BTreeSet};

use aegis_model::State;
use aegis_store::change::Change;
use aegis_store::filter::SCAN_ROWS;
use aegis_store::generated::task;
use aegis_store::view::TaskFilter;
use serde_json::json;
use uuid::Uuid;

use crate::explain::{Planning, explain};
use crate::support::{Bed, failure};
use crate::verbs::by;

fn labels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

async fn found(bed: &Bed, change: impl FnOnce(&mut TaskFilter)) -> BTreeSet<Uuid> {
    let mut filter = TaskFilter::default();
    change(&mut filter);
    let rows = bed.store.tasks(&filter).await.unwrap();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    assert!(
        ids.is_sorted_by(|a, b| a > b),
        "the newest first, each once"
    );
    ids.into_iter().collect()
}

#[tokio::test]
async fn each_condition_finds_what_it_says_and_together_they_narrow() {
    let bed = Bed::new().await;
    let plain = bed.submit("a").await;
    let other = bed
        .submit_with("b", |task| {
            task.queue = "q".to_owned();
            task.tenant = "t".to_owned();
            task.labels = Some(json!({"batch": "7", "team": "x"}));
        })
        .await;
    let labelled = bed
        .submit_with("a", |task| task.labels = Some(json!({"batch": "7"})))
        .await;
    let set = |ids: &[Uuid]| ids.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(found(&bed, |_| {}).await, set(&[plain, other, labelled]));
    assert_eq!(
        found(&bed, |f| f.queue = Some("q".into())).await,
        set(&[other])
    );
    assert_eq!(
        found(&bed, |f| f.kind = Some("a".into())).await,
        set(&[plain, labelled])
    );
    assert_eq!(
        found(&bed, |f| f.tenant = Some("t".into())).await,
        set(&[other])
    );
    assert_eq!(
        found(&bed, |f| f.tenant = Some("nobody".into())).await,
        set(&[])
    );
    let batch = labels(&[("batch", "7")]);
    assert_eq!(
        found(&bed, |f| f.labels = batch.clone()).await,
        set(&[other, labelled])
    );
    let both = labels(&[("batch", "7"), ("team", "x")]);
    assert_eq!(found(&bed, |f| f.labels = both).await, set(&[other]));
    assert_eq!(
        found(&bed, |f| {
            f.labels = batch.clone();
            f.kind = Some("a".into());
        })
        .await,
        set(&[labelled])
    );
    assert_eq!(found(&bed, |f| f.before = Some(other)).await, set(&[plain]));
    assert_eq!(found(&bed, |f| f.limit = 1).await, set(&[labelled]));
    let error = bed
        .store
        .tasks(&TaskFilter {
            older_than_ms: Some(-1),
            ..TaskFilter::default()
        })
        .await
        .unwrap_err();
    assert_eq!(error.code().unwrap().as_str(), "AEG-0017");
}

#[tokio::test]
async fn age_is_the_time_since_submit_by_the_databases_clock() {
    let bed = Bed::new().await;
    let new = bed.submit("k").await;
    let old: Uuid = bed
        .value(
            "insert into aegis.task (id, lane, tenant, state, ord) select aegis.uuid7_floor(clock_timestamp() - interval '2 hours'),
                lane, tenant, 1, 0 from aegis.task returning id",
            &[],
        )
        .await;
    let hour = 3_600_000;
    let set = |ids: &[Uuid]| ids.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(
        found(&bed, |f| f.older_than_ms = Some(hour)).await,
        set(&[old])
    );
    assert_eq!(
        found(&bed, |f| f.newer_than_ms = Some(hour)).await,
        set(&[new])
    );
    assert_eq!(
        found(&bed, |f| {
            f.older_than_ms = Some(hour);
            f.newer_than_ms = Some(3 * hour);
        })
        .await,
        set(&[old])
    );
    assert_eq!(
        found(&bed, |f| f.newer_than_ms = Some(3 * hour)).await,
        set(&[old, new])
    );
}

#[tokio::test]
async fn parked_and_discarded_are_both_failed_and_told_apart() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut fatal = failure(bed.claim(&worker).await.held);
        fatal.retryable = false;
        ids.push(fatal.held.task);
        bed.store.fail(vec![fatal]).await.unwrap();
    }
    bed.store.discard(ids[0], "ann", "x").await.unwrap();
    let set = |ids: &[Uuid]| ids.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(
        found(&bed, |f| f.states = vec![State::Failed]).await,
        set(&ids)
    );
    assert_eq!(found(&bed, |f| f.parked = true).await, set(&ids[1..]));
    assert_eq!(found(&bed, |f| f.discarded = true).await, set(&ids[..1]));
    let filter = TaskFilter {
        states: vec![State::Failed],
        ..TaskFilter::default()
    };
    let rows = bed.store.tasks(&filter).await.unwrap();
    let parked: Vec<bool> = rows.iter().map(|row| row.parked).collect();
    assert_eq!(parked, [true, false]);
}

#[tokio::test]
async fn a_sweep_changes_what_matches_and_nothing_else_and_what_comes_later_is_not_met() {
    let bed = Bed::new().await;
    bed.submit_many("wanted", 1100).await;
    let others = bed.submit_many("other", 5).await;
    let filter = TaskFilter {
        kind: Some("wanted".to_owned()),
        ..TaskFilter::default()
    };
    let mut limited = bed
        .store
        .sweep(
            &TaskFilter {
                limit: 7,
                ..filter.clone()
            },
            Change::Cancel,
            &by("x"),
            true,
        )
        .await
        .unwrap();
    assert_eq!(limited.page(&bed.store).await.unwrap().unwrap().len(), 7);
    assert!(limited.page(&bed.store).await.unwrap().is_none());

    let mut sweep = bed
        .store
        .sweep(&filter, Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    let first = sweep.page(&bed.store).await.unwrap().unwrap();
    assert_eq!(first.len(), 500, "a page is bounded");
    let later = bed.submit("wanted").await;
    let mut changed = first.len();
    while let Some(page) = sweep.page(&bed.store).await.unwrap() {
        assert!(page.iter().all(|one| one.answer.word() == "cancelled"));
        changed += page.len();
    }
    assert_eq!(changed, 1100);
    assert_eq!(bed.state(later).await, State::Ready);
    for id in others {
        assert_eq!(bed.state(id).await, State::Ready);
    }
    // Broken off and begun anew, it finds what is left.
    let mut again = bed
        .store
        .sweep(&filter, Change::Cancel, &by("x"), false)
        .await
        .unwrap();
    let rest = again.page(&bed.store).await.unwrap().unwrap();
    assert_eq!(rest.len(), 1);
}

/// Many live tasks, the oldest few of a kind of their own.
async fn crowd(bed: &Bed, count: i64) -> Vec<Uuid> {
    let rare = bed.submit_many("rare", 3).await;
    bed.submit("common").await;
    bed.sql(&format!(
        "insert into aegis.task (id, lane, tenant, state, ord)
         select aegis.uuid7_nth((date_part('epoch', clock_timestamp()) * 1000)::bigint + 5, n, n), l.id, 1, 1, n
         from generate_series(1, {count}) n, aegis.lane l where l.kind = 'common'"
    ))
    .await;
    rare
}

#[tokio::test]
async fn a_rare_task_behind_many_others_is_found_in_bounded_pages() {
    let bed = Bed::new().await;
    let rare = crowd(&bed, SCAN_ROWS * 2 + 500).await;
    // What stands in the future of the clock is not older than now: wait until it does not.
    aegis_testkit::wait_until("the crowd's ids are past", std::time::Duration::from_secs(5), async || {
        bed.value::<bool>(
            "select (select id from aegis.task order by id desc limit 1) < aegis.uuid7_floor(clock_timestamp())",
            &[],
        )
        .await
    })
    .await;
    let filter = TaskFilter {
        kind: Some("rare".to_owned()),
        ..TaskFilter::default()
    };
    let mut walk = bed.store.walk(&filter).await.unwrap();
    let (mut pages, mut found) = (0, BTreeSet::new());
    while !walk.is_done() {
        pages += 1;
        found.extend(
            walk.page(&bed.store, 100)
                .await
                .unwrap()
                .iter()
                .map(|row| row.id),
        );
    }
    assert_eq!(pages, 3, "two that find nothing, and the last");
    assert_eq!(found, rare.into_iter().collect());
}

#[tokio::test]
async fn no_page_reads_more_than_its_share_whatever_the_statistics() {
    let bed = Bed::new().await;
    bed.sql("alter table aegis.task set (autovacuum_enabled = off)")
        .await;
    crowd(&bed, 100_000).await;
    let engine = bed.engine().await;
    let top = "'ffffffff-ffff-ffff-ffff-ffffffffffff'".to_owned();
    let nil = format!("'{}'", Uuid::nil());
    let yes = || "true".to_owned();
    let list = |walk: bool, floor: &str, live: &str| -> Vec<String> {
        let values = [
            ("queue", "null"),
            ("kind", "'rare'"),
            ("tenant", "null"),
            ("walk", if walk { "true" } else { "false" }),
            ("before", top.as_str()),
            ("floor", floor),
            ("live", live),
            ("parked", "'{}'"),
            ("ended", "'{}'"),
            ("labels", "null"),
            ("limit", "500"),
        ];
        values
            .iter()
            .map(|(_, value)| (*value).to_owned())
            .collect()
    };
    for analyzed in [false, true] {
        if analyzed {
            bed.sql("analyze aegis.task").await;
        }
        for planning in [Planning::Generic, Planning::Custom] {
            let what = format!("analyzed {analyzed}, {planning:?}");
            let arguments = [
                yes(),
                top.clone(),
                nil.clone(),
                SCAN_ROWS.to_string(),
                yes(),
                yes(),
            ];
            let plan = explain(&engine, &task::FRONTIER, 0, &arguments, planning).await;
            assert_eq!(plan.reads_of_task(), ["task_pkey"], "{what}");
            #[expect(clippy::cast_precision_loss, reason = "a small bound")]
            let share = SCAN_ROWS as f64 + 1.0;
            assert!(
                plan.rows_of_task() <= share,
                "{what}: {}",
                plan.rows_of_task()
            );

            let frontier: Uuid = bed
                .value(
                    "select id from aegis.task order by id desc offset $1 limit 1",
                    &[&SCAN_ROWS],
                )
                .await;
            let arguments = list(true, &format!("'{frontier}'"), "'{0,1,2,3,4}'");
            let plan = explain(&engine, &task::LIST, 0, &arguments, planning).await;
            assert!(
                !plan.reads_of_task().contains(&"Seq Scan".to_owned()),
                "{what}: {:?}",
                plan.reads_of_task()
            );
            assert!(
                plan.rows_of_task() <= share,
                "{what}: {}",
                plan.rows_of_task()
            );

            // Running and reconciling tasks are found where nothing else stands.
            let arguments = list(false, &nil, "'{2,4}'");
            let plan = explain(&engine, &task::LIST, 0, &arguments, planning).await;
            assert!(
                !plan.reads_of_task().contains(&"Seq Scan".to_owned()),
                "{what}: {:?}",
                plan.reads_of_task()
            );
            assert!(
                plan.rows_of_task() < 100.0,
                "{what}: {}",
                plan.rows_of_task()
            );
        }
    }
}
