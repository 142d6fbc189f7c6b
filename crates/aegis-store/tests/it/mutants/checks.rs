//! What should notice a mutant of a guarded statement: the truth table, what moves during a lock wait, the repeat, the lock
//! order, and what is read. Each check is taken back, so that one database serves all mutants.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use aegis_model::Held;
use aegis_testkit::wait_until;
use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::Client;
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

use super::rewritten::Rewritten;
use super::scenes::{CLOSED, ROWS, Scene, scenes, without_times};
use crate::guard::{DIFFERENCES, Table};
use crate::guarded::{write, write_as};

/// One database with what the checks need.
pub(super) struct Bench {
    pub(super) table: Table,
    writer: Client,
    holder: Client,
    writer_pid: i32,
    /// Another running task of the same claim, whose id is above the first's.
    above: Held,
    /// What the statements themselves leave behind, by statement and scene.
    own: RefCell<BTreeMap<String, String>>,
}

/// A statement, and what is sent in the place of its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Under<'a> {
    pub(super) statement: &'static str,
    pub(super) text: Option<&'a str>,
}

const BOUND: Duration = Duration::from_secs(20);

/// What moves while the writer waits for the row: a name, what is so before, what happens (by the row's holder, or by another),
/// and whether the write may be done. `:t` is the task, `:w` its owner.
const MOVES: [(&str, &str, &str, bool); 7] = [
    ("nothing during the lock wait", "", "", true),
    (
        "a renewal during the lock wait",
        "update aegis.worker_lease set lease_until = clock_timestamp() - interval '1 ms' where worker = ':w'",
        "update aegis.worker_lease set lease_until = clock_timestamp() + interval '1 hour' where worker = ':w'",
        true,
    ),
    (
        "a loss during the lock wait",
        "",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w'",
        false,
    ),
    (
        "a lease that ends during the lock wait",
        "",
        "update aegis.worker_lease set lease_until = clock_timestamp() where worker = ':w'",
        false,
    ),
    (
        "an adoption during the lock wait",
        "",
        "update aegis.database set floor = 9",
        false,
    ),
    (
        "an edit that is none of the claim's, during the lock wait",
        "",
        EDIT,
        true,
    ),
    (
        "another write of the claim during the lock wait",
        "",
        "holder: update aegis.task set rev = rev + 1 where id = ':t'",
        false,
    ),
];

/// An edit by a person, which is none of the claim's.
const EDIT: &str = "holder: update aegis.task set priority = 1 where id = ':t'";

/// Takes all of that back.
const UNDO: &str =
    "update aegis.worker_lease set lease_until = clock_timestamp() + interval '1 hour' where worker = ':w';
     update aegis.worker set state = 0, ended_at = null where id = ':w'; update aegis.database set floor = 7;
     update aegis.operation set state = 1, finished_at = null where task = ':t';
     update aegis.task set priority = 5, rev = :r, open_ops = 1 where id = ':t'";

impl Bench {
    pub(super) async fn new() -> Self {
        let table = Table::new().await;
        let db = &table.bed.db;
        let (writer, holder) = (db.connect().await, db.connect().await);
        let writer_pid = one(&writer, "select pg_backend_pid()").await;
        // A crowd of running rows of the same owner, never analyzed: what a wrong plan reads.
        table
            .bed
            .sql(
                "alter table aegis.task set (autovacuum_enabled = off);
                 insert into aegis.task (id, lane, tenant, state, ord, owner, claim_id, claimed_at, epoch, rev, floor, timeline)
                 select aegis.uuid7(), t.lane, t.tenant, 2, n, t.owner, t.claim_id, now(), t.epoch, t.rev, t.floor, t.timeline
                 from aegis.task t, generate_series(1, 2000) n",
            )
            .await;
        let above = Held {
            task: one(
                &writer,
                "select id from aegis.task order by id desc limit 1",
            )
            .await,
            ..table.held
        };
        Self {
            table,
            writer,
            holder,
            writer_pid,
            above,
            own: RefCell::default(),
        }
    }

    fn fill(&self, sql: &str) -> String {
        sql.replace(":t", &self.table.held.task.to_string())
            .replace(":w", &self.table.held.owner.to_string())
            .replace(":a", &self.above.task.to_string())
            .replace(":r", &self.table.held.rev.to_string())
    }

    /// Writes `held` on the writer's connection, by `text` when there is one.
    async fn write(&self, what: Under<'_>, held: &[Held]) -> Option<Vec<Uuid>> {
        let session = Rewritten::new(&self.writer, what.text);
        let written = write(&session, what.statement, held, self.table.lane).await;
        written.ok()
    }

    /// The first check that notices; `None`: the mutant survives. An error of the server is noticed like a wrong answer.
    pub(super) async fn notice(&self, what: Under<'_>) -> Option<String> {
        if let Some(noticed) = self.truth(what).await {
            return Some(noticed);
        }
        for scene in scenes(what.statement) {
            if !self.leaves_the_same(what, &scene).await {
                return Some(format!("footprint: {}", scene.name));
            }
        }
        if let Some(noticed) = self.repeat_and_reads(what).await {
            return Some(noticed);
        }
        for (name, before, during, may) in MOVES {
            if self.during_a_wait(what, before, during).await != Some(may) {
                return Some(name.to_owned());
            }
        }
        if what.statement == "task/complete" {
            // The common way: nothing is open, the row goes in this statement.
            if self.during_a_wait(what, CLOSED, EDIT).await != Some(true) {
                return Some("an edit during the lock wait, nothing open".to_owned());
            }
            if !self.reads_its_group(what).await {
                return Some("a group reads other rows".to_owned());
            }
        }
        if !self.old_transaction(what).await {
            return Some("a lease that ended after the transaction began".to_owned());
        }
        let is_group = ["task/complete", "task/fail", "task/release"].contains(&what.statement);
        if is_group && !self.locks_in_order(what).await {
            return Some("the lock order of a group".to_owned());
        }
        None
    }

    /// Each difference alone, and none.
    async fn truth(&self, what: Under<'_>) -> Option<String> {
        let admin = &self.table.bed.db.admin;
        for n in 0..=DIFFERENCES.len() {
            let set = if n == 0 { 0 } else { 1 << (n - 1) };
            let differs = self.table.begin(set).await;
            let session = Rewritten::new(admin, what.text);
            let held = [self.table.held];
            let written = write(&session, what.statement, &held, self.table.lane);
            let before = written_rows(admin).await;
            let written = written.await.ok();
            let touched = written.is_some() && written_rows(admin).await != before;
            self.table.bed.sql("rollback").await;
            let expected: &[Uuid] = if n == 0 { &[self.table.held.task] } else { &[] };
            if written.as_deref() != Some(expected) || touched != (n == 0) {
                return Some(format!("truth table {differs:?}"));
            }
        }
        None
    }

    /// Does the write leave in this scene what the statement itself leaves? The first call for a statement is its own.
    async fn leaves_the_same(&self, what: Under<'_>, scene: &Scene) -> bool {
        let sql = self.fill(&format!("begin; {}", scene.sql));
        self.writer.batch_execute(&sql).await.unwrap();
        let left = self.footprint(what, scene).await;
        self.writer.batch_execute("rollback").await.unwrap();
        let key = format!("{}: {}", what.statement, scene.name);
        let mut own = self.own.borrow_mut();
        if let Some(own) = own.get(&key) {
            return left.as_ref() == Some(own);
        }
        assert_eq!(what.text, None, "{key}: a mutant came first");
        own.insert(key, left.unwrap());
        true
    }

    async fn footprint(&self, what: Under<'_>, scene: &Scene) -> Option<String> {
        let session = Rewritten::new(&self.writer, what.text);
        let held = [self.table.held];
        let before = written_rows(&self.writer).await;
        let lane = self.table.lane;
        let written = write_as(&session, what.statement, &held, lane, scene.call);
        let written = written.await.ok()?;
        let touched = written_rows(&self.writer).await - before;
        let times = "select now(), clock_timestamp()";
        let times = self.writer.query_one(times, &[]).await.unwrap();
        let (begin, end): (Timestamp, Timestamp) = (times.get(0), times.get(1));
        let mut left = format!(
            "{written:?} of {} answered, {touched} written",
            session.answered()
        );
        for row in self.writer.query(&self.fill(ROWS), &[]).await.unwrap() {
            let (table, mut value): (&str, Value) = (row.get(0), row.get(1));
            without_times(&mut value, begin, end);
            left.extend(["\n", table, " ", &value.to_string()]);
        }
        Some(left)
    }

    /// A group reads about what its rows cost, whichever way it is planned.
    async fn reads_its_group(&self, what: Under<'_>) -> bool {
        let sql = format!(
            "select id from aegis.task where id > '{}' order by id limit 500",
            self.table.held.task
        );
        let rows = self.table.bed.db.admin.query(&sql, &[]).await.unwrap();
        let group: Vec<Held> = rows
            .iter()
            .map(|row| Held {
                task: row.get(0),
                ..self.table.held
            })
            .collect();
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let begin = format!("begin; set local plan_cache_mode = {mode}");
            self.writer.batch_execute(&begin).await.unwrap();
            let before = self.read().await;
            let written = self.write(what, &group).await.map(|written| written.len());
            let read = if written.is_some() {
                self.read().await - before
            } else {
                0
            };
            self.writer.batch_execute("rollback").await.unwrap();
            if written != Some(group.len()) || read > 1600 {
                return false;
            }
        }
        true
    }

    /// The same write twice: the second is refused, since the first moved the row. And neither reads what is not its own,
    /// whether it is planned with its parameters in sight or without.
    async fn repeat_and_reads(&self, what: Under<'_>) -> Option<String> {
        let held = [self.table.held];
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let begin = format!("begin; set local plan_cache_mode = {mode}");
            self.writer.batch_execute(&begin).await.unwrap();
            let before = self.read().await;
            let first = self.write(what, &held).await;
            let read = if first.is_some() {
                self.read().await - before
            } else {
                0
            };
            let second = self.write(what, &held).await;
            self.writer.batch_execute("rollback").await.unwrap();
            if first.as_deref() != Some(&[held[0].task]) {
                return Some(format!("{mode}: not written"));
            }
            if read > 100 {
                return Some(format!("{mode}: other rows are read"));
            }
            if second.is_none_or(|second| !second.is_empty()) {
                return Some("a repeat is written again".to_owned());
            }
        }
        None
    }

    /// How many rows of `aegis.task` this transaction has read.
    async fn read(&self) -> i64 {
        let sql = "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_all_tables where relid = 'aegis.task'::regclass";
        one(&self.writer, sql).await
    }

    /// Writes while another holds the row; `during` happens meanwhile. Was it written? `None`: it failed, or did not wait.
    async fn during_a_wait(&self, what: Under<'_>, before: &str, during: &str) -> Option<bool> {
        let bed = &self.table.bed;
        if !before.is_empty() {
            bed.sql(&self.fill(before)).await;
        }
        let lock = self.fill("begin; select from aegis.task where id = ':t' for update");
        self.holder.batch_execute(&lock).await.unwrap();
        self.writer.batch_execute("begin").await.unwrap();
        let held = [self.table.held];
        let written = self
            .write_beside(what, &held, async || {
                let (of_row, other) = match during.strip_prefix("holder: ") {
                    Some(sql) => (sql, ""),
                    None => ("", during),
                };
                bed.sql(&self.fill(other)).await;
                self.holder.batch_execute(&self.fill(of_row)).await.unwrap();
                self.holder.batch_execute("commit").await.unwrap();
            })
            .await;
        let is_written = match written {
            Some((written, ())) if written == [held[0].task] => {
                // It says so; then the row is another, or gone.
                let left = "select count(*) from aegis.task where id = ':t' and rev = :r";
                let left: i64 = one(&self.writer, &self.fill(left)).await;
                (left == 0).then_some(true)
            }
            Some((written, ())) => written.is_empty().then_some(false),
            None => None,
        };
        self.writer.batch_execute("rollback").await.unwrap();
        bed.sql(&self.fill(UNDO)).await;
        is_written
    }

    /// Writes, and does `then` once the write waits for a lock or is done. What it answered; `None` when it failed or never
    /// waited.
    async fn write_beside<T>(
        &self,
        what: Under<'_>,
        held: &[Held],
        then: impl AsyncFnOnce() -> T,
    ) -> Option<(Vec<Uuid>, T)> {
        let admin = &self.table.bed.db.admin;
        let write = self.write(what, held);
        let (waited, written, then) = beside(admin, self.writer_pid, write, then).await;
        waited.then_some(())?;
        Some((written?, then))
    }

    /// The clock that counts is that of the moment, not that of the transaction's beginning.
    async fn old_transaction(&self, what: Under<'_>) -> bool {
        self.writer.batch_execute("begin; select 1").await.unwrap();
        let end =
            "update aegis.worker_lease set lease_until = clock_timestamp() where worker = ':w'";
        self.table.bed.sql(&self.fill(end)).await;
        let written = self.write(what, &[self.table.held]).await;
        self.writer.batch_execute("rollback").await.unwrap();
        self.table.bed.sql(&self.fill(UNDO)).await;
        written.is_some_and(|written| written.is_empty())
    }

    /// A group that comes in the wrong order locks in the right one: while it waits for the first, the second is free.
    async fn locks_in_order(&self, what: Under<'_>) -> bool {
        let lock = self.fill("begin; select from aegis.task where id = ':t' for update");
        self.holder.batch_execute(&lock).await.unwrap();
        self.writer.batch_execute("begin").await.unwrap();
        let held = [self.above, self.table.held];
        let written = self
            .write_beside(what, &held, async || {
                let sql = format!(
                    "select count(*) from (select from aegis.task where id = '{}' for update skip locked) x",
                    self.above.task
                );
                let free: i64 = one(&self.table.bed.db.admin, &sql).await;
                self.holder.batch_execute("commit").await.unwrap();
                free == 1
            })
            .await;
        self.writer.batch_execute("rollback").await.unwrap();
        written.is_some_and(|(written, free)| free && written.len() == 2)
    }
}

/// Does something, and `then` once the backend `pid` waits for a lock or the first is done. Did it wait, and both answers.
pub(super) async fn beside<T, U>(
    admin: &Client,
    pid: i32,
    first: impl Future<Output = T>,
    then: impl AsyncFnOnce() -> U,
) -> (bool, T, U) {
    let sql = format!(
        "select wait_event_type is not distinct from 'Lock' from pg_stat_activity where pid = {pid}"
    );
    let is_done = Cell::new(false);
    let (first, (waited, then)) = tokio::join!(
        async {
            let first = first.await;
            is_done.set(true);
            first
        },
        async {
            let waited = Cell::new(false);
            wait_until("it waits or is done", BOUND, async || {
                waited.set(one(admin, &sql).await);
                waited.get() || is_done.get()
            })
            .await;
            (waited.get(), then().await)
        }
    );
    (waited, first, then)
}

/// How many rows of the engine's tables this connection's transaction has written, and what it had not reported before.
pub(super) async fn written_rows(client: &Client) -> i64 {
    let sql = "select sum(n_tup_ins + n_tup_upd + n_tup_del)::int8 from pg_stat_xact_all_tables where schemaname = 'aegis'";
    one(client, sql).await
}

pub(super) async fn one<T: FromSqlOwned>(client: &Client, sql: &str) -> T {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
