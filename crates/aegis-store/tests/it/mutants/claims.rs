//! What should notice a mutant of the acquire call: what it claims and answers in each situation that it tells apart, a gate that
//! closes while it waits, and rows that somebody else has locked.

use std::collections::BTreeMap;

use aegis_store::generated::task::{self, AcquireParams};
use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use super::checks::{beside, one, written_rows};
use super::rewritten::Rewritten;
use super::scenes::without_times;
use crate::support::{Bed, Worker};

/// One database with tasks of two tenants, a suspect, a scheduled one, and one of a kind that the worker has not.
pub(super) struct Claims {
    pub(super) bed: Bed,
    worker: Worker,
    request: Uuid,
    taker: Client,
    holder: Client,
    taker_pid: i32,
    own: BTreeMap<&'static str, String>,
}

/// A situation: its SQL, and how many are asked for, of the kind and of the queue.
type Scene = (&'static str, &'static str, [i32; 3]);

const SCENES: [Scene; 15] = [
    ("a part", "", [3, 1000, 1000]),
    ("all", "", [10, 1000, 1000]),
    ("two free slots of the kind", "", [10, 2, 1000]),
    ("one free slot of the queue", "", [10, 1000, 1]),
    ("no free slot of the kind", "", [10, 0, 1000]),
    ("no free slot of the queue", "", [10, 1000, 0]),
    (
        "a draining worker",
        "update aegis.worker set state = 1 where id = ':w'",
        [3, 1000, 1000],
    ),
    (
        "a lost worker",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w'",
        [3, 1000, 1000],
    ),
    (
        "a lease that has ended",
        "update aegis.worker_lease set lease_until = clock_timestamp() where worker = ':w'",
        [3, 1000, 1000],
    ),
    (
        "a repeated request",
        "update aegis.worker set last_request = ':q' where id = ':w'",
        [3, 1000, 1000],
    ),
    (
        "an earlier request",
        "update aegis.worker set last_request = gen_random_uuid() where id = ':w'",
        [3, 1000, 1000],
    ),
    (
        "a closed database",
        "update aegis.database set closed_at = now(), closed_why = 'restored'",
        [3, 1000, 1000],
    ),
    (
        "a copy",
        "update aegis.database set system_identifier = system_identifier + 1",
        [3, 1000, 1000],
    ),
    (
        "a paused tenant",
        "insert into aegis.pause (scope, value, who, why) values ('tenant', 'b', 'ann', 'why')",
        [10, 1000, 1000],
    ),
    (
        "a paused kind",
        "insert into aegis.pause (scope, value, who, why) values ('kind', 'k', 'ann', 'why')",
        [10, 1000, 1000],
    ),
];

impl Claims {
    pub(super) async fn new() -> Self {
        let bed = Bed::new().await;
        let worker = bed.worker(&["k"]).await;
        // Whom a mutant may take for the first.
        bed.worker(&["k"]).await;
        let mut tasks = Vec::new();
        for n in 0..9 {
            let task = bed.submit_with("k", |task| {
                if n % 3 == 0 {
                    "b".clone_into(&mut task.tenant);
                }
            });
            tasks.push(task.await.to_string());
        }
        tasks.push(bed.submit("another").await.to_string());
        // By their number, not by their ids: those of one millisecond follow each other in any order.
        bed.sql(&format!(
            "update aegis.task set ord = array_position('{{{}}}', id) ",
            tasks.join(",")
        ))
        .await;
        bed.sql(
            "with p as (insert into aegis.policy (start_to_close_ms) values (5000) returning id)
             update aegis.task set policy = p.id from p where ord = 4;
             update aegis.task set deadline_at = now() + interval '1 day' where ord = 1;
             update aegis.task set crashes = 1 where ord = 5;
             update aegis.task set state = 0, run_at = now() + interval '1 day' where ord = 6;
             update aegis.task set ord = 4 where ord = 10",
        )
        .await;
        let (taker, holder) = (bed.db.connect().await, bed.db.connect().await);
        taker
            .batch_execute("set lock_timeout = '2 s'")
            .await
            .unwrap();
        Self {
            taker_pid: one(&taker, "select pg_backend_pid()").await,
            taker,
            holder,
            worker,
            request: Uuid::new_v4(),
            own: BTreeMap::new(),
            bed,
        }
    }

    fn fill(&self, sql: &str) -> String {
        sql.replace(":w", &self.worker.id.to_string())
            .replace(":q", &self.request.to_string())
    }

    /// The tasks claimed and all that was answered; `None`: the server refused it.
    async fn acquire(
        &self,
        text: Option<&str>,
        [n, kind, queue]: [i32; 3],
    ) -> Option<(Vec<Uuid>, String)> {
        let session = Rewritten::new(&self.taker, text);
        let params = AcquireParams {
            worker: self.worker.id,
            request: self.request,
            queues: &["default"],
            kinds: &["k"],
            kind_free: &[kind],
            queue_free: &[queue],
            cursor_lane: 0,
            cursor_tenant: 0,
            hint_lanes: &[],
            hint_tenants: &[],
            hint_ords: &[],
            n,
        };
        let rows = task::acquire(&session, 10, &params).await.ok()?;
        let mut answers: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        answers.sort();
        Some((
            rows.into_iter().filter_map(|row| row.id).collect(),
            answers.join("\n"),
        ))
    }

    /// The first check that notices. The first call is the statement's own, without a text.
    pub(super) async fn notice(&mut self, text: Option<&str>) -> Option<String> {
        for scene in SCENES {
            let sql = self.fill(&format!("begin; {}", scene.1));
            self.taker.batch_execute(&sql).await.unwrap();
            let left = self.footprint(text, scene).await;
            self.taker.batch_execute("rollback").await.unwrap();
            if let Some(own) = self.own.get(scene.0) {
                if left.as_ref() != Some(own) {
                    return Some(format!("footprint: {}", scene.0));
                }
            } else {
                assert_eq!(text, None, "a mutant came first");
                self.own.insert(scene.0, left.unwrap());
            }
        }
        for closing in [
            "update aegis.worker set state = 1 where id = ':w'",
            "update aegis.worker_lease set lease_until = clock_timestamp() where worker = ':w'",
        ] {
            if !self.waits_at_the_gate(text, closing).await {
                return Some("a gate that closes while it waits".to_owned());
            }
        }
        (!self.passes_over_what_is_locked(text).await)
            .then(|| "a row that another has locked".to_owned())
    }

    async fn footprint(&self, text: Option<&str>, scene: Scene) -> Option<String> {
        let before = written_rows(&self.taker).await;
        let (_, answered) = self.acquire(text, scene.2).await?;
        let touched = written_rows(&self.taker).await - before;
        let times = "select now(), clock_timestamp()";
        let times = self.taker.query_one(times, &[]).await.unwrap();
        let (begin, end): (Timestamp, Timestamp) = (times.get(0), times.get(1));
        let mut left = format!("{touched} written\n{answered}");
        let rows = "select to_jsonb(x) from aegis.task x union all select to_jsonb(x) from aegis.worker x order by 1";
        for row in self.taker.query(rows, &[]).await.unwrap() {
            let mut value: Value = row.get(0);
            without_times(&mut value, begin, end);
            left.extend(["\n", &value.to_string()]);
        }
        Some(left)
    }

    /// It waits for who closes the gate, and claims nothing then.
    async fn waits_at_the_gate(&self, text: Option<&str>, closing: &str) -> bool {
        let lock = self.fill("begin; select from aegis.worker where id = ':w' for update");
        self.holder.batch_execute(&lock).await.unwrap();
        self.holder
            .batch_execute(&self.fill(closing))
            .await
            .unwrap();
        self.taker.batch_execute("begin").await.unwrap();
        let admin = &self.bed.db.admin;
        let call = self.acquire(text, [3, 1000, 1000]);
        let (waited, claimed, ()) = beside(admin, self.taker_pid, call, async || {
            self.holder.batch_execute("commit").await.unwrap();
        })
        .await;
        self.taker.batch_execute("rollback").await.unwrap();
        let undo = "update aegis.worker set state = 0 where id = ':w';
            update aegis.worker_lease set lease_until = clock_timestamp() + interval '1 hour' where worker = ':w'";
        self.bed.sql(&self.fill(undo)).await;
        waited && claimed.is_some_and(|(claimed, _)| claimed.is_empty())
    }

    /// It does not wait for a row that another claimer has, and takes others.
    async fn passes_over_what_is_locked(&self, text: Option<&str>) -> bool {
        let lock = "begin; select from aegis.task where ord = 1 for update";
        self.holder.batch_execute(lock).await.unwrap();
        self.taker.batch_execute("begin").await.unwrap();
        let claimed = self.acquire(text, [10, 1000, 1000]).await;
        self.taker.batch_execute("rollback").await.unwrap();
        self.holder.batch_execute("rollback").await.unwrap();
        claimed.is_some_and(|(claimed, _)| claimed.len() == 6)
    }
}
