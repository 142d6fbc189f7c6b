//! What is under way in a database, beside the lines of `status`: builds and backfills, how far they are and for what they wait.

use aegis_backfill::job::control::{self, Status};
use aegis_migrate::change::{ChangeId, Phase};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::run::{RunError, builds};
use aegis_migrate::standing::{Line, Standing};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::on_target::{build_words, failure};
use crate::failure::Failure;

/// Of all changes that are not done.
pub(super) struct UnderWay {
    builds: Vec<(ChangeId, Value)>,
    backfills: Vec<Status>,
}

impl UnderWay {
    pub(super) async fn read(
        client: &Client,
        ledger: LedgerName,
        stands: &Standing,
    ) -> Result<Self, Failure> {
        let open = stands.lines.iter().filter(|line| is_open(line));
        let changes: Vec<&ChangeId> = open.map(|line| &line.line.at.id).collect();
        let asked = async {
            let builds = builds(client, ledger, &changes).await?;
            // Those of a schema have none.
            let backfills = match ledger {
                LedgerName::Application if !changes.is_empty() => {
                    control::status(client, None).await?
                }
                _ => Vec::new(),
            };
            Ok(Self { builds, backfills })
        };
        asked
            .await
            .map_err(|error| failure(&RunError::Database(error)))
    }

    fn build(&self, line: &Line) -> Option<&Value> {
        let mut of = self.builds.iter();
        of.find(|(change, _)| is_open(line) && *change == line.line.at.id)
            .map(|(_, event)| event)
    }

    fn backfill(&self, line: &Line) -> Option<&Status> {
        let mut of = self.backfills.iter();
        of.find(|job| {
            is_open(line) && job.change == line.line.at.id.as_str() && job.state != "done"
        })
    }

    /// For a person.
    pub(super) fn words(&self, line: &Line) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(event) = self.build(line) {
            all.push(format!(
                "{} builds since {} s{}",
                event["runner"].as_str().unwrap_or_default(),
                event["since_s"],
                build_words(event)
            ));
        }
        if let Some(job) = self.backfill(line) {
            let waits = job.waiting.as_ref();
            let waits = waits.map_or_else(String::new, |why| format!(", waits: {why}"));
            all.push(format!(
                "backfill {}: {}{waits}",
                job.state,
                job.progress.words()
            ));
        }
        all
    }

    /// For a program.
    pub(super) fn add(&self, line: &Line, document: &mut Value) {
        if let Some(event) = self.build(line) {
            document["build"] = event.clone();
        }
        if let Some(job) = self.backfill(line) {
            document["backfill"] = json!(job);
        }
    }
}

/// Whether something may be under way for it.
fn is_open(line: &Line) -> bool {
    line.line.at.phase == Phase::Migrate && !line.state.is_done()
}
