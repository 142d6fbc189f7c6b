//! The doctor: each verdict flips on a real database, looked at by the reader role; what cannot be told is never ok.

mod beats;
mod flips;
mod own_server;
mod unknown;

use std::time::Duration;

use aegis_store::Config;
use aegis_store::doctor::{self, CHECKS, Finding, Severity};
use aegis_store::worker::{Beat, LeaseConn};

use crate::support::{Bed, Worker};

/// What a look may take on a machine that is busy.
const BOUND: Duration = Duration::from_mins(1);

/// A healthy database: a worker that has beaten, partitions for two weeks, jobs in time.
struct Patient {
    bed: Bed,
    worker: Worker,
}

impl Patient {
    async fn new() -> Self {
        let bed = Bed::new().await;
        let worker = bed.worker(&["k"]).await;
        let conn = LeaseConn::connect(bed.store.config()).await.unwrap();
        for number in 1..=2 {
            let beat = Beat {
                number,
                executing: 0,
                claim_ticks: number,
                progress_ticks: 0,
            };
            conn.renew(worker.id, beat).await.unwrap();
        }
        bed.sql(
            "select aegis.make_partitions(14);
             update aegis.housekeeping set next_at = clock_timestamp()",
        )
        .await;
        Self { bed, worker }
    }

    /// All findings, as the reader.
    async fn examine(&self, ids: &[&str]) -> Vec<Finding> {
        examine(&self.bed.db.url_as("aegis_reader"), ids).await
    }

    async fn one(&self, id: &str) -> Finding {
        self.examine(&[id]).await.remove(0)
    }
}

/// All findings of these checks; of all when none is named.
async fn examine(url: &str, ids: &[&str]) -> Vec<Finding> {
    let checks: Vec<_> = if ids.is_empty() {
        CHECKS.iter().collect()
    } else {
        ids.iter().map(|id| doctor::find(id).unwrap()).collect()
    };
    let config = Config::from_url(url).unwrap();
    doctor::examine(config, BOUND, &checks).await.unwrap()
}

#[tokio::test]
async fn a_healthy_database_is_well_and_the_reader_role_sees_all_of_it() {
    let patient = Patient::new().await;
    for finding in patient.examine(&[]).await {
        // The server of the tests does not wait for the disk, has no standby, and statements are sent unnamed here.
        let expected = match finding.check {
            "durability" => Severity::Critical,
            "sync-standby" | "pooler" => Severity::Notice,
            // Of the whole server, which other tests share.
            "connections" | "notify-queue" | "kept-wal" => continue,
            _ => Severity::Ok,
        };
        assert_eq!(finding.severity, expected, "{finding:?}");
        assert!(
            !finding.seen.is_empty() && finding.means.len() > 20,
            "{finding:?}"
        );
        assert_eq!(
            finding.todo.is_empty(),
            expected == Severity::Ok,
            "{finding:?}"
        );
    }
}

#[test]
fn every_check_stands_in_the_guide_with_what_it_means() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/doctor.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let checks = guide
        .split("## Checks")
        .nth(1)
        .and_then(|rest| rest.split("## ").next())
        .unwrap();
    let told: Vec<&str> = checks
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(id, _)| id))
        .collect();
    let ids: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(
        told, ids,
        "the table of docs/guides/doctor.md and the checks differ"
    );
    for check in CHECKS {
        assert!(
            guide.contains(check.means),
            "`{}`: the guide has another meaning than: {}",
            check.id,
            check.means
        );
    }
}
