//! What should notice a mutant of a function that ends an attempt: what each call answers and leaves, in each situation that the
//! functions tell apart, beside another task of the same claim's owner with operations and an outcome of its own.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use super::scenes::{ROWS, without_times};
use crate::support::Bed;

/// Operations of both tasks: `:t` has two that are open and one that is quiet already, `:a` also a blind one and one that waits
/// for a person. Times end with the moment, so that a clock that stands still is seen.
const OPERATIONS: &str = "insert into aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch,
        timeout_ms, quiet_ms, first_dispatched_at, dispatched_at, quiet_until, fingerprint)
    select t.id, x.id, t.tenant, 'n', 'k', x.class, x.state, 1, 1, t.epoch, 1, 0, now() - interval '2 h', now() - interval '2 h',
        case when x.id = 'quiet' then now() - interval '1 h' end, '\\x66'
    from aegis.task t, (values ('one', 1, 1), ('two', 1, 1), ('quiet', 0, 1), ('done', 1, 2), ('blind', 3, 1), ('asked', 1, 4))
        x (id, class, state)
    where t.id = ':a' or (t.id = ':t' and x.id in ('one', 'two', 'quiet', 'done'));
    update aegis.task set open_ops = case when id = ':a' then 5 else 3 end where id in (':t', ':a');
    insert into aegis.pending_outcome (task, tenant, state, owner, claim_id, epoch, rev, claimed_at, at, result)
    select id, tenant, 5, owner, claim_id, epoch, rev, claimed_at, now() - interval '3 h', '\\x0a' from aegis.task where id = ':a';
    update aegis.task set pending = 5 where id = ':a'";
/// None of the subject's is open.
const NOTHING_OPEN: &str =
    "update aegis.operation set state = 2, finished_at = now() - interval '1 h' where task = ':t';
    update aegis.task set open_ops = 0 where id = ':t'";
const PENDING: &str = "insert into aegis.pending_outcome (task, tenant, state, owner, claim_id, epoch, rev, claimed_at, at, result)
    select id, tenant, 7, owner, claim_id, epoch, rev, claimed_at, now() - interval '1 h', '\\x01' from aegis.task where id = ':t';
    update aegis.task set pending = 7 where id = ':t'";

/// What is so of the subject beyond that; each with its operations open, and with nothing open.
const SO: [(&str, &str); 18] = [
    ("", ""),
    (
        "a blind operation",
        "update aegis.operation set class = 3 where task = ':t' and id = 'two'",
    ),
    ("a pending outcome", ":p"),
    (
        "a cancellation",
        "update aegis.task set cancel_at = now(), cancel_cause = 0 where id = ':t'",
    ),
    (
        "a deadline that has passed",
        "update aegis.task set cancel_at = now(), cancel_cause = 1 where id = ':t'",
    ),
    (
        "an attempt that took too long",
        "update aegis.task set cancel_at = now(), cancel_cause = 2 where id = ':t'",
    ),
    (
        "a cause to cancel without a time",
        "update aegis.task set cancel_cause = 0 where id = ':t'",
    ),
    (
        "another cause to cancel without a time",
        "update aegis.task set cancel_cause = 1 where id = ':t'",
    ),
    (
        "another task whose attempt took too long",
        "update aegis.task set cancel_at = now(), cancel_cause = 2 where id = ':a'",
    ),
    (
        "a pending outcome and a cancellation",
        ":p; update aegis.task set cancel_at = now(), cancel_cause = 0 where id = ':t'",
    ),
    // The subject's policy has 5 failures and 2 crashes, the other one 10 and 3.
    (
        "one crash left",
        "update aegis.task set crashes = 1 where id = ':t'",
    ),
    (
        "no crash left",
        "update aegis.task set crashes = 2 where id = ':t'",
    ),
    (
        "too many crashes",
        "update aegis.task set crashes = 3 where id = ':t'",
    ),
    (
        "a cancellation and no failure left",
        "update aegis.task set cancel_at = now(), cancel_cause = 0, failures = 4 where id = ':t'",
    ),
    (
        "one failure left",
        "update aegis.task set failures = 4 where id = ':t'",
    ),
    (
        "two failures left",
        "update aegis.task set failures = 3 where id = ':t'",
    ),
    (
        "a pending outcome and no failure left",
        ":p; update aegis.task set failures = 4 where id = ':t'",
    ),
    (
        "a deadline to come",
        "update aegis.task set deadline_at = now() + interval '1 day' where id = ':t'",
    ),
];

/// What is called of the subject.
const CALLS: [&str; 24] = [
    "aegis.end_attempt(':t', 'drain')",
    "aegis.end_attempt(':t', 'failure')",
    "aegis.end_attempt(':t', 'failure', p_bump => 1)",
    "aegis.end_attempt(':t', 'failure', clock_timestamp())",
    "aegis.end_attempt(':t', 'snooze', clock_timestamp() + interval '1 h')",
    "aegis.end_attempt(':t', 'unknown')",
    "aegis.end_attempt(':t', 'cancelled')",
    "aegis.end_attempt(':t', 'cancelled', p_bump => 1)",
    "aegis.end_attempt(':t', 'settled')",
    "aegis.end_attempt(':t', 'absent')",
    "aegis.end_attempt(':t', 'interruption')",
    "aegis.end_attempt(':t', 'crash')",
    "aegis.end_attempt(':t', 'kill', p_actor => 'ann', p_detail => '{\"a\": 1}')",
    "aegis.fail_attempt(':t', 'c', 'm', true, null, 0, 7)",
    "aegis.fail_attempt(':t', 'c', 'm', true, '{\"a\": 1}', null, 7)",
    "aegis.fail_attempt(':t', 'c', 'm', false, null, 0, 7)",
    "aegis.fail_attempt(':t', 'c', 'm', false, null, 0, 7, 1)",
    "aegis.conclude(':t', 5::smallint, null, '\\x02')",
    "aegis.conclude(':t', 6::smallint, '{\"code\": \"c\"}')",
    "aegis.conclude(':t', 8::smallint, null)",
    "aegis.end_operations(':t')",
    "aegis.quiet_operations(':t', clock_timestamp())",
    "aegis.doubt_operations(':t', '{one, done}', null)",
    "aegis.doubt_operations(':t', '{two}', 'why')",
];

/// One database with the two tasks.
pub(super) struct Ending {
    pub(super) bed: Bed,
    caller: Client,
    subject: Uuid,
    another: Uuid,
    own: BTreeMap<String, String>,
}

impl Ending {
    pub(super) async fn new() -> Self {
        let bed = Bed::new().await;
        let worker = bed.worker(&["k"]).await;
        let subject = bed.claim(&worker).await.held.task;
        let another = bed.claim(&worker).await.held.task;
        let this = Self {
            caller: bed.db.connect().await,
            own: BTreeMap::new(),
            bed,
            subject,
            another,
        };
        let policy = "insert into aegis.policy (max_failures, max_crashes) values (5, 2);
            update aegis.task set policy = (select max(id) from aegis.policy) where id = ':t'";
        this.bed.sql(&this.fill(policy)).await;
        this.bed.sql(&this.fill(OPERATIONS)).await;
        this
    }

    fn fill(&self, sql: &str) -> String {
        sql.replace(":p", PENDING)
            .replace(":t", &self.subject.to_string())
            .replace(":a", &self.another.to_string())
    }

    /// The first check that notices. The first call is without mistakes.
    pub(super) async fn notice(&mut self) -> Option<String> {
        for (so, sql) in SO {
            for (open, nothing) in [("open operations", ""), ("nothing open", NOTHING_OPEN)] {
                for call in CALLS {
                    let name = format!("{call} with {open}, {so}");
                    let begin = self.fill(&format!("begin; {sql}; {nothing}"));
                    self.caller.batch_execute(&begin).await.unwrap();
                    let left = self.left_by(call).await;
                    self.caller.batch_execute("rollback").await.unwrap();
                    match self.own.get(&name) {
                        Some(own) if left.as_ref() != Some(own) => {
                            return Some(format!("footprint: {name}"));
                        }
                        Some(_) => {}
                        None => {
                            let left = left.unwrap_or_else(|| panic!("{name} is refused"));
                            self.own.insert(name, left);
                        }
                    }
                }
            }
        }
        None
    }

    /// What a call answers and leaves; `None`: it failed.
    async fn left_by(&self, call: &str) -> Option<String> {
        // Filled in first: a cast to text is no task.
        let call = format!(
            "select coalesce(string_agg(x::text, ','), 'none') from {} x",
            self.fill(call)
        );
        let answer: String = self.caller.query_one(&call, &[]).await.ok()?.get(0);
        let rows = format!(
            "select now(), clock_timestamp(), array_agg(r.kind || ' ' || r.row::text order by r.kind, r.row::text) from ({}) r (kind, row)",
            ROWS.replace("where id = ':t'", "")
                .replace("order by 1, 2", "")
        );
        let row = self.caller.query_one(&rows, &[]).await.unwrap();
        let (begin, end): (Timestamp, Timestamp) = (row.get(0), row.get(1));
        let mut left = format!("{answer}\n");
        for row in row.get::<_, Vec<String>>(2) {
            let (kind, json) = row.split_once(' ').unwrap_or((&row, "null"));
            let mut value: Value = serde_json::from_str(json).unwrap();
            without_times(&mut value, begin, end);
            left.extend([kind, " ", &value.to_string(), "\n"]);
        }
        Some(left)
    }
}
