//! What should notice a mutant of the acquire call's choice: which tasks it takes and what it answers, among lanes, tenants with
//! weights, suspects, tasks that wait, inputs of both kinds, hints, cursors and free slots.

use std::collections::BTreeMap;

use aegis_store::generated::task::{self, AcquireParams};
use tokio_postgres::Client;
use uuid::Uuid;

use super::checks::written_rows;
use super::rewritten::Rewritten;
use crate::support::{Bed, Worker};

/// Lanes 1 to 5: two kinds of the worker's first queue, its other queue, what it cannot do, and what it cannot read. Tenants 1 to 4.
/// Of each (lane, tenant) so many ready tasks from an `ord` on; before them a suspect, one that waits for its time, and a running
/// one. Every third input stands elsewhere.
const WORLD: &str = "
    insert into aegis.lane (id, queue, kind, lo, hi) overriding system value
        values (1, 'default', 'k', 1, 1), (2, 'default', 'l', 1, 1), (3, 'other', 'k', 1, 1), (4, 'default', 'x', 1, 1), (5, 'default', 'k', 9, 9);
    insert into aegis.tenant (id, name, weight) overriding system value values (1, 'a', 1), (2, 'b', 1), (3, 'c', 3), (4, 'd', 1);
    insert into aegis.worker_capability (worker, queue, kind, reads_min, reads_max, writes, slots)
        select worker, 'other', 'k', reads_min, reads_max, writes, slots from aegis.worker_capability where worker = ':w' and kind = 'k';
    create temp table base as select aegis.uuid7() as id;
    create function pg_temp.put(lane int, tenant int, state int, crashes int, ord int) returns void language sql as $$
        insert into aegis.task (id, lane, tenant, state, crashes, ord, run_at, owner, claim_id, claimed_at, floor, timeline, epoch,
            input_protocol, input)
        select x.id, lane, tenant, state, crashes, ord, case when state = 0 then now() + interval '1 day' end,
            case when state = 2 then ':w'::uuid end, case when state = 2 then x.id end, case when state = 2 then now() end,
            case when state = 2 then 0 end, case when state = 2 then 1 end, 0,
            case when ord % 3 > 0 then 1 end, case when ord % 3 > 0 then convert_to(ord::text, 'UTF8') end
        from (select (left(base.id::text, 24) || right(md5(lane || '-' || tenant || '-' || ord), 12))::uuid as id from pg_temp.base) x
    $$;
    select pg_temp.put(lane, tenant, 1, 0, first + n) from
        (values (1, 1, 10, 12), (1, 2, 110, 5), (1, 3, 130, 6), (2, 1, 200, 6), (2, 2, 240, 3), (2, 4, 250, 2), (3, 1, 300, 2), (3, 3, 310, 4),
            (4, 1, 1, 3), (4, 2, 5, 1), (5, 1, 7, 2)) h (lane, tenant, first, count),
        generate_series(0, count - 1) n;
    select pg_temp.put(lane, tenant, state, crashes, -10 * lane - 3 * tenant + state - 5 * crashes) from
        (values (1, 1), (1, 2), (2, 1), (3, 3), (1, 4), (2, 3), (3, 4), (3, 1)) h (lane, tenant), (values (1, 1), (0, 0), (2, 0)) s (state, crashes);
    insert into aegis.task_body (id, tenant, protocol, input) select id, tenant, 1, convert_to('body ' || ord, 'UTF8') from aegis.task
        where input is null";

/// Worlds that differ from it.
const WORLDS: [(&str, &str); 6] = [
    ("the world", ""),
    (
        "a paused tenant",
        "insert into aegis.pause (scope, value, who, why) values ('tenant', 'b', 'ann', 'why'), ('tenant', 'd', 'ann', 'why')",
    ),
    (
        "a paused queue with the name of a tenant",
        "insert into aegis.pause (scope, value, who, why) values ('queue', 'b', 'ann', 'why')",
    ),
    (
        "one tenant only",
        "delete from aegis.task where state = 1 and crashes = 0 and not (lane in (1, 4, 5) and tenant = 1)",
    ),
    (
        "many tenants",
        "insert into aegis.tenant (id, name) overriding system value select n, 't' || n from generate_series(10, 49) n;
         select pg_temp.put(1 + n % 2, n, 1, 0, 1000 + n) from generate_series(10, 49) n",
    ),
    (
        "many paused tenants",
        "insert into aegis.tenant (id, name) overriding system value select n, 't' || n from generate_series(1000, 1299) n;
         insert into aegis.pause (scope, value, who, why) select 'tenant', 't' || n, 'ann', 'why' from generate_series(1000, 1299) n;
         select pg_temp.put(1, n, 1, 0, n) from generate_series(1000, 1299) n",
    ),
];

/// Queue, kind, free slots of the kind and of the queue.
type Pair = (&'static str, &'static str, i32, i32);

/// What is asked for: how many, of which pairs, behind which (lane, tenant), and hints as (lane, tenant, ord).
type Ask = (i32, &'static [Pair], (i32, i32), &'static [(i32, i32, i64)]);

const ALL: &[Pair] = &[
    ("default", "k", 100, 1000),
    ("default", "l", 100, 1000),
    ("other", "k", 100, 1000),
];

const ASKS: [Ask; 28] = [
    (10, ALL, (0, 0), &[]),
    (3, ALL, (0, 0), &[]),
    (1, ALL, (0, 0), &[]),
    (500, ALL, (0, 0), &[]),
    (10, ALL, (1, 1), &[]),
    (10, ALL, (1, 2), &[]),
    (10, ALL, (1, 30), &[]),
    (10, ALL, (2, 0), &[]),
    (10, ALL, (2, 25), &[]),
    (10, ALL, (3, 3), &[]),
    (10, &[("default", "k", 100, 1000)], (0, 0), &[]),
    (10, &[("default", "k", 100, 1000)], (1, 1), &[]),
    (10, &[("other", "k", 100, 1000)], (0, 0), &[]),
    (10, &[("default", "x", 100, 1000)], (0, 0), &[]),
    (
        10,
        &[
            ("default", "k", 2, 1000),
            ("default", "l", 100, 1000),
            ("other", "k", 100, 1000),
        ],
        (0, 0),
        &[],
    ),
    (
        10,
        &[
            ("default", "k", 10, 3),
            ("default", "l", 10, 3),
            ("other", "k", 10, 4),
        ],
        (0, 0),
        &[],
    ),
    (
        10,
        &[("default", "k", 10, 10), ("default", "l", 10, 10)],
        (0, 0),
        &[],
    ),
    // Hints that are enough, one that is not, with an `ord` in the middle, of a lane that is not the worker's, of a paused tenant.
    (3, ALL, (0, 0), &[(1, 1, 10), (2, 1, 200)]),
    (3, ALL, (0, 0), &[(1, 1, 15)]),
    (10, ALL, (0, 0), &[(1, 1, 12)]),
    (10, ALL, (0, 0), &[(1, 1, 10), (1, 2, 110), (3, 3, 310)]),
    (7, ALL, (0, 0), &[(1, 1, 15)]),
    (8, ALL, (0, 0), &[(1, 1, 15)]),
    (3, ALL, (0, 0), &[(4, 1, 1), (5, 1, 7)]),
    (3, ALL, (0, 0), &[(1, 2, 110)]),
    (3, ALL, (0, 0), &[(1, 3, 131), (2, 4, 250)]),
    // Two that are ready, and before them one that waits and a suspect, which do not make it enough.
    (3, ALL, (0, 0), &[(3, 1, -1000)]),
    // Enough by the hint, but not by the free slots of its kind.
    (
        5,
        &[("default", "k", 2, 1000), ("default", "l", 100, 1000)],
        (0, 0),
        &[(1, 1, 15)],
    ),
];

/// One database with all of them.
pub(super) struct Choosing {
    _bed: Bed,
    /// How many of the worlds are looked at.
    worlds: usize,
    worker: Worker,
    request: Uuid,
    taker: Client,
    own: BTreeMap<String, String>,
}

impl Choosing {
    pub(super) async fn new(worlds: usize) -> Self {
        let bed = Bed::new().await;
        let worker = bed.worker(&["k", "l"]).await;
        let taker = bed.db.connect().await;
        Self {
            request: Uuid::new_v4(),
            taker,
            worker,
            _bed: bed,
            worlds,
            own: BTreeMap::new(),
        }
        .made()
        .await
    }

    async fn made(self) -> Self {
        self.taker.batch_execute(&self.fill(WORLD)).await.unwrap();
        self
    }

    fn fill(&self, sql: &str) -> String {
        sql.replace(":w", &self.worker.id.to_string())
    }

    /// The first check that notices. The first call is the statement's own, without a text.
    pub(super) async fn notice(&mut self, text: Option<&str>) -> Option<String> {
        for (world, sql) in WORLDS.into_iter().take(self.worlds) {
            let begin = format!("begin; {sql}");
            self.taker.batch_execute(&begin).await.unwrap();
            for (n, ask) in ASKS.into_iter().enumerate() {
                self.taker.batch_execute("savepoint one").await.unwrap();
                let chosen = self.chosen(text, ask).await;
                self.taker
                    .batch_execute("rollback to one; release one")
                    .await
                    .unwrap();
                let name = format!("{world}: ask {n}");
                match self.own.get(&name) {
                    Some(own) if chosen.as_ref() != Some(own) => {
                        self.taker.batch_execute("rollback").await.unwrap();
                        return Some(name);
                    }
                    Some(_) => {}
                    None => {
                        assert_eq!(text, None, "{name}: a mutant came first");
                        self.own.insert(name, chosen.unwrap());
                    }
                }
            }
            self.taker.batch_execute("rollback").await.unwrap();
        }
        None
    }

    /// All that is answered, and how much was written; `None`: the server refused it.
    async fn chosen(&self, text: Option<&str>, (n, pairs, cursor, hints): Ask) -> Option<String> {
        let session = Rewritten::new(&self.taker, text);
        let before = written_rows(&self.taker).await;
        let params = AcquireParams {
            worker: self.worker.id,
            request: self.request,
            queues: &pairs.iter().map(|pair| pair.0).collect::<Vec<_>>(),
            kinds: &pairs.iter().map(|pair| pair.1).collect::<Vec<_>>(),
            kind_free: &pairs.iter().map(|pair| pair.2).collect::<Vec<_>>(),
            queue_free: &pairs.iter().map(|pair| pair.3).collect::<Vec<_>>(),
            cursor_lane: cursor.0,
            cursor_tenant: cursor.1,
            hint_lanes: &hints.iter().map(|hint| hint.0).collect::<Vec<_>>(),
            hint_tenants: &hints.iter().map(|hint| hint.1).collect::<Vec<_>>(),
            hint_ords: &hints.iter().map(|hint| hint.2).collect::<Vec<_>>(),
            n,
        };
        let rows = task::acquire(&session, 10, &params).await.ok()?;
        let mut answers: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        answers.sort();
        let touched = written_rows(&self.taker).await - before;
        Some(format!("{touched} written\n{}", answers.join("\n")))
    }
}
