//! What a write leaves behind, in each situation that its statement tells apart: a mutant must leave what the statement leaves.
//!
//! A footprint has everything but the moment itself: a time is before the transaction, its beginning, the moment of the
//! statement, or later; so a clock that stands still is seen.

use aegis_model::Class;
use jiff::Timestamp;
use serde_json::Value;

use crate::guarded::{BLIND, Call};

/// A situation: SQL that makes it, and how a dispatch is called in it.
pub(super) struct Scene {
    pub(super) name: String,
    pub(super) sql: String,
    pub(super) call: Call,
}

/// The task's operation has its result.
pub(super) const CLOSED: &str = "update aegis.operation set state = 2, finished_at = now() - interval '1 h' where task = ':t' and id = 'fenced';
    update aegis.task set open_ops = 0 where id = ':t'";
const PENDING: &str = "insert into aegis.pending_outcome (task, tenant, state, owner, claim_id, epoch, rev, claimed_at, at, result)
        select id, tenant, 5, owner, claim_id, epoch, rev, claimed_at, now() - interval '1 h', '\\x01' from aegis.task where id = ':t';
    update aegis.task set pending = 5 where id = ':t'";
const BLIND_OPEN: &str = "update aegis.operation set class = 3 where task = ':t'";
const DRAINING: &str = "update aegis.worker set state = 1 where id = ':w'";
const LEASE_ENDED: &str =
    "update aegis.worker_lease set lease_until = clock_timestamp() where worker = ':w'";
/// Another operation of the task, and an operation of the same name of another task.
const OTHERS: &str = "insert into aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch, timeout_ms, quiet_ms,
        first_dispatched_at, dispatched_at, fingerprint)
    select t.id, x.id, t.tenant, 'n', 'k', 1, 1, 1, 1, t.epoch, 1, 1, now() - interval '2 h', now() - interval '2 h', '\\x66'
    from (values (':t'::uuid, 'other'), (':a'::uuid, 'fenced')) x (task, id) join aegis.task t on t.id = x.task;
    update aegis.task set open_ops = open_ops + 1 where id in (':t', ':a')";
/// What a dispatch is about is open, but of another task.
const OTHER_NEW: &str = "insert into aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch, timeout_ms, quiet_ms,
        first_dispatched_at, dispatched_at, fingerprint)
    select id, 'new', tenant, 'n', 'k', 1, 1, 1, 1, epoch, 1, 1, now() - interval '2 h', now() - interval '2 h', '\\x66'
    from aegis.task where id = ':a'";
const MANY_FAILURES: &str = "update aegis.task set failures = 1000 where id = ':t'";

/// The scenes of a statement.
pub(super) fn scenes(statement: &str) -> Vec<Scene> {
    let both = format!("{CLOSED}; {PENDING}");
    let mut bases = vec![
        ("an open operation", ""),
        ("no open operation", CLOSED),
        ("a pending outcome and an open operation", PENDING),
        ("a pending outcome", both.as_str()),
        ("an open blind operation", BLIND_OPEN),
        ("a draining worker", DRAINING),
    ];
    match statement {
        "task/settle" => bases.push(("other operations", OTHERS)),
        "task/dispatch" => bases.push(("such an operation of another task", OTHER_NEW)),
        "task/fail" => bases.push(("no attempt left", MANY_FAILURES)),
        _ => {}
    }
    let mut scenes = Vec::new();
    for (name, sql) in bases {
        for (ended, end) in [("", ""), (", the lease has ended", LEASE_ENDED)] {
            scenes.push(Scene {
                name: format!("{name}{ended}"),
                sql: format!("{sql}; {end}"),
                call: BLIND,
            });
        }
    }
    if statement == "task/dispatch" {
        scenes.extend(ledger());
    }
    scenes
}

const PAST: &str = "now() - interval '1 h'";
const FUTURE: &str = "now() + interval '1 h'";
/// Over now, but not when the transaction began.
const JUST_OVER: &str = "clock_timestamp()";

/// An operation that is there already, as class, state, validity of its key, fingerprint, resolution; and the call's class and
/// whether it was probed.
type Existing = (
    i16,
    i16,
    &'static str,
    &'static str,
    &'static str,
    Class,
    bool,
);

/// What `task/dispatch` tells apart of an operation that is there already.
fn ledger() -> Vec<Scene> {
    use Class::{Blind, Fenced, Idempotent, Queryable};
    let cases: [Existing; 25] = [
        (0, 0, "null", "66", "null", Idempotent, false),
        (0, 0, PAST, "66", "null", Idempotent, false),
        (0, 0, "null", "67", "null", Idempotent, false),
        (1, 0, "null", "66", "null", Idempotent, false),
        (0, 1, "null", "66", "null", Idempotent, false),
        (0, 1, PAST, "66", "null", Idempotent, false),
        (0, 1, PAST, "66", "null", Idempotent, true),
        (0, 1, FUTURE, "66", "null", Idempotent, false),
        (0, 1, JUST_OVER, "66", "null", Idempotent, false),
        (0, 2, "null", "66", "null", Idempotent, true),
        (0, 4, "null", "66", "null", Idempotent, true),
        (0, 5, "null", "66", "0", Idempotent, true),
        (0, 5, "null", "66", "1", Idempotent, false),
        (1, 1, "null", "66", "null", Fenced, false),
        (1, 1, PAST, "66", "null", Fenced, false),
        (1, 1, FUTURE, "67", "null", Fenced, false),
        (2, 1, "null", "66", "null", Queryable, false),
        (2, 1, "null", "66", "null", Queryable, true),
        (2, 0, "null", "66", "null", Queryable, false),
        (2, 4, "null", "66", "null", Queryable, true),
        (3, 0, "null", "66", "null", Blind, false),
        (3, 1, "null", "66", "null", Blind, false),
        (3, 1, "null", "66", "null", Blind, true),
        (3, 5, "null", "66", "0", Blind, false),
        (3, 5, "null", "66", "1", Blind, false),
    ];
    cases.into_iter().map(existing).collect()
}

fn existing(case: Existing) -> Scene {
    let (stored, state, valid, fingerprint, resolution, class, probed) = case;
    let by = if state == 5 {
        "'ann', now() - interval '1 h', 'seen'"
    } else {
        "null, null, null"
    };
    Scene {
        name: format!("ledger {case:?}"),
        sql: format!(
            "insert into aegis.operation (task, id, tenant, name, key, class, state, dispatches, protocol, epoch, timeout_ms, quiet_ms,
                worker, release, first_dispatched_at, dispatched_at, key_valid_until, fingerprint, note, resolution, resolved_by, resolved_at, evidence)
             select id, 'new', tenant, 'n', 'k', {stored}, {state}, 1, 1, epoch, 1, 1, owner, 'r0', now() - interval '2 h',
                now() - interval '2 h', {valid}, '\\x{fingerprint}', 'old', {resolution}, {by}
             from aegis.task where id = ':t'"
        ),
        call: Call { class, probed },
    }
}

/// All that stands about the task, and the whole ledger.
pub(super) const ROWS: &str = "select 'task', to_jsonb(x) - 'ord' from aegis.task x where id = ':t'
    union all select 'operation', to_jsonb(x) from aegis.operation x
    union all select 'checkpoint', to_jsonb(x) from aegis.checkpoint x
    union all select 'step', to_jsonb(x) from aegis.step x
    union all select 'history', to_jsonb(x) from aegis.task_history x
    union all select 'parked', to_jsonb(x) from aegis.parked x
    union all select 'pending', to_jsonb(x) from aegis.pending_outcome x
    union all select 'error', to_jsonb(x) from aegis.attempt_error x
    union all select 'event', to_jsonb(x) from aegis.task_event x
    order by 1, 2";

/// Puts a word in the place of each time.
pub(super) fn without_times(value: &mut Value, begin: Timestamp, end: Timestamp) {
    match value {
        Value::String(text) => {
            let Ok(at) = text.parse::<Timestamp>() else {
                return;
            };
            let word = match at {
                at if at < begin => "before",
                at if at == begin => "the transaction's beginning",
                at if at <= end => "the moment",
                _ => "later",
            };
            word.clone_into(text);
        }
        Value::Array(all) => all
            .iter_mut()
            .for_each(|one| without_times(one, begin, end)),
        Value::Object(all) => all
            .values_mut()
            .for_each(|one| without_times(one, begin, end)),
        _ => {}
    }
}
