//! What should notice a mutant of renewal, expiry, reaping or promotion: what each leaves behind beside workers and tasks in all
//! situations that they tell apart, and rows that somebody else has locked.

use std::collections::BTreeMap;

use aegis_store::generated::worker;
use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use super::checks::{beside, one};
use super::rewritten::Rewritten;
use super::scenes::without_times;
use crate::support::Bed;

/// Workers with a running task each, by what is so of them: SQL, where `:w` is the worker and `:t` its task.
const WORKERS: [(&str, &str); 13] = [
    ("live", ""),
    ("draining", "update aegis.worker set state = 1 where id = ':w'"),
    (
        "ended",
        "update aegis.worker_lease set lease_until = now() - interval '1 ms' where worker = ':w'",
    ),
    (
        "draining, ended",
        "update aegis.worker set state = 1 where id = ':w';
         update aegis.worker_lease set lease_until = now() - interval '1 ms' where worker = ':w'",
    ),
    (
        "stopped",
        "update aegis.worker set state = 2, ended_at = now() where id = ':w'",
    ),
    (
        "lost",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w'",
    ),
    (
        "lost, with a successor",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w';
         insert into aegis.worker (id, slots, pid, predecessor, registered_at, name, host, release, build, digest, schema, state, ended_at)
         values (gen_random_uuid(), 1, 1, ':w', now(), 'w', 'h', 'r', 'b', 'none', 7, 2, now())",
    ),
    (
        "lost in an outage",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w';
         update aegis.worker_lease set lease_until = now() - interval '1 day' where worker = ':w'",
    ),
    (
        "of another floor",
        "update aegis.task set floor = floor + 1 where id = ':t'",
    ),
    (
        "of another timeline",
        "update aegis.task set timeline = timeline + 1 where id = ':t'",
    ),
    (
        "another that is lost",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w'",
    ),
    (
        "lost, of another timeline",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w';
         update aegis.task set timeline = timeline + 1 where id = ':t'",
    ),
    (
        "gone",
        "delete from aegis.worker_lease where worker = ':w'; delete from aegis.worker where id = ':w'",
    ),
];

/// What becomes of the other workers while the first is being lost: after the list was read, before the next one's locks.
const OVERTAKEN: [(&str, &str); 2] = [
    (
        "renewed",
        "update aegis.worker_lease set lease_until = now() + interval '1 day' where worker <> new.id",
    ),
    (
        "stopped",
        "update aegis.worker set state = 2, ended_at = now() where id <> new.id and state <= 1",
    ),
];

/// What a beat may find in the lease's row: every situation in which it writes the times of progress differently.
const PROGRESS: [(&str, &str); 4] = [
    (
        "never moved",
        "claim_ticks = 1, progress_ticks = 1, executing = 1, claim_moved_at = null, progress_moved_at = null",
    ),
    (
        "stands still",
        "claim_ticks = 1, progress_ticks = 1, executing = 1, claim_moved_at = now() - interval '1 h', progress_moved_at = now() - interval '1 h'",
    ),
    (
        "has moved",
        "claim_ticks = 0, progress_ticks = 0, executing = 1, claim_moved_at = now() - interval '1 h', progress_moved_at = now() - interval '1 h'",
    ),
    (
        "had nothing",
        "claim_ticks = 1, progress_ticks = 1, executing = 0, claim_moved_at = now() - interval '1 h', progress_moved_at = now() - interval '1 h'",
    ),
];

/// Calls, each taken back.
const CALLS: [&str; 7] = [
    "aegis.expire_workers()",
    "aegis.reap(100)",
    "aegis.reap(1)",
    "aegis.reap(0)",
    "aegis.promote(10)",
    "aegis.promote(1)",
    "aegis.promote(0)",
];

/// What another has locked, and what then must pass it over without waiting.
const LOCKED: [(&str, &str); 5] = [
    (
        "select from aegis.task where owner = ':lost' for update",
        "aegis.reap(100)",
    ),
    (
        "select from aegis.worker where id = ':lost' for update",
        "aegis.reap(100)",
    ),
    (
        "select from aegis.worker where id = ':ended' for update",
        "aegis.expire_workers()",
    ),
    (
        "select from aegis.worker_lease where worker = ':ended' for update",
        "aegis.expire_workers()",
    ),
    (
        "select from aegis.task where state = 0 and run_at < now() order by run_at limit 1 for update",
        "aegis.promote(1)",
    ),
];

/// One database with all of them.
pub(super) struct Reaping {
    pub(super) bed: Bed,
    workers: BTreeMap<&'static str, Uuid>,
    reaper: Client,
    holder: Client,
    reaper_pid: i32,
    own: BTreeMap<String, String>,
}

impl Reaping {
    pub(super) async fn new() -> Self {
        let bed = Bed::new().await;
        bed.sql("update aegis.database set up_since = now() - interval '1 day'")
            .await;
        let mut workers = BTreeMap::new();
        for (name, sql) in WORKERS {
            let worker = bed.worker(&["k"]).await;
            let held = bed.claim(&worker).await.held;
            let sql = sql
                .replace(":w", &worker.id.to_string())
                .replace(":t", &held.task.to_string());
            bed.sql(&sql).await;
            workers.insert(name, worker.id);
        }
        // A time to wait for is nothing to a task that runs.
        bed.sql("update aegis.task set run_at = now() - interval '1 h' where state = 2")
            .await;
        // Whose answer it is can be told by it.
        bed.sql(
            "update aegis.worker_lease set ttl_ms = ttl_ms + n
             from (select worker as of, row_number() over (order by worker) as n from aegis.worker_lease) x where worker = of",
        )
        .await;
        bed.submit_many("later", 3).await;
        bed.sql(
            "update aegis.task set state = 0, run_at = now() - n * interval '1 min'
             from (select id as of, row_number() over (order by id) - 2 as n from aegis.task where state = 1) x where id = of",
        )
        .await;
        let (reaper, holder) = (bed.db.connect().await, bed.db.connect().await);
        reaper
            .batch_execute("set lock_timeout = '2 s'; set client_min_messages = error")
            .await
            .unwrap();
        Self {
            reaper_pid: one(&reaper, "select pg_backend_pid()").await,
            own: BTreeMap::new(),
            workers,
            reaper,
            holder,
            bed,
        }
    }

    fn id(&self, name: &str) -> String {
        self.workers[name].to_string()
    }

    fn fill(&self, sql: &str) -> String {
        sql.replace(":lost", &self.id("lost"))
            .replace(":ended", &self.id("ended"))
            .replace(":live", &self.id("live"))
    }

    /// The first check that notices. The first call is without mistakes. `renew`: what is sent in the place of a renewal's text.
    pub(super) async fn notice(&mut self, renew: Option<&str>) -> Option<String> {
        let mut seen = Vec::new();
        for call in CALLS {
            self.reaper.batch_execute("begin").await.unwrap();
            let left = self.left_by(call).await;
            self.reaper.batch_execute("rollback").await.unwrap();
            seen.push((call.to_owned(), left));
        }
        for (lock, call) in LOCKED {
            let lock = self.fill(&format!("begin; {lock}"));
            self.holder.batch_execute(&lock).await.unwrap();
            self.reaper.batch_execute("begin").await.unwrap();
            let left = self.left_by(call).await;
            self.reaper.batch_execute("rollback").await.unwrap();
            self.holder.batch_execute("rollback").await.unwrap();
            seen.push((format!("{call} beside a lock: {lock}"), left));
        }
        for (name, then) in OVERTAKEN {
            seen.push((
                format!("the others are {name} while one is lost"),
                self.overtaken(then).await,
            ));
        }
        seen.push(("why_lost".to_owned(), self.why_lost().await));
        for name in ["live", "draining", "ended", "stopped", "lost"] {
            for beat in [0, 1, 2] {
                let left = self.renewed(renew, name, beat, "beat = 1").await;
                seen.push((format!("renewal {beat}, {name}"), left));
            }
        }
        for (name, stored) in PROGRESS {
            let left = self.renewed(renew, "live", 1, stored).await;
            seen.push((format!("renewal, its progress {name}"), left));
        }
        for (name, left) in seen {
            if let Some(own) = self.own.get(&name) {
                if left.as_ref() != Some(own) {
                    return Some(format!("footprint: {name}"));
                }
            } else {
                assert_eq!(renew, None, "{name}: a mutant came first");
                self.own.insert(name, left.unwrap());
            }
        }
        (!self.renewal_waits(renew).await).then(|| "a loss while the renewal waits".to_owned())
    }

    /// What a call answers and leaves; `None`: it failed.
    async fn left_by(&self, call: &str) -> Option<String> {
        let row = self
            .reaper
            .query_one(&format!("select {call}"), &[])
            .await
            .ok()?;
        let (rows, free) = (self.rows().await, self.free().await);
        Some(format!("{} {free:?} {rows}", row.get::<_, i32>(0)))
    }

    /// How many rows of tasks, gates and leases nobody has locked.
    async fn free(&self) -> Vec<i64> {
        let mut free = Vec::new();
        for table in ["task", "worker", "worker_lease"] {
            let count = format!(
                "select count(*) from (select from aegis.{table} for update skip locked) x"
            );
            free.push(one(&self.bed.db.admin, &count).await);
        }
        free
    }

    /// An expiry during which, at its first loss, something becomes of the others.
    async fn overtaken(&self, then: &str) -> Option<String> {
        let begin = format!(
            "begin; create function pg_temp.overtake() returns trigger language plpgsql as $$ begin {then}; return null; end $$;
             create trigger overtake after update on aegis.worker for each row when (new.state = 3) execute function pg_temp.overtake()"
        );
        self.reaper.batch_execute(&begin).await.unwrap();
        let row = self
            .reaper
            .query_one("select aegis.expire_workers()", &[])
            .await;
        self.reaper.batch_execute("rollback").await.unwrap();
        row.ok().map(|row| row.get::<_, i32>(0).to_string())
    }

    /// What the function itself says of each claim; reaping asks it only of what it has sorted out before.
    async fn why_lost(&self) -> Option<String> {
        let all =
            "select id::text || ' ' || coalesce(aegis.why_lost(owner, floor, timeline), 'stands')
            from aegis.task where state = 2 order by id";
        let rows = self.reaper.query(all, &[]).await.ok()?;
        let told: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        Some(told.join("\n"))
    }

    /// A renewal and what it leaves, taken back. `stored`: what the lease's row has.
    async fn renewed(
        &self,
        text: Option<&str>,
        name: &str,
        beat: i64,
        stored: &str,
    ) -> Option<String> {
        let id = self.id(name);
        let begin = format!("begin; update aegis.worker_lease set {stored} where worker = '{id}'");
        self.reaper.batch_execute(&begin).await.unwrap();
        let asked: Timestamp = one(&self.reaper, "select clock_timestamp()").await;
        let answer = self.renew(text, name, beat).await;
        let counts = "select lease_until >= $1::timestamptz + ttl_ms * interval '1 ms' from aegis.worker_lease where worker = $2";
        let left = match answer {
            Some(answer) => {
                let whole = self
                    .reaper
                    .query_one(counts, &[&asked, &self.workers[name]])
                    .await
                    .unwrap();
                let whole: bool = whole.get(0);
                Some(format!(
                    "{answer}, a whole lease from when it was asked: {whole} {}",
                    self.rows().await
                ))
            }
            None => None,
        };
        self.reaper.batch_execute("rollback").await.unwrap();
        left
    }

    async fn renew(&self, text: Option<&str>, name: &str, beat: i64) -> Option<String> {
        let session = Rewritten::new(&self.reaper, text);
        let id = self.workers[name];
        let row = worker::renew(&session, id, beat, 1, 1, 1, Timestamp::now()).await;
        let rows = session.answered();
        row.ok().map(|row| format!("{row:?} of {rows}"))
    }

    /// A renewal waits for who has the lease's row, and hears what was decided meanwhile.
    async fn renewal_waits(&self, text: Option<&str>) -> bool {
        let lock =
            self.fill("begin; select from aegis.worker_lease where worker = ':live' for update");
        self.holder.batch_execute(&lock).await.unwrap();
        self.reaper.batch_execute("begin").await.unwrap();
        let lose =
            self.fill("update aegis.worker set state = 3, ended_at = now() where id = ':live'");
        let renewal = self.renew(text, "live", 9);
        let (waited, answer, ()) =
            beside(&self.bed.db.admin, self.reaper_pid, renewal, async || {
                self.bed.sql(&lose).await;
                self.holder.batch_execute("commit").await.unwrap();
            })
            .await;
        self.reaper.batch_execute("rollback").await.unwrap();
        let undo =
            self.fill("update aegis.worker set state = 0, ended_at = null where id = ':live'");
        self.bed.sql(&undo).await;
        waited && answer.as_deref() == Some("None of 0")
    }

    /// All workers, leases, tasks and events, without times.
    async fn rows(&self) -> String {
        let times = "select now(), clock_timestamp()";
        let times = self.reaper.query_one(times, &[]).await.unwrap();
        let (begin, end): (Timestamp, Timestamp) = (times.get(0), times.get(1));
        let rows = "select to_jsonb(x) - 'ord' from aegis.task x union all select to_jsonb(x) from aegis.worker x
            union all select to_jsonb(x) - 'clock_ahead_ms' from aegis.worker_lease x union all select to_jsonb(x) from aegis.task_event x order by 1";
        let mut told = String::new();
        for row in self.reaper.query(rows, &[]).await.unwrap() {
            let mut value: Value = row.get(0);
            without_times(&mut value, begin, end);
            told.extend([value.to_string().as_str(), "\n"]);
        }
        told
    }
}
