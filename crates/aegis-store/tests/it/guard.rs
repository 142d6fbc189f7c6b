//! The guard's truth table: every guarded statement, every difference between what is held and what the row says.
//! Exactly what matches may write; otherwise nothing at all changes. `aegis_model::guard::judge` says the same of each row.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use aegis_model::guard::{Row, judge};
use aegis_model::{Class, FenceReason, Held, Lineage, State};
use tokio_postgres::Statement;
use uuid::Uuid;

use crate::guarded::{CASES, write};
use crate::support::Bed;

/// One way in which a row, its owner or its database can differ from what is held: a name and the SQL that makes it so.
/// `:t` is the task, `:w` its owner, `:x` another worker that is alive.
pub(crate) const DIFFERENCES: [(&str, &str); 17] = [
    (
        "owner",
        "update aegis.task set owner = ':x' where id = ':t'",
    ),
    (
        "claim_id",
        "update aegis.task set claim_id = gen_random_uuid() where id = ':t'",
    ),
    (
        "epoch above",
        "update aegis.task set epoch = epoch + 1 where id = ':t'",
    ),
    (
        "rev above",
        "update aegis.task set rev = rev + 1 where id = ':t'",
    ),
    ("state", "update aegis.task set state = 1 where id = ':t'"),
    (
        "lease",
        "update aegis.worker_lease set lease_until = clock_timestamp() where worker = ':w'",
    ),
    (
        "worker lost",
        "update aegis.worker set state = 3, ended_at = now() where id = ':w'",
    ),
    (
        "worker stopped",
        "update aegis.worker set state = 2, ended_at = now() where id = ':w'",
    ),
    (
        "floor of the row",
        "update aegis.task set floor = floor + 1 where id = ':t'",
    ),
    (
        "timeline of the row",
        "update aegis.task set timeline = timeline - 1 where id = ':t'",
    ),
    (
        "adopted since",
        "update aegis.database set floor = floor + 2",
    ),
    (
        "another database",
        "update aegis.database set system_identifier = system_identifier + 1",
    ),
    (
        "no lease at all",
        "delete from aegis.worker_lease where worker = ':w'",
    ),
    (
        "scheduled",
        "update aegis.task set state = 0, run_at = now() where id = ':t'",
    ),
    ("waiting", "update aegis.task set state = 3 where id = ':t'"),
    (
        "reconciling",
        "update aegis.task set state = 4 where id = ':t'",
    ),
    (
        "epoch and rev below",
        "update aegis.task set epoch = epoch - 1, rev = rev - 1 where id = ':t'",
    ),
];

/// The first six are combined in every way; of all together, every one alone and every two.
const CORE: usize = 6;

/// The words of a fence: what the whole product is made of.
const FENCE: [&str; 10] = [
    "owner",
    "claim_id",
    "epoch above",
    "rev above",
    "floor of the row",
    "timeline of the row",
    "another database",
    "lease",
    "worker lost",
    "state",
];

/// Every set of them.
fn product() -> impl Iterator<Item = u32> {
    let bit = |name: &str| {
        let at = DIFFERENCES.iter().position(|(known, _)| *known == name);
        1 << at.unwrap_or_else(|| panic!("no difference is named {name}"))
    };
    let bits = FENCE.map(bit);
    (0u32..1 << FENCE.len()).map(move |chosen| {
        let among = bits.iter().enumerate();
        let picked = among.filter(|(n, _)| chosen & 1 << n != 0);
        picked.fold(0, |set, (_, bit)| set | bit)
    })
}

fn subsets() -> BTreeSet<u32> {
    let all = DIFFERENCES.len();
    let mut sets: BTreeSet<u32> = (0..1 << CORE).collect();
    for one in 0..all {
        for two in 0..all {
            sets.insert(1 << one | 1 << two);
        }
    }
    sets.insert((1 << all) - 1);
    sets
}

/// A running task with a dispatched operation, an idle other worker, and checks off that tie a row's parts together, so
/// that each part can differ alone.
pub(crate) struct Table {
    pub(crate) bed: Bed,
    pub(crate) held: Held,
    pub(crate) lane: i32,
    other: Uuid,
    rows: Statement,
}

impl Table {
    pub(crate) async fn new() -> Self {
        let bed = Bed::new().await;
        let worker = bed.worker(&["k"]).await;
        let other = bed.worker(&["k"]).await.id;
        let claim = bed.claim(&worker).await;
        let held = bed.dispatch(&claim, Class::Fenced).await;
        bed.sql(
            "alter table aegis.task drop constraint task_running_is_owned, drop constraint task_owned_is_whole;
             update aegis.database set floor = 7; update aegis.task set floor = 7",
        )
        .await;
        let held = Held {
            lineage: Lineage {
                floor: 7,
                ..held.lineage
            },
            ..held
        };
        let tables: String = bed
            .value(
                "select string_agg(format('select %L, to_jsonb(x)::text from aegis.%I x', relname, relname), ' union all ') || ' order by 1, 2'
                 from pg_class where relnamespace = 'aegis'::regnamespace and relkind in ('r', 'p') and not relispartition",
                &[],
            )
            .await;
        let rows = bed.db.admin.prepare(&tables).await.unwrap();
        Self {
            held,
            lane: claim.lane,
            other,
            rows,
            bed,
        }
    }

    /// All rows of all tables, by table.
    async fn rows(&self) -> Vec<(String, String)> {
        let rows = self.bed.db.admin.query(&self.rows, &[]).await.unwrap();
        rows.into_iter()
            .map(|row| (row.get(0), row.get(1)))
            .collect()
    }

    /// What `judge` says of the row as it stands, in the words of the guard.
    async fn judged(&self) -> Result<(), &'static str> {
        let client = &self.bed.db.admin;
        let row = client
            .query_one(
                "select t.state, t.owner, t.claim_id, t.epoch, t.rev, t.floor, t.timeline, i.floor, i.timeline, aegis.lease_live($2)
                 from aegis.task t left join aegis.lineage() i on true where t.id = $1",
                &[&self.held.task, &self.held.owner],
            )
            .await
            .unwrap();
        let lineage = |at: usize| {
            Some(Lineage {
                floor: row.get::<_, Option<i32>>(at)?,
                timeline: row.get::<_, Option<i32>>(at + 1)?,
            })
        };
        let seen = Row {
            state: State::from_number(row.get(0)),
            owner: row.get(1),
            claim_id: row.get(2),
            epoch: row.get(3),
            rev: row.get(4),
            lineage: lineage(5),
        };
        judge(&self.held, Some(&seen), lineage(7), row.get(9)).map_err(FenceReason::word)
    }

    /// Begins a transaction in which these things differ; answers their names.
    pub(crate) async fn begin(&self, set: u32) -> Vec<&'static str> {
        let mut differs = Vec::new();
        let mut sql = "begin".to_owned();
        for (n, (name, change)) in DIFFERENCES.iter().enumerate() {
            if set & 1 << n != 0 {
                differs.push(*name);
                sql.push(';');
                sql.push_str(change);
            }
        }
        let sql = sql
            .replace(":t", &self.held.task.to_string())
            .replace(":w", &self.held.owner.to_string())
            .replace(":x", &self.other.to_string());
        self.bed.sql(&sql).await;
        differs
    }

    /// Makes the differences, writes, and takes everything back.
    async fn judge_one(&self, statement: &str, set: u32) {
        let client = &self.bed.db.admin;
        let differs = self.begin(set).await;
        let judged = self.judged().await;
        let before = self.rows().await;
        let written = write(client, statement, &[self.held], self.lane)
            .await
            .unwrap();
        let after = self.rows().await;
        client.batch_execute("rollback").await.unwrap();
        if set == 0 {
            assert_eq!(written, [self.held.task], "{statement} did not write");
            assert_ne!(before, after, "{statement} changed nothing");
            assert_eq!(judged, Ok(()));
        } else {
            assert!(
                written.is_empty(),
                "{statement} wrote although this differs: {differs:?}"
            );
            assert_eq!(before, after, "{statement}, {differs:?}");
            assert!(judged.is_err(), "judge accepts {differs:?}");
        }
    }
}

#[tokio::test]
async fn only_what_matches_in_everything_may_write() {
    let table = Table::new().await;
    for statement in CASES {
        for set in subsets() {
            table.judge_one(statement, set).await;
        }
    }
}

/// Owner × claim id × epoch × rev × floor × timeline × system identifier × lease × state of the worker × state of the task:
/// every set of what differs, each with one of the statements in turn (they share one guard, and the table above has each).
#[tokio::test]
async fn of_the_whole_product_one_row_writes() {
    let table = Table::new().await;
    let mut sets: Vec<u32> = product().collect();
    for (set, statement) in sets.iter().zip(CASES.iter().cycle()) {
        table.judge_one(statement, *set).await;
    }
    sets.sort_unstable();
    sets.dedup();
    assert_eq!(sets.len(), 1024);
    assert_eq!(sets[0], 0, "the one that writes is among them");
}

/// A draining worker finishes what it has.
#[tokio::test]
async fn a_draining_worker_may_still_write() {
    let table = Table::new().await;
    assert!(table.bed.store.drain(table.held.owner).await.unwrap());
    for statement in CASES {
        table.judge_one(statement, 0).await;
    }
}

/// In a group each row is judged by itself.
#[tokio::test]
async fn a_refused_row_of_a_group_does_not_hold_up_the_others() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    bed.submit_many("k", 9).await;
    let claims = bed.acquire(&worker, 9).await;
    for (n, statement) in ["task/complete", "task/fail", "task/release"]
        .into_iter()
        .enumerate()
    {
        let mut held: Vec<Held> = claims[3 * n..3 * n + 3].iter().map(|c| c.held).collect();
        held[1].rev += 1;
        let good: BTreeSet<Uuid> = [held[0].task, held[2].task].into();
        let engine = bed.engine().await;
        let written = write(&engine, statement, &held, claims[0].lane)
            .await
            .unwrap();
        assert_eq!(BTreeSet::from_iter(written), good, "{statement}");
        assert_eq!(bed.state(held[1].task).await, State::Running, "{statement}");
        for id in good {
            assert_ne!(bed.state(id).await, State::Running, "{statement}");
        }
    }
}

/// Every statement that includes the guard stands in the table above, and whatever writes without it says why.
#[test]
fn every_guarded_statement_has_its_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut guarded = BTreeSet::new();
    let mut unguarded = BTreeMap::new();
    for path in sql_files(&root) {
        let text = fs::read_to_string(&path).unwrap();
        let name = path
            .strip_prefix(&root)
            .unwrap()
            .with_extension("")
            .display()
            .to_string();
        if text.contains("-- include: guard.sql") {
            guarded.insert(name);
        } else if !name.starts_with("include/") {
            // A part of a statement is fenced, or not, with the statement that includes it.
            let fence = text
                .lines()
                .find_map(|line| line.strip_prefix("-- fence: none: "))
                .unwrap_or_else(|| panic!("{name} says no fence and no reason"))
                .to_owned();
            unguarded.insert(name, fence);
        }
    }
    assert_eq!(guarded, CASES.map(str::to_owned).into());
    for (name, reason) in unguarded {
        assert!(reason.len() > 5, "{name}: `{reason}` is no reason");
    }
}

fn sql_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sql_files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
