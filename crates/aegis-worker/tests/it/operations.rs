//! External side effects: the four classes, lost answers, probes, people.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aegis_model::Resolution;
use aegis_store::overrides::Decided;
use aegis_store::{NewTask, RetryPolicy};
use aegis_testkit::wait_until;
use aegis_worker::points::{self, Listener, Reached};
use aegis_worker::{
    CallError, Class, EngineStop, OperationCall, OperationError, Probe, TaskContext, TaskError,
    handler_fn, operation_id,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::proxy::{Cut, Proxy};
use crate::support::{
    BOUND, Bench, Running, quick_retries, quick_task, result, store_at_unnamed, worker_on,
};

/// A downstream that answers by a script and writes down every call.
#[derive(Clone, Default)]
struct Downstream {
    script: Arc<Mutex<Vec<Answer>>>,
    calls: Arc<Mutex<Vec<(OperationCall, Instant)>>>,
}

#[derive(Clone, Debug)]
enum Answer {
    Refused,
    TurnedAway,
    NotApplied,
    /// The connection is cut.
    Cut,
    /// No answer at all.
    Silence,
}

impl Downstream {
    fn scripted(answers: &[Answer]) -> Self {
        let downstream = Self::default();
        downstream
            .script
            .lock()
            .unwrap()
            .extend(answers.iter().rev().cloned());
        downstream
    }

    /// Answers the next one of the script, and well when it is over.
    async fn call(&self, call: OperationCall) -> Result<Value, CallError> {
        let answer = self.script.lock().unwrap().pop();
        let n = {
            let mut calls = self.calls.lock().unwrap();
            calls.push((call, Instant::now()));
            calls.len()
        };
        match answer {
            None => Ok(json!({ "call": n })),
            Some(Answer::Refused) => Err(CallError::failed("no such account")),
            Some(Answer::TurnedAway) => Err(CallError::turned_away("nothing was sent")),
            Some(Answer::NotApplied) => Err(CallError::not_applied("busy")),
            Some(Answer::Cut) => Err(CallError::doubtful("connection cut")),
            Some(Answer::Silence) => std::future::pending().await,
        }
    }

    fn calls(&self) -> Vec<OperationCall> {
        let calls = self.calls.lock().unwrap();
        calls.iter().map(|(call, _)| call.clone()).collect()
    }

    fn last_at(&self) -> Instant {
        self.calls.lock().unwrap().last().unwrap().1
    }
}

/// A handler whose only work is the operation `charge`, as `describe` describes it.
macro_rules! charging {
    ($downstream:expr, $([$kept:ident],)? |$op:ident| $describe:expr) => {{
        let downstream = $downstream.clone();
        handler_fn("charge", move |ctx: TaskContext, (): ()| {
            let downstream = downstream.clone();
            $(let $kept = Arc::clone(&$kept);)?
            async move {
                let $op = ctx
                    .operation("charge", "order 7")
                    .timeout(Duration::from_millis(300))
                    .quiet(Duration::from_millis(400))
                    .request(&json!({ "cents": 100 }));
                let value: Value = $describe
                    .execute(|call| {
                        let downstream = downstream.clone();
                        async move { downstream.call(call).await }
                    })
                    .await?;
                Ok(value)
            }
        })
    }};
}

fn id_of(task: Uuid) -> String {
    operation_id(task, "charge", "order 7", 1)
}

/// Waits until a person has to decide about the operation.
async fn unknown(bench: &Bench, task: Uuid) {
    wait_until("the doubt", BOUND, async || {
        let operation = bench.store.operation(task, &id_of(task)).await.unwrap();
        operation.is_some_and(|operation| operation.state == 4)
            && bench.store.task(task).await.unwrap().unwrap().state == 4
    })
    .await;
}

async fn resolve(bench: &Bench, task: Uuid, resolution: Resolution, result: Option<&[u8]>) {
    let decided = bench
        .store
        .resolve_operation_early(
            task,
            &id_of(task),
            resolution,
            result,
            "ann",
            "asked the bank",
        )
        .await
        .unwrap();
    assert_eq!(decided, Decided::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idempotent_is_repeated_with_the_same_key_within_an_attempt() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Cut, Answer::Silence]);
    let handler = charging!(downstream, |op| op.class(Class::Idempotent));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!({ "call": 3 }));
    assert_eq!(ended.failures, 0);
    let calls = downstream.calls();
    assert!(calls.iter().all(|call| call.id == id_of(task)));
    let dispatches: Vec<i32> = calls.iter().map(|call| call.dispatches).collect();
    assert_eq!(dispatches, [1, 2, 3], "each call has a commit of its own");
    let row = bench
        .store
        .operation(task, &id_of(task))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((row.state, row.dispatches), (2, 3));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idempotent_and_fenced_are_repeated_by_the_next_attempt_with_a_newer_token() {
    for class in [Class::Idempotent, Class::Fenced] {
        let bench = Bench::new().await;
        let downstream = Downstream::scripted(&[Answer::Cut]);
        let handler = charging!(downstream, |op| op.class(class).repeats(0));
        let worker = Running::start(bench.worker().handler(handler));
        let task = bench.submit_task(quick_task("charge")).await;
        let ended = bench.ended(task).await;
        assert_eq!(result(&ended), json!({ "call": 2 }));
        assert_eq!(ended.failures, 1);
        let calls = downstream.calls();
        assert_eq!(calls[0].id, calls[1].id);
        assert!(calls[1].fencing_token > calls[0].fencing_token);
        worker.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_past_its_retention_is_not_repeated_and_a_person_decides() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Cut]);
    let handler = charging!(downstream, |op| op
        .class(Class::Idempotent)
        .repeats(0)
        .key_retention(Duration::from_millis(1350))
        .margin(Duration::from_secs(1)));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench
        .submit_task(NewTask {
            policy: RetryPolicy {
                backoff_initial_ms: 200,
                backoff_cap_ms: 200,
                ..quick_retries()
            },
            ..NewTask::new("charge", "null")
        })
        .await;
    unknown(&bench, task).await;
    assert_eq!(downstream.calls().len(), 1);
    resolve(
        &bench,
        task,
        Resolution::Happened,
        Some(br#"{"by":"hand"}"#),
    )
    .await;
    assert_eq!(result(&bench.ended(task).await), json!({ "by": "hand" }));
    assert_eq!(downstream.calls().len(), 1);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queryable_is_quiet_then_probed_and_what_happened_is_not_repeated() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Silence]);
    let probed_at = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&probed_at);
    let handler = charging!(downstream, [noted], |op| op.probe(move |call| {
        let noted = Arc::clone(&noted);
        async move {
            *noted.lock().unwrap() = Some((call.id, Instant::now()));
            Ok(Probe::Happened(json!({ "found": true })))
        }
    }));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!({ "found": true }));
    assert_eq!(
        (ended.failures, ended.snoozes),
        (0, 1),
        "quiet is not charged"
    );
    assert_eq!(downstream.calls().len(), 1);
    let (asked_for, at) = probed_at.lock().unwrap().take().unwrap();
    assert_eq!(asked_for, id_of(task));
    let quiet = at - downstream.last_at();
    // Until timeout and quiet period are over, both counted from the call.
    assert!(quiet >= Duration::from_millis(700), "{quiet:?}");
    worker.drain().await;
}

/// Holds an execution between its dispatch and its call, the second time it comes there.
struct SlowSecond {
    hold: Duration,
    held: Mutex<usize>,
}

impl Listener for SlowSecond {
    fn reached(&self, reached: Reached) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if reached.point.cut == points::Cut::Dispatched {
                let second = {
                    let mut held = self.held.lock().unwrap();
                    *held += 1;
                    *held == 2
                };
                if second {
                    tokio::time::sleep(self.hold).await;
                }
            }
        })
    }
}

/// Found by the explored model: a process can be slow between the reply to its dispatch and the call, with its lease renewed
/// all the time; the downstream may have forgotten the key of the first call by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_does_not_leave_when_its_key_may_be_forgotten() {
    let bench = Bench::new().await;
    let slow = Arc::new(SlowSecond {
        hold: Duration::from_secs(2),
        held: Mutex::default(),
    });
    let downstream = Downstream::scripted(&[Answer::Cut]);
    // The key is known for 2 s, less the 300 ms that a call may be under way.
    let handler = charging!(downstream, |op| op
        .class(Class::Idempotent)
        .margin(Duration::ZERO)
        .key_retention(Duration::from_secs(2)));
    let listener: Arc<dyn Listener> = Arc::clone(&slow) as _;
    let worker = Running::start(bench.worker().points(listener).handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    unknown(&bench, task).await;
    assert_eq!(downstream.calls().len(), 1);
    assert_eq!(*slow.held.lock().unwrap(), 2);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queryable_that_did_not_happen_is_dispatched_again_under_the_same_id() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Cut]);
    let handler = charging!(downstream, |op| op
        .probe(|_| async { Ok(Probe::<Value>::DidNotHappen) }));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    assert_eq!(result(&bench.ended(task).await), json!({ "call": 2 }));
    let calls = downstream.calls();
    assert_eq!(calls[0].id, calls[1].id);
    assert_eq!((calls[0].dispatches, calls[1].dispatches), (1, 2));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_cannot_tell_leaves_it_to_a_person_and_a_failing_one_is_asked_again() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Cut]);
    let probes = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&probes);
    let handler = charging!(downstream, [counted], |op| op.probe(move |_| {
        let counted = Arc::clone(&counted);
        async move {
            let mut probes = counted.lock().unwrap();
            *probes += 1;
            match *probes {
                1 => Err(TaskError::retryable("down", "the bank does not answer")),
                _ => Ok(Probe::<Value>::CannotTell),
            }
        }
    }));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    unknown(&bench, task).await;
    assert_eq!(*probes.lock().unwrap(), 2);
    assert_eq!(downstream.calls().len(), 1);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blind_is_never_repeated_by_the_engine() {
    for answer in [Answer::Cut, Answer::Silence] {
        let bench = Bench::new().await;
        let downstream = Downstream::scripted(&[answer]);
        let handler = charging!(downstream, |op| op);
        let worker = Running::start(bench.worker().handler(handler));
        let task = bench.submit_task(quick_task("charge")).await;
        unknown(&bench, task).await;
        assert_eq!(downstream.calls().len(), 1);
        assert_eq!(bench.causes(task).await, ["unknown"]);
        resolve(&bench, task, Resolution::DidNotHappen, None).await;
        assert_eq!(result(&bench.ended(task).await), json!({ "call": 2 }));
        worker.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_learns_that_a_person_undid_it() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Cut]);
    let called = downstream.clone();
    let handler = handler_fn("charge", move |ctx: TaskContext, (): ()| {
        let downstream = called.clone();
        async move {
            let charged = ctx
                .operation("charge", "order 7")
                .execute(|call| {
                    let downstream = downstream.clone();
                    async move { downstream.call(call).await }
                })
                .await;
            match charged {
                Err(OperationError::Compensated { .. }) => Ok(json!("undone")),
                Err(error) => Err(error.into()),
                Ok(value) => Ok(value),
            }
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    unknown(&bench, task).await;
    resolve(&bench, task, Resolution::Compensated, None).await;
    assert_eq!(result(&bench.ended(task).await), json!("undone"));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_stands_and_is_not_asked_again() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Refused]);
    let called = downstream.clone();
    let handler = handler_fn("charge", move |ctx: TaskContext, (): ()| {
        let downstream = called.clone();
        async move {
            let charged = ctx
                .operation("charge", "order 7")
                .execute(|call| {
                    let downstream = downstream.clone();
                    async move { downstream.call(call).await }
                })
                .await;
            let Err(OperationError::Failed { message, .. }) = charged else {
                return Err(TaskError::terminal("unexpected", "it did not fail"));
            };
            match ctx.failures() {
                0 => Err(TaskError::retryable("again", "to see the stored answer")),
                _ => Ok(message),
            }
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    assert_eq!(result(&bench.ended(task).await), json!("no such account"));
    assert_eq!(downstream.calls().len(), 1);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeat_that_was_turned_away_says_nothing_about_the_call_before() {
    let bench = Bench::new().await;
    // The next attempt finds a call of before in the ledger, too.
    let downstream = Downstream::scripted(&[
        Answer::Cut,
        Answer::TurnedAway,
        Answer::TurnedAway,
        Answer::TurnedAway,
    ]);
    let handler = charging!(downstream, |op| op.class(Class::Idempotent).repeats(1));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!({ "call": 5 }));
    assert_eq!(ended.failures, 2);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_surely_not_applied_is_taken_back_and_tried_by_the_next_attempt() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::NotApplied, Answer::NotApplied]);
    let handler = charging!(downstream, |op| op.repeats(1));
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!({ "call": 3 }));
    assert_eq!(ended.failures, 1, "blind, and never unknown");
    let dispatches: Vec<i32> = downstream.calls().iter().map(|c| c.dispatches).collect();
    assert_eq!(dispatches, [1, 2, 3], "each call has a commit of its own");
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_id_with_another_request_is_an_error_that_shows_both() {
    let bench = Bench::new().await;
    let handler = handler_fn("charge", |ctx: TaskContext, (): ()| async move {
        let attempt = ctx.failures();
        ctx.operation("charge", "order 7")
            .class(Class::Idempotent)
            .repeats(0)
            .request(&json!({ "attempt": attempt }))
            .execute(|_| async { Err::<Value, _>(CallError::doubtful("cut")) })
            .await?;
        Ok(())
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit_task(quick_task("charge")).await;
    wait_until("the mismatch", BOUND, async || {
        let errors = bench.store.attempt_errors(task).await.unwrap();
        errors.iter().any(|error| error.code == "AEG-0011")
    })
    .await;
    let errors = bench.store.attempt_errors(task).await.unwrap();
    let error = errors
        .iter()
        .find(|error| error.code == "AEG-0011")
        .unwrap();
    let fingerprints = error
        .message
        .split(|c: char| !c.is_ascii_hexdigit())
        .filter(|word| word.len() == 16)
        .count();
    assert_eq!(fingerprints, 2, "{}", error.message);
    // It had failed for good, but the effect is open: the outcome waits for it.
    let detail = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!(detail.pending, Some(6));
    worker.handle.cancel_now();
    worker.exit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_use_in_one_attempt_is_an_error_and_calls_nobody() {
    let bench = Bench::new().await;
    let downstream = Downstream::default();
    let called = downstream.clone();
    let handler = handler_fn("charge", move |ctx: TaskContext, (): ()| {
        let downstream = called.clone();
        async move {
            for _ in 0..2 {
                ctx.operation("charge", 1)
                    .execute(|call| {
                        let downstream = downstream.clone();
                        async move { downstream.call(call).await }
                    })
                    .await?;
            }
            Ok(())
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("charge", json!(null)).await;
    let ended = bench.ended(task).await;
    assert_eq!(ended.error.unwrap()["code"], "AEG-0012");
    assert_eq!(downstream.calls().len(), 1);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_doubt_cannot_be_swallowed() {
    let bench = Bench::new().await;
    let handler = handler_fn("charge", |ctx: TaskContext, (): ()| async move {
        let charged = ctx
            .operation("charge", "order 7")
            .execute(|_| async { Err::<Value, _>(CallError::doubtful("cut")) })
            .await;
        assert!(matches!(
            charged,
            Err(OperationError::Task(TaskError::Engine(
                EngineStop::EffectUnknown { .. }
            )))
        ));
        Ok("all is well")
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("charge", json!(null)).await;
    unknown(&bench, task).await;
    assert_eq!(worker.handle.snapshot().counts.completed, 0);
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_beside_an_open_operation_waits_for_a_claim_that_settles_it() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Cut]);
    let called = downstream.clone();
    let refused = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&refused);
    let handler = handler_fn("charge", move |ctx: TaskContext, (): ()| {
        let downstream = called.clone();
        let noted = Arc::clone(&noted);
        async move {
            let settling = ctx.is_settling();
            ctx.operation("charge", "order 7")
                .class(Class::Idempotent)
                .repeats(0)
                .execute(|call| {
                    let downstream = downstream.clone();
                    async move { downstream.call(call).await }
                })
                .await
                .ok();
            if settling {
                let step = ctx.step("new", "", || async { Ok(1) }).await;
                noted.lock().unwrap().push(step.unwrap_err());
            }
            Ok(if settling { "second" } else { "first" })
        }
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("charge", json!(null)).await;
    let ended = bench.ended(task).await;
    assert_eq!(result(&ended), json!("first"), "the first outcome stands");
    assert_eq!(downstream.calls().len(), 2);
    worker.drain().await;
    let refused = refused.lock().unwrap();
    assert!(matches!(
        refused.as_slice(),
        [TaskError::Engine(EngineStop::SettlingOnly)]
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_operation_that_its_handler_no_longer_reaches_is_left_to_a_person() {
    let bench = Bench::new().await;
    let handler = handler_fn("charge", |ctx: TaskContext, (): ()| async move {
        if !ctx.is_settling() {
            ctx.operation("charge", "order 7")
                .class(Class::Idempotent)
                .repeats(0)
                .execute(|_| async { Err::<Value, _>(CallError::doubtful("cut")) })
                .await
                .ok();
        }
        Ok("done")
    });
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("charge", json!(null)).await;
    unknown(&bench, task).await;
    resolve(&bench, task, Resolution::Happened, None).await;
    assert_eq!(result(&bench.ended(task).await), json!("done"));
    worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_lost_during_a_call_leaves_a_blind_operation_to_a_person() {
    let bench = Bench::new().await;
    let downstream = Downstream::scripted(&[Answer::Silence]);
    let handler = {
        let downstream = downstream.clone();
        handler_fn("charge", move |ctx: TaskContext, (): ()| {
            let downstream = downstream.clone();
            async move {
                let value = ctx
                    .operation("charge", "order 7")
                    .timeout(Duration::from_secs(3))
                    .execute(|call| {
                        let downstream = downstream.clone();
                        async move { downstream.call(call).await }
                    })
                    .await?;
                Ok(value)
            }
        })
    };
    let worker = Running::start(bench.worker().handler(handler));
    let task = bench.submit("charge", json!(null)).await;
    wait_until("the call", BOUND, async || downstream.calls().len() == 1).await;
    let sql = "update aegis.worker set state = 3, ended_at = clock_timestamp() where id = $1";
    let id = worker.handle.id().unwrap();
    bench.db.admin.execute(sql, &[&id]).await.unwrap();
    unknown(&bench, task).await;
    assert_eq!(downstream.calls().len(), 1);
    worker.handle.cancel_now();
    worker.exit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_the_ledger_itself_neither_loses_nor_doubles_a_call() {
    for text in [
        "INSERT INTO aegis.operation",
        "finished_at = clock_timestamp(), quiet_until",
    ] {
        for cut in [Cut::Answer(text), Cut::Request(text)] {
            let shown = format!("{cut:?}");
            let bench = Bench::new().await;
            let proxy = Proxy::before(&bench.db.url_as("aegis_engine")).await;
            let downstream = Downstream::default();
            let handler = charging!(downstream, |op| op);
            let store = store_at_unnamed(&proxy.url()).await;
            let worker = Running::start(worker_on(store).handler(handler));
            proxy.cut(cut);
            let task = bench.submit("charge", json!(null)).await;
            assert_eq!(
                result(&bench.ended(task).await),
                json!({ "call": 1 }),
                "{shown}"
            );
            assert!(proxy.was_cut(), "{shown}");
            assert_eq!(downstream.calls().len(), 1, "{shown}");
            let counts = worker.handle.snapshot().counts;
            assert_eq!((counts.fenced, counts.unknown_resolved), (0, 1), "{shown}");
            worker.drain().await;
        }
    }
}
