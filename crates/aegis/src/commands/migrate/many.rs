//! `run` on the databases of `targets.toml`: so many at once, until the stop rule holds, and a result for each.
//!
//! Invariants: what was not tried is told as such; the exit code is that of the first target, in the file's order, that failed.

use std::sync::Arc;

use aegis_migrate::run::{RunError, Summary};
use aegis_migrate::set::Set;
use aegis_migrate::targets::{Each, Target, each};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::on_target::{self, Ended, Job};
use super::run::{outcome, stop, stopped, words};
use super::targets::Resolved;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Output, line, note};

/// Events that wait to be printed; a run waits for the printer beyond that.
const EVENTS_MAX: usize = 1024;

pub(crate) async fn run(
    job: Job,
    set: Set,
    resolved: Resolved,
    output: Output,
) -> Result<Exit, Failure> {
    let is_json = output == Output::Json;
    let set = Arc::new(set);
    let (stop, stops) = stop()?;
    // One printer: lines of two targets never mix.
    let (events, mut printed) = mpsc::channel::<(String, Value)>(EVENTS_MAX);
    let printer = tokio::spawn(async move {
        while let Some((target, mut event)) = printed.recv().await {
            if is_json {
                event["target"] = Value::from(target);
                line(&event.to_string());
            } else if let Some(words) = words(&event) {
                note(&format!("{target}: {words}"));
            }
        }
    });
    let tells = events.clone();
    let work = move |target: Target| {
        let (mut job, set, stops, events) =
            (job.clone(), Arc::clone(&set), stops.clone(), tells.clone());
        job.ledger = target.ledger();
        async move {
            let set = match &target.schema {
                Some(schema) => &set.in_schema(schema).map_err(RunError::from)?,
                None => &*set,
            };
            let mut told = |event: &Value| {
                // A full queue loses an event for the screen; the ledger of the target has it.
                events.try_send((target.name.clone(), event.clone())).ok();
            };
            on_target::run(&target.url, &job, set, &mut told, stopped(stops)).await
        }
    };
    let lost = |why: String| Ended {
        summary: json!({ "outcome": "failed", "exit_code": 101, "error": why }),
        failure: Failure::new(Exit::Broken, why),
        code: 101,
    };
    let results = each(
        &resolved.targets,
        resolved.parallel,
        resolved.stop,
        work,
        lost,
        |target, result| {
            let event = json!({ "event": "target", "summary": summary(result) });
            events.try_send((target.name.clone(), event)).ok();
            if !is_json {
                note(&format!("{}: {}", target.name, in_words(result)));
            }
        },
    )
    .await;
    drop((events, stop));
    printer.await.ok();
    let named: Vec<Value> = resolved
        .targets
        .iter()
        .zip(&results)
        .map(|(target, result)| {
            let mut value = summary(result);
            value["target"] = Value::from(target.name.clone());
            value
        })
        .collect();
    let count =
        |is: fn(&Each<Summary, Ended>) -> bool| results.iter().filter(|one| is(one)).count();
    let (failed, not_tried) = (
        count(|one| matches!(one, Each::Failed(_))),
        count(|one| matches!(one, Each::NotTried)),
    );
    let all = json!({
        "outcome": if failed > 0 { "failed" } else { "done" },
        "done": results.len() - failed - not_tried, "failed": failed, "not_tried": not_tried, "targets": named,
    });
    output.one(
        &[
            ("done", all["done"].to_string()),
            ("failed", failed.to_string()),
            ("not tried", not_tried.to_string()),
        ],
        &all,
    );
    let first = resolved
        .targets
        .iter()
        .zip(results)
        .find_map(|(target, result)| match result {
            Each::Failed(ended) => Some((target, ended)),
            Each::Done(_) | Each::NotTried => None,
        });
    match first {
        None => Ok(Exit::Done),
        Some((target, ended)) => Err(ended.failure.after(&format!("target {}", target.name))),
    }
}

fn summary(result: &Each<Summary, Ended>) -> Value {
    match result {
        Each::Done(summary) => json!(summary),
        Each::Failed(ended) => ended.summary.clone(),
        Each::NotTried => json!({ "outcome": "not_tried" }),
    }
}

fn in_words(result: &Each<Summary, Ended>) -> String {
    match result {
        Each::Done(summary) => outcome(summary).to_owned(),
        Each::Failed(ended) => format!("failed with {}", ended.code),
        Each::NotTried => "not tried".to_owned(),
    }
}
