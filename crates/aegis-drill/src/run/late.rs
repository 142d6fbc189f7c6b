//! A frozen process that reports too late, as the supervisor sees it: woken when its task has been taken back, and started
//! again when the database was away while it claimed.
//!
//! Invariant: it is woken only when the database says that its claim is over. A clock that was moved, or a machine that is busy,
//! makes a lease longer than it looks from here.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use uuid::Uuid;

use super::stage::{Stage, with_parent};
use crate::child::Process;
use crate::error::DrillError;
use crate::history::{self, Event};
use crate::zombie::Report;

/// Its lease is one second; then its task is taken back and mostly claimed again.
const FROZEN: Duration = Duration::from_millis(3500);
const STARTS_MAX: usize = 8;

pub(super) struct Late {
    report: Report,
    process: Option<Process>,
    /// When it was seen to hold a task, which one, and at which epoch.
    claimed: Option<(Instant, Uuid, i64)>,
    starts: usize,
    reported: bool,
}

impl Late {
    pub(super) fn start(stage: &Stage, report: Report) -> Result<Self, DrillError> {
        let mut late = Self {
            report,
            process: None,
            claimed: None,
            starts: 0,
            reported: false,
        };
        late.again(stage)?;
        Ok(late)
    }

    /// The task and the epoch that it claimed.
    pub(super) fn claimed(&self) -> Option<(Uuid, i64)> {
        self.claimed.map(|(_, task, epoch)| (task, epoch))
    }

    /// It has reported, or was started often enough.
    pub(super) fn done(&self) -> bool {
        self.process.is_none()
    }

    fn again(&mut self, stage: &Stage) -> Result<(), DrillError> {
        self.starts += 1;
        self.claimed = None;
        let word = match self.report {
            Report::Complete => "complete",
            Report::Fail => "fail",
        };
        let nth = stage.next_late();
        let name = format!("late-{word}-{nth}");
        let words = [
            "late".into(),
            "--url".into(),
            (&stage.direct_url).into(),
            "--history".into(),
            stage.program.history(&name).into_os_string(),
            "--queue".into(),
            "default".into(),
            "--report".into(),
            word.into(),
        ];
        self.process = Some(stage.program.start(&name, &with_parent(&words))?);
        Ok(())
    }

    pub(super) async fn look(&mut self, stage: &Stage) -> Result<(), DrillError> {
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let ended = process.ended();
        let lines = if process.history.exists() {
            history::read(&process.history)?
        } else {
            Vec::new()
        };
        for line in &lines {
            match &line.event {
                Event::Claimed { task, epoch } if self.claimed.is_none() => {
                    self.claimed = Some((Instant::now(), *task, *epoch));
                }
                Event::Late { answer, .. } => self.reported = answer != "unknown",
                _ => {}
            }
        }
        if ended {
            self.process = None;
            if !self.reported && self.starts < STARTS_MAX {
                self.again(stage)?;
            }
        } else if let Some((at, task, epoch)) = self.claimed
            && at.elapsed() > FROZEN
            && stage.claim_is_over(task, epoch).await
        {
            process.signal(Signal::SIGCONT);
        }
        Ok(())
    }
}
