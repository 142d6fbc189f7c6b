//! What a beat leaves for the doctor: when the loops moved, by the database's clock, and how the worker's clock stands.

use aegis_store::worker::{Beat, LeaseConn};
use jiff::Timestamp;

use super::Patient;

/// When the claim loop and the executions moved, as the row says.
async fn moved(patient: &Patient) -> (Timestamp, Timestamp) {
    let row = patient
        .bed
        .db
        .admin
        .query_one(
            "select claim_moved_at, progress_moved_at from aegis.worker_lease",
            &[],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn a_beat_moves_what_moved_and_nothing_else() {
    let patient = Patient::new().await;
    let conn = LeaseConn::connect(patient.bed.store.config())
        .await
        .unwrap();
    let beat = async |number, executing, claim_ticks, progress_ticks| {
        let beat = Beat {
            number,
            executing,
            claim_ticks,
            progress_ticks,
        };
        conn.renew(patient.worker.id, beat).await.unwrap();
        moved(&patient).await
    };
    let first = beat(10, 1, 50, 7).await;
    // Both stand still: the claim loop is deaf, and the execution that was there at the last beat is stuck.
    assert_eq!(beat(11, 1, 50, 7).await, first);
    let claimed = beat(12, 1, 51, 7).await;
    assert!(claimed.0 > first.0 && claimed.1 == first.1);
    let progressed = beat(13, 1, 51, 8).await;
    assert!(progressed.0 == claimed.0 && progressed.1 > claimed.1);
    // Nothing executes: nothing can be stuck, and what begins later begins to count then.
    let idle = beat(14, 0, 51, 8).await;
    assert_eq!(idle, progressed, "it executed until now");
    let still_idle = beat(15, 0, 51, 8).await;
    assert!(still_idle.1 > idle.1 && still_idle.0 == idle.0);
    // An old beat that arrives late says nothing.
    assert_eq!(beat(12, 9, 99, 99).await, still_idle);
}

#[tokio::test]
async fn a_beat_says_how_far_the_workers_clock_is_from_the_databases() {
    let patient = Patient::new().await;
    let ahead_ms: i64 = patient
        .bed
        .value("select clock_ahead_ms from aegis.worker_lease", &[])
        .await;
    // One machine: what is left is how long the beat was on its way.
    assert!((-30_000..=0).contains(&ahead_ms), "{ahead_ms}");
}
