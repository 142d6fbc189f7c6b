//! The version before beside this one: every second ordinary worker is another program, which reads and writes the same tasks.
//!
//! Invariant: server, oracle, proxy, submits and whoever stands at a cut are of this version.

use std::collections::HashSet;
use std::path::PathBuf;

use uuid::Uuid;

use super::stage::Stage;
use crate::error::DrillError;
use crate::history::{self, Event};

/// The fault's name.
pub(super) const NAME: &str = "version_before_beside_this_one";

/// The other program, and which workers were of it.
#[derive(Debug)]
pub(super) struct VersionBefore {
    pub(super) path: PathBuf,
    pub(super) workers: Vec<String>,
}

/// What both versions did.
#[derive(Debug)]
pub(super) struct Shared {
    /// Executions that the version before began.
    pub(super) begun: u64,
    /// Tasks that both began: one version took over from the other, or went on with what it had saved.
    pub(super) passed: u64,
}

impl Stage {
    /// Is the next ordinary worker of the version before?
    pub(super) fn wants_version_before(&self) -> bool {
        self.version_before.as_ref().is_some_and(|before| {
            let living = self
                .workers
                .iter()
                .filter(|worker| before.workers.contains(&worker.name));
            living.count() * 2 < self.workers.len()
        })
    }

    /// What the histories tell; `None`: there is no version before here.
    pub(super) fn shared_by_versions(&self) -> Result<Option<Shared>, DrillError> {
        let Some(before) = &self.version_before else {
            return Ok(None);
        };
        let (mut begun, mut theirs, mut ours) = (0, HashSet::<Uuid>::new(), HashSet::new());
        for number in 1..=self.started {
            let name = format!("worker-{number}");
            let path = self.program.history(&name);
            if !path.exists() {
                continue;
            }
            let is_before = before.workers.contains(&name);
            for line in history::read(&path)? {
                let Event::Started { task } = line.event else {
                    continue;
                };
                if is_before {
                    begun += 1;
                    theirs.insert(task);
                } else {
                    ours.insert(task);
                }
            }
        }
        Ok(Some(Shared {
            begun,
            passed: theirs.intersection(&ours).count() as u64,
        }))
    }
}
