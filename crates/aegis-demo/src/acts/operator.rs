//! Act 6: a person resolves what nobody can know, from the payment service's record, by the public command line; and the
//! rest is worked off.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

use super::look::until;
use super::stage::Stage;
use super::{DemoError, count};
use crate::payments::ServiceOptions;
use crate::payments::record::{Evidence, evidence, read_so_far};
use crate::story::Actor;

/// Who takes and resolves.
const WHO: &str = "demo-operator";
/// How long the rest may take.
const REST: Duration = Duration::from_mins(1);
/// How many decisions are told one by one.
const TOLD: usize = 4;
/// Beyond the longest life of a request, for clocks and for the call itself.
const MARGIN: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize)]
struct Listed {
    id: String,
    tenant: String,
    name: String,
    dispatched_at: Option<Timestamp>,
    quiet_until: Option<Timestamp>,
    note: Option<String>,
}

pub(super) async fn act(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    stage.story.act("6 of 6: a person resolves what is unknown");
    let end = Instant::now() + REST;
    let mut told = 0;
    let mut decided = 0;
    loop {
        decided += round(stage, &mut told).await?;
        let done = until(Duration::from_millis(700), async || {
            let now = stage.look.progress().await?;
            Ok(now.is_through().then_some(()))
        });
        if done.await?.is_some() {
            break;
        }
        if Instant::now() > end {
            stage.tell(
                &super::DEMO,
                format!("not everything has ended within {} s", REST.as_secs()),
            );
            break;
        }
    }
    stage.tell(
        &Actor::Operator,
        format!(
            "{} resolved in all, each with the line of the record as evidence",
            count(decided, "unknown result was", "unknown results were")
        ),
    );
    stage.tell_progress().await
}

/// Looks at all that is unknown now; answers how many were decided.
async fn round(stage: &Stage<'_>, told: &mut usize) -> Result<i64, DemoError> {
    let list = aegis(
        stage,
        &["operation", "list", "--limit", "1000", "--output", "json"],
    )
    .await?;
    let listed: Vec<Listed> =
        serde_json::from_slice(&list).map_err(|error| DemoError::Command {
            command: "operation list".into(),
            why: error.to_string(),
        })?;
    let listed: Vec<Listed> = listed
        .into_iter()
        .filter(|one| one.tenant == stage.run.tenant)
        .collect();
    if listed.is_empty() {
        return Ok(0);
    }
    if *told == 0 {
        stage.tell(
            &Actor::Operator,
            format!(
                "`aegis operation list` shows {}: a blind call without an answer, a key past its retention, or a probe that \
                 could not tell",
                count(i64::try_from(listed.len()).unwrap_or(i64::MAX), "unknown result", "unknown results")
            ),
        );
    }
    let lines = read_so_far(&stage.record).map_err(DemoError::Folder)?;
    let life = ServiceOptions::new(stage.record.clone(), "", 0).max_request_life + MARGIN;
    let mut decided = 0;
    for one in &listed {
        let (word, text, result) = match evidence(&lines, &one.id) {
            Evidence::Happened { seq, receipt } => (
                "happened",
                format!("payment record, number {seq}: receipt {receipt}"),
                Some(result(&one.name, &receipt, &one.id)),
            ),
            // Not yet final: what was sent may still arrive.
            Evidence::DidNotHappen
                if one
                    .dispatched_at
                    .is_none_or(|at| at + life > Timestamp::now())
                    || one
                        .quiet_until
                        .is_some_and(|until| until > Timestamp::now()) =>
            {
                continue;
            }
            Evidence::DidNotHappen => (
                "did-not-happen",
                format!(
                    "payment record, {} lines: no line applies it, and no request lives that long",
                    lines.len()
                ),
                None,
            ),
        };
        aegis(stage, &["operation", "take", &one.id, "--actor", WHO]).await?;
        let mut words = vec![
            "operation",
            "resolve",
            &one.id,
            "--actor",
            WHO,
            "--as",
            word,
            "--evidence",
            &text,
        ];
        if let Some(result) = &result {
            words.extend(["--result", result]);
        }
        aegis(stage, &words).await?;
        decided += 1;
        *told += 1;
        if *told <= TOLD {
            let note = one.note.as_deref().unwrap_or("its answer was lost");
            let why = note.strip_prefix(&format!("{}: ", one.id)).unwrap_or(note);
            stage.tell(
                &Actor::Operator,
                format!(
                    "{} ({}): {why}. Resolved as {word}: {text}",
                    short(&one.id),
                    one.name
                ),
            );
        } else if *told == TOLD + 1 {
            stage.tell(&Actor::Operator, "goes on with the others in the same way");
        }
    }
    Ok(decided)
}

/// What the service would have answered.
fn result(name: &str, receipt: &str, operation: &str) -> String {
    let outcome = match name {
        "reserve" => "reserved",
        "charge" => "charged",
        "payout" => "paid",
        _ => "sent",
    };
    json!({ "outcome": outcome, "receipt": receipt, "operation_id": operation }).to_string()
}

/// The id without most of the task's.
fn short(operation: &str) -> String {
    match operation.split_once('/') {
        Some((task, rest)) => format!("…{}/{rest}", &task[task.len().saturating_sub(6)..]),
        None => operation.to_owned(),
    }
}

/// Runs a command of the public command line, as a person would.
async fn aegis(stage: &Stage<'_>, words: &[&str]) -> Result<Vec<u8>, DemoError> {
    let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    let failed = |why: String| DemoError::Command {
        command: words.iter().take(3).copied().collect::<Vec<_>>().join(" "),
        why,
    };
    let mut command = stage.program.command(&arguments);
    command.stdin(Stdio::null());
    let output = Command::from(command)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    Ok(output.stdout)
}
