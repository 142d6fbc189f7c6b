//! Deliberately wrong handlers: the kit finds what is wrong, and where.

use aegis_harness::{Effects, Explore, HarnessError, NewTask, Outcome, Report};
use aegis_worker::{Class, TaskContext, TaskError, handler_fn};
use serde_json::{Value, json};

use crate::support::{Charge, explore, harness};

/// The faults of the cases that were not safe.
fn found(report: &Report) -> Vec<String> {
    report
        .unsafe_cases()
        .map(|case| case.faults[0].to_string())
        .collect()
}

#[tokio::test]
async fn te_57_an_effect_outside_of_an_operation_doubles() {
    let mut harness = harness!(
        |world| handler_fn("mail", move |ctx: TaskContext, who: String| {
            let world = world.clone();
            async move {
                world.happened(format!("mail to {who}"));
                ctx.step("note", &who, || async { Ok(()) }).await
            }
        })
    );
    let report = explore(&mut harness, "mail", json!("ann")).await;
    assert!(!report.is_safe());
    // A crash before the first line is harmless, and one after the end; every other one repeats the mail.
    assert_eq!(found(&report).len(), report.cases.len() - 2);
    assert_eq!(report.doubled(), report.cases.len() - 2);
    assert_eq!(report.cases[1].doubled, ["mail to ann"]);
    let table = report.to_string();
    assert!(table.contains("DOUBLED mail to ann"), "{table}");
}

#[tokio::test]
async fn an_effect_inside_of_a_step_doubles_only_between_effect_and_store() {
    let mut harness = harness!(
        |world| handler_fn("mail", move |ctx: TaskContext, who: String| {
            let world = world.clone();
            async move {
                let to = who.clone();
                ctx.step("mail", &who, || async move {
                    world.happened(format!("mail to {to}"));
                    Ok(())
                })
                .await
            }
        })
    );
    let report = explore(&mut harness, "mail", json!("ann")).await;
    assert_eq!(found(&report), ["crash at step mail/ann ran"]);
    assert_eq!(report.doubled(), 1);
}

#[tokio::test]
async fn a_class_that_the_downstream_does_not_keep_doubles() {
    // The handler believes in idempotency keys, and the bank knows none.
    let mut harness = harness!(
        |bank| handler_fn("charge", move |ctx: TaskContext, (): ()| {
            let bank = bank.clone();
            async move {
                ctx.operation("charge", 7)
                    .class(Class::Idempotent)
                    .execute(|call| {
                        let bank = bank.clone();
                        async move { bank.each_time(&call, || ()) }
                    })
                    .await?;
                Ok(())
            }
        })
    );
    let report = explore(&mut harness, "charge", json!(null)).await;
    assert_eq!(found(&report), ["crash at operation charge/7 ran"]);
    let case = report.unsafe_cases().next().unwrap();
    assert_eq!(case.doubled, ["charge/7/v1"]);
}

#[tokio::test]
async fn a_checkpoint_before_the_effect_loses_it() {
    let mut harness = harness!(|world| handler_fn(
        "mails",
        move |ctx: TaskContext, people: Vec<String>| {
            let world = world.clone();
            async move {
                let first: usize = match ctx.checkpoint().await? {
                    Some(done) => serde_json::from_value(done)?,
                    None => 0,
                };
                for (index, who) in people.iter().enumerate().skip(first) {
                    ctx.save_checkpoint(&json!(index + 1)).await?;
                    world.happened(format!("mail to {who}"));
                }
                Ok(())
            }
        }
    ));
    let report = explore(&mut harness, "mails", json!(["ann", "bob"])).await;
    assert_eq!(
        found(&report),
        [
            "crash at checkpoint stored",
            "crash at checkpoint stored #2"
        ]
    );
    let lost: Vec<_> = report
        .unsafe_cases()
        .map(|case| case.lost.clone())
        .collect();
    assert_eq!(lost, [["mail to ann"], ["mail to bob"]]);
    assert_eq!(report.doubled(), 0);
}

/// Numbers its steps and operations by their place in the loop, which starts anew at the checkpoint.
fn by_position(world: Effects, operations: bool) -> impl aegis_worker::TaskHandler {
    handler_fn("sums", move |ctx: TaskContext, items: Vec<i64>| {
        let world = world.clone();
        async move {
            let (first, mut sum): (usize, i64) = match ctx.checkpoint().await? {
                Some(saved) => serde_json::from_value(saved)?,
                None => (0, 0),
            };
            for (position, item) in items.iter().copied().skip(first).enumerate() {
                sum += if operations {
                    ctx.operation("double", position)
                        .class(Class::Idempotent)
                        .request(&item)
                        .execute(|call| {
                            let world = world.clone();
                            async move { world.once(&call, || item * 2) }
                        })
                        .await?
                } else {
                    ctx.step("double", position, || async move { Ok(item * 2) })
                        .await?
                };
                ctx.save_checkpoint(&json!([first + position + 1, sum]))
                    .await?;
            }
            Ok::<_, TaskError>(sum)
        }
    })
}

#[tokio::test]
async fn a_step_keyed_by_its_position_gives_another_result() {
    let mut harness = harness!(|world| by_position(world.clone(), false));
    let report = explore(&mut harness, "sums", json!([1, 10])).await;
    assert!(report.unsafe_cases().next().is_some());
    assert!(report.unsafe_cases().all(|case| case.other_result));
    assert!(found(&report).contains(&"crash at checkpoint stored".to_owned()));
    // Allowed to differ, the same handler passes: the results are all that gives it away.
    let task = NewTask::new("sums", "[1, 10]");
    let lenient = Explore::new().results_may_differ();
    harness.explore(task, &lenient).await.unwrap().assert_safe();
}

#[tokio::test]
async fn an_operation_keyed_by_its_position_is_refused() {
    let mut harness = harness!(|world| by_position(world.clone(), true));
    let report = explore(&mut harness, "sums", json!([1, 10])).await;
    let refused = report.unsafe_cases().find_map(|case| match &case.outcome {
        Outcome::Failed { code, message } => Some((code.clone(), message.clone())),
        _ => None,
    });
    let (code, message) = refused.unwrap();
    assert_eq!(code, "AEG-0011");
    assert!(message.contains("a request must not change"), "{message}");
    // An operation that the handler can no longer reach is left to people, and its class does not excuse that.
    let left = report.cases.iter().find(|case| !case.doubtful.is_empty());
    assert!(left.is_some_and(|case| !case.is_safe()));
    assert!(report.to_string().contains("DOUBTFUL double/1/v1"));
}

/// Writes down what it has done after a step, whatever became of the step.
fn telling(world: Effects, passes_on: bool) -> impl aegis_worker::TaskHandler {
    handler_fn("tell", move |ctx: TaskContext, (): ()| {
        let world = world.clone();
        async move {
            let noted = ctx.step("note", 1, || async { Ok(()) }).await;
            if passes_on {
                noted?;
            }
            world.happened("told the boss");
            Ok(())
        }
    })
}

#[tokio::test]
async fn swallowing_a_lost_lease_is_found_by_freezing() {
    const PLACE: &str = "freeze at step note/1 ran";
    let frozen = Explore::new().with_freezes();
    for passes_on in [true, false] {
        let mut harness = harness!(|world| telling(world.clone(), passes_on));
        let task = NewTask::new("tell", "null");
        let report = harness.explore(task, &frozen).await.unwrap();
        let mut cases = report.cases.iter();
        let case = cases
            .find(|case| case.faults[0].to_string() == PLACE)
            .unwrap();
        assert_eq!(case.is_safe(), passes_on);
        let told: &[&str] = if passes_on { &[] } else { &["told the boss"] };
        assert_eq!(case.doubled, told);
        assert_eq!(case.late, told, "by the one that had lost its lease");
    }
}

#[tokio::test]
async fn a_handler_that_does_not_even_succeed_is_an_error() {
    let mut harness = harness!(|_world| handler_fn(
        "bad",
        |_ctx: TaskContext, (): ()| async move { Err::<Value, _>(TaskError::terminal("no", "never")) }
    ));
    let task = NewTask::new("bad", "null");
    let error = harness.explore(task, &Explore::new()).await.unwrap_err();
    assert!(
        matches!(&error, HarnessError::Baseline { outcome } if outcome == "failed: no: never"),
        "{error}"
    );
}

#[tokio::test]
async fn what_was_not_tried_is_not_safe() {
    let mut harness = harness!(|bank| Charge {
        class: Class::Idempotent,
        bank: bank.clone()
    });
    let task = NewTask::new("charge", "7");
    let report = harness
        .explore(task, &Explore::new().at_most(2))
        .await
        .unwrap();
    assert_eq!((report.cases.len(), report.left_out), (2, 8));
    assert!(!report.is_safe());
    assert!(report.to_string().contains("NOT TRIED: 8 cases"));
}
