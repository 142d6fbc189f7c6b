//! Sessions that are lost: the job goes on in a new one, at the committed cursor.

use std::sync::Arc;

use aegis_testkit::wait_until;

use super::{BOUND, beside, counted, counting, not_moved, number, stands};

#[tokio::test]
async fn a_session_that_is_ended_is_replaced_and_each_row_is_moved_once() {
    let db = counted(20_000).await;
    let mut spec = counting();
    spec.batch.start = 50;
    spec.batch.max = 50;
    let runner = beside(&db, &spec, Arc::default());
    for times in 1..=5_i64 {
        let seen = times * 2000;
        wait_until("more rows are moved", BOUND, async || {
            let sql = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill";
            number(&db, sql).await >= seen
        })
        .await;
        let ended = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
                     WHERE application_name = 'a runner' AND datname = current_database()";
        assert_eq!(number(&db, ended).await, 1, "time {times}");
        wait_until("a new session has it", BOUND, async || {
            stands(&db).await.epoch == times + 1
        })
        .await;
    }
    assert_eq!(runner.await.unwrap().unwrap().rows_changed, 20_000);
    assert_eq!(not_moved(&db, 1).await, 0);
}
