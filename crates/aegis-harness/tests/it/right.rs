//! Right handlers survive every crash, whatever the class of their operation.

use aegis_harness::{Cut, Harness};
use aegis_harness::{Explore, NewTask, Outcome, Point, Subject};
use aegis_worker::{Class, TaskContext, TaskError, handler_fn};
use serde_json::json;

use crate::support::{Charge, explore, harness};

/// Names of the faults of an exploration.
fn places(report: &aegis_harness::Report) -> Vec<String> {
    report
        .cases
        .iter()
        .map(|case| {
            let faults: Vec<_> = case.faults.iter().map(ToString::to_string).collect();
            faults.join(", then ")
        })
        .collect()
}

async fn charging(class: Class) -> Harness {
    harness!(|bank| Charge {
        class,
        bank: bank.clone()
    })
}

const COMMON: [&str; 10] = [
    "crash at handler before",
    "crash at step text/7 before",
    "crash at step text/7 ran",
    "crash at step text/7 stored",
    "crash at operation charge/7 before",
    "crash at operation charge/7 dispatched",
    "crash at operation charge/7 ran",
    "crash at operation charge/7 stored",
    "crash at handler ran",
    "crash at handler stored",
];

#[tokio::test]
async fn te_56_te_57_idempotent_and_fenced_operations_happen_once() {
    for class in [Class::Idempotent, Class::Fenced] {
        let mut harness = charging(class).await;
        let report = explore(&mut harness, "charge", json!(7)).await;
        report.assert_safe();
        assert_eq!(
            (report.doubled(), report.lost(), report.doubtful()),
            (0, 0, 0)
        );
        assert_eq!(places(&report), COMMON);
        let executions: Vec<_> = report.cases.iter().map(|case| case.executions).collect();
        assert_eq!(
            executions,
            [2, 2, 2, 2, 2, 2, 2, 2, 2, 1],
            "at the last point it is done"
        );
        let effects = harness.effects().all().len();
        assert_eq!(effects, 1 + COMMON.len(), "one for each task");
        // Of the two crashes with an open operation, one came after the effect: its repeat was a request without an effect.
        assert_eq!(harness.effects().requests(), effects + 1);
    }
}

#[tokio::test]
async fn a_queryable_operation_is_probed_and_happens_once() {
    let mut harness = charging(Class::Queryable).await;
    let report = explore(&mut harness, "charge", json!(7)).await;
    report.assert_safe();
    assert_eq!(
        (report.doubled(), report.lost(), report.doubtful()),
        (0, 0, 0)
    );
    let mut wanted: Vec<String> = COMMON.map(str::to_owned).into();
    // What only a takeover reaches.
    for cut in ["before-probe", "probed"] {
        wanted.push(format!(
            "crash at operation charge/7 dispatched, then crash at operation charge/7 {cut}"
        ));
    }
    assert_eq!(places(&report), wanted);
    assert_eq!(
        harness.effects().requests(),
        1 + wanted.len(),
        "no request was repeated"
    );
}

#[tokio::test]
async fn te_58_te_59_every_doubtful_blind_operation_waits_for_a_person_and_none_is_repeated() {
    let mut harness = charging(Class::Blind).await;
    let report = explore(&mut harness, "charge", json!(7)).await;
    report.assert_safe();
    let doubtful: Vec<_> = report
        .cases
        .iter()
        .filter(|case| !case.doubtful.is_empty())
        .map(|case| (case.faults[0].to_string(), case.outcome.clone()))
        .collect();
    let outcome = Outcome::WaitsForPerson {
        operations: vec!["charge/7/v1".to_owned()],
        expected: true,
    };
    assert_eq!(
        doubtful,
        [
            (
                "crash at operation charge/7 dispatched".to_owned(),
                outcome.clone()
            ),
            ("crash at operation charge/7 ran".to_owned(), outcome),
        ]
    );
    assert_eq!(report.doubled(), 0);
}

#[tokio::test]
async fn a_frozen_worker_of_any_class_does_nothing_late() {
    for class in [
        Class::Idempotent,
        Class::Fenced,
        Class::Queryable,
        Class::Blind,
    ] {
        let mut harness = charging(class).await;
        let task = NewTask::new("charge", "7");
        let report = harness
            .explore(task, &Explore::new().with_freezes().without_second_faults())
            .await
            .unwrap();
        report.assert_safe();
        assert_eq!(report.doubled(), 0);
        // The window that only the downstream could close is left out where it has no way to.
        let window = "freeze at operation charge/7 dispatched".to_owned();
        let has_a_way = matches!(class, Class::Idempotent | Class::Fenced);
        assert_eq!(places(&report).contains(&window), has_a_way);
    }
}

#[tokio::test]
async fn a_loop_with_checkpoints_and_operations_survives_crashes_and_freezes() {
    let mut harness = harness!(|mail| handler_fn(
        "mails",
        move |ctx: TaskContext, people: Vec<String>| {
            let mail = mail.clone();
            async move {
                let first: usize = match ctx.checkpoint().await? {
                    Some(done) => serde_json::from_value(done)?,
                    None => 0,
                };
                for (index, person) in people.iter().enumerate().skip(first) {
                    let _: () = ctx
                        .operation("mail", person)
                        .class(Class::Idempotent)
                        .execute(|call| {
                            let mail = mail.clone();
                            async move { mail.once(&call, || ()) }
                        })
                        .await?;
                    ctx.save_checkpoint(&json!(index + 1)).await?;
                }
                Ok(people.len())
            }
        }
    ));
    let task = NewTask::new("mails", json!(["ann", "bob", "eve"]).to_string());
    let report = harness
        .explore(task, &Explore::new().with_freezes())
        .await
        .unwrap();
    report.assert_safe();
    // Three of the handler, and six of each round; each crashed and frozen.
    assert_eq!(report.cases.len(), 2 * (3 + 3 * 6));
    let place = "freeze at checkpoint stored #3".to_owned();
    assert!(places(&report).contains(&place));
}

#[tokio::test]
async fn own_sql_with_the_fence_happens_once() {
    let mut harness = harness!(|_world| handler_fn(
        "book",
        |ctx: TaskContext, amount: i32| async move {
            if ctx.checkpoint().await?.is_none() {
                ctx.commit(&json!("half"), move |tx| {
                    Box::pin(async move {
                        tx.execute(
                            "insert into public.booking (amount) values ($1)",
                            &[&amount],
                        )
                        .await?;
                        Ok(())
                    })
                })
                .await?;
            }
            ctx.complete_in(move |tx| {
                Box::pin(async move {
                    tx.execute(
                        "insert into public.booking (amount) values ($1)",
                        &[&-amount],
                    )
                    .await?;
                    Ok(amount)
                })
            })
            .await
        }
    ));
    harness
        .sql("create table public.booking (amount int); grant insert on public.booking to aegis_engine")
        .await
        .unwrap();
    let report = explore(&mut harness, "book", json!(5)).await;
    report.assert_safe();
    let (client, connection) =
        tokio_postgres::connect(&harness.database_url(), tokio_postgres::NoTls)
            .await
            .unwrap();
    tokio::spawn(connection);
    let sql = "select count(*), count(*) filter (where amount > 0) from public.booking";
    let row = client.query_one(sql, &[]).await.unwrap();
    let runs = i64::try_from(1 + report.cases.len()).unwrap();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1)),
        (2 * runs, runs)
    );
    for point in [
        Point::new(Subject::Commit, Cut::Ran),
        Point::new(Subject::CompleteIn, Cut::Ran),
        Point::new(Subject::CompleteIn, Cut::Stored),
    ] {
        assert!(report.baseline.points.contains(&point), "{point}");
    }
}

#[tokio::test]
async fn a_handler_that_postpones_itself_and_fails_at_first_is_explored_too() {
    let mut harness = harness!(|_world| handler_fn(
        "moody",
        |ctx: TaskContext, (): ()| async move {
            if ctx.snoozes() == 0 {
                return Err(TaskError::snooze(std::time::Duration::from_hours(24)));
            }
            if ctx.failures() == 0 {
                return Err(TaskError::retryable("busy", "not now"));
            }
            Ok(())
        }
    ));
    let report = explore(&mut harness, "moody", json!(null)).await;
    report.assert_safe();
    assert_eq!(report.baseline.executions, 3);
    assert_eq!(
        report.cases.len(),
        9,
        "three for each of the three executions"
    );
}
