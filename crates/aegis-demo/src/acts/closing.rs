//! After the last act: everything stops in order, the verifier judges, and the stage is cleared or kept.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::stage::Stage;
use super::{DEMO, DemoEnd, DemoError, opening};
use crate::hold::Word;
use crate::story::Actor;

/// Stops everything in order and has the verifier judge.
pub(super) async fn judge(stage: &mut Stage<'_>) -> Result<DemoEnd, DemoError> {
    stage.story.act("after: what does the evidence say?");
    let workers = std::mem::take(&mut stage.workers);
    stage.drain(workers).await?;
    stage.payments.send(Word::Term).await?;
    if stage.payments.ended(Duration::from_secs(10)).await != Some(0) {
        stage.tell(
            &Actor::Payments,
            "did not end in order; its record may not be whole",
        );
    }
    stage.tell(
        &Actor::Verify,
        "a process of its own gets only the payment service's record and the URL of the database:\n\
         aegis demo verify --record payments.jsonl --database-url …",
    );
    verify(stage).await
}

/// Clears the stage, or keeps it until somebody ends the demo.
pub(super) async fn leave(mut stage: Stage<'_>, end: &DemoEnd) -> Result<(), DemoError> {
    if stage.options.keep {
        keep(&mut stage).await?;
    } else if !end.kept {
        stage.keep_logs();
    }
    Ok(())
}

async fn verify(stage: &Stage<'_>) -> Result<DemoEnd, DemoError> {
    let mut arguments: Vec<OsString> = ["demo", "verify", "--record"].map(OsString::from).to_vec();
    arguments.push(stage.record.clone().into_os_string());
    if stage.options.json {
        arguments.push("--json".into());
    }
    let failed = |why: String| DemoError::Command {
        command: "demo verify".into(),
        why,
    };
    let mut command = stage.program.command(&arguments);
    command.stdin(Stdio::null());
    let output = Command::from(command)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned();
    let kept = match output.status.code() {
        Some(0) => true,
        Some(1) if !said.is_empty() => false,
        _ => {
            return Err(failed(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
    };
    if !stage.options.json {
        stage.story.show(&said);
        return Ok(DemoEnd {
            kept,
            verdict: None,
        });
    }
    let verdict = serde_json::from_str(&said).map_err(|error| failed(error.to_string()))?;
    Ok(DemoEnd {
        kept,
        verdict: Some(verdict),
    })
}

/// Leaves the database, a worker and a payment service running until somebody ends the demo.
async fn keep(stage: &mut Stage<'_>) -> Result<(), DemoError> {
    let record = stage.program.folder.join("payments-2.jsonl");
    (stage.payments, stage.payments_url) = opening::payments(
        &stage.program,
        "payments-2",
        &stage.run,
        &record,
        stage.options,
    )
    .await?;
    let worker = stage.start_workers(1, 2).await?;
    let first = stage
        .options
        .orders
        .orders
        .first()
        .map(|order| order.order_id.clone());
    stage.tell(
        &DEMO,
        "is kept: the database, a worker of version 2 and a payment service go on until Ctrl-C. Look around:",
    );
    let url = &stage.program.database_url;
    let plain = url
        .replace("&statements=named", "")
        .replace("?statements=named", "");
    stage.story.show(&format!(
        "  export AEGIS_DATABASE_URL='{url}'\n  \
           aegis task list --limit 10\n  \
           aegis task list --state failed\n  \
           aegis operation list --state resolved\n  \
           aegis worker list --all\n  \
           aegis db status\n  \
           aegis demo verify --record {}\n  \
           psql '{plain}' -c \"SELECT * FROM demo.receipt WHERE order_id = '{}'\"\n  \
           ls {}",
        stage.record.display(),
        first.unwrap_or_default(),
        stage.program.folder.display()
    ));
    asked_to_end().map_err(DemoError::Signals)?.await;
    stage.tell(&DEMO, "ends");
    stage.drain(worker).await?;
    Ok(())
}

/// Completes when somebody ends the demo by Ctrl-C or SIGTERM.
pub(super) fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}
