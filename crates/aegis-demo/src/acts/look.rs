//! What the demo sees: the engine's tables, read while the story goes on, so that it is told when it is true.
//!
//! Reads only. The verifier has eyes of its own.

use std::time::{Duration, Instant};

use aegis_store::{Store, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::run::Run;

const PAUSE: Duration = Duration::from_millis(60);

/// Eyes on one run.
#[derive(Clone)]
pub(super) struct Look {
    store: Store,
    run: Run,
}

/// Where the tasks stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) running: i64,
    /// Ready, or postponed.
    pub(super) waiting: i64,
    /// One of their operations is unknown.
    pub(super) reconciling: i64,
}

impl Progress {
    pub(super) fn ended(self) -> i64 {
        self.succeeded + self.failed
    }

    /// Nothing is left at all.
    pub(super) fn is_through(self) -> bool {
        self.ended() == self.all()
    }

    /// Nothing is left for a worker.
    pub(super) fn is_idle(self) -> bool {
        self.running == 0 && self.waiting == 0
    }

    pub(super) fn all(self) -> i64 {
        self.ended() + self.running + self.waiting + self.reconciling
    }
}

/// A lane whose tasks nobody who accepts work can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stranded {
    pub(super) lo: i32,
    pub(super) hi: i32,
    pub(super) tasks: i64,
}

const PROGRESS: &str = "
SELECT count(*) FILTER (WHERE a.state = 5), count(*) FILTER (WHERE a.state IN (6, 7, 8)), count(*) FILTER (WHERE a.state = 2),
    count(*) FILTER (WHERE a.state IN (0, 1, 3)), count(*) FILTER (WHERE a.state = 4)
FROM aegis.task_any a JOIN aegis.tenant t ON t.id = a.tenant WHERE t.name = $1";

const RUNNING: &str = "
SELECT b.input, (SELECT string_agg(o.name, ', ') FROM aegis.operation o WHERE o.task = t.id AND o.state = 1) AS open,
    (SELECT count(*) FROM aegis.operation o WHERE o.task = t.id AND o.state IN (2, 5)) AS done
FROM aegis.task t JOIN aegis.worker w ON w.id = t.owner JOIN aegis.input_any b ON b.id = t.id
WHERE w.name = $1 AND t.state = 2 ORDER BY t.claimed_at";

const ENDS: &str = "
SELECT count(*) FROM aegis.task_event e JOIN aegis.worker w ON w.id = e.owner WHERE w.name = $1 AND e.cause = ANY (string_to_array($2, ','))";

const FENCED: &str = "
SELECT b.input, e.detail ->> 'verb', e.epoch, (e.detail ->> 'current_epoch')::int8 FROM aegis.task_event e
JOIN aegis.worker w ON w.id = e.owner JOIN aegis.input_any b ON b.id = e.task
WHERE w.name = $1 AND e.cause = 'fenced' ORDER BY e.at";

const ALIVE: &str = "
SELECT count(*) FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
WHERE w.name = $1 AND w.state = 0 AND l.lease_until > clock_timestamp()";

const STRANDED: &str = "
SELECT n.lo, n.hi, count(*) FROM aegis.task t JOIN aegis.lane n ON n.id = t.lane
WHERE n.queue = $1 AND t.state IN (0, 1, 4) AND NOT EXISTS (
    SELECT FROM aegis.worker_capability c JOIN aegis.worker w ON w.id = c.worker JOIN aegis.worker_lease l ON l.worker = w.id
    WHERE c.queue = n.queue AND c.kind = n.kind AND c.reads_min <= n.lo AND n.hi <= c.reads_max
      AND w.state = 0 AND l.lease_until > clock_timestamp())
GROUP BY 1, 2 ORDER BY 1, 2";

const NEWER: &str = "
SELECT count(*) FROM aegis.task t JOIN aegis.lane n ON n.id = t.lane WHERE n.queue = $1 AND n.hi > 1";

impl Look {
    pub(super) fn new(store: Store, run: Run) -> Self {
        Self { store, run }
    }

    pub(super) async fn progress(&self) -> Result<Progress, StoreError> {
        let rows = self.ask(PROGRESS, &[&self.run.tenant]).await?;
        let Some(row) = rows.first() else {
            return Ok(Progress::default());
        };
        Ok(Progress {
            succeeded: row.try_get(0)?,
            failed: row.try_get(1)?,
            running: row.try_get(2)?,
            waiting: row.try_get(3)?,
            reconciling: row.try_get(4)?,
        })
    }

    /// What a worker executes now: the order, and the operations whose answers are open.
    pub(super) async fn running(
        &self,
        worker: &str,
    ) -> Result<Vec<(String, Option<String>)>, StoreError> {
        let rows = self.ask(RUNNING, &[&worker]).await?;
        rows.iter()
            .map(|row| Ok((order_id(row.try_get::<_, &[u8]>(0)?), row.try_get(1)?)))
            .collect()
    }

    /// The orders of which a worker has everything done and has not said so yet.
    pub(super) async fn finished_in_hand(&self, worker: &str) -> Result<Vec<String>, StoreError> {
        let rows = self.ask(RUNNING, &[&worker]).await?;
        let mut orders = Vec::new();
        for row in &rows {
            if row.try_get::<_, Option<String>>(1)?.is_none() && row.try_get::<_, i64>(2)? == 4 {
                orders.push(order_id(row.try_get::<_, &[u8]>(0)?));
            }
        }
        Ok(orders)
    }

    /// How many executions of a worker ended by one of these causes.
    pub(super) async fn ends(&self, worker: &str, causes: &str) -> Result<i64, StoreError> {
        let rows = self.ask(ENDS, &[&worker, &causes]).await?;
        Ok(rows
            .first()
            .map(|row| row.try_get(0))
            .transpose()?
            .unwrap_or_default())
    }

    /// The refused writes of a worker: order, verb, the epoch that wrote, the epoch that stood.
    pub(super) async fn fenced(
        &self,
        worker: &str,
    ) -> Result<Vec<(String, String, i64, Option<i64>)>, StoreError> {
        let rows = self.ask(FENCED, &[&worker]).await?;
        rows.iter()
            .map(|row| {
                let verb: Option<String> = row.try_get(1)?;
                Ok((
                    order_id(row.try_get::<_, &[u8]>(0)?),
                    verb.unwrap_or_default(),
                    row.try_get(2)?,
                    row.try_get(3)?,
                ))
            })
            .collect()
    }

    /// Whether a worker of this name accepts work.
    pub(super) async fn accepts(&self, worker: &str) -> Result<bool, StoreError> {
        let rows = self.ask(ALIVE, &[&worker]).await?;
        let count: i64 = rows
            .first()
            .map(|row| row.try_get(0))
            .transpose()?
            .unwrap_or_default();
        Ok(count > 0)
    }

    /// Lanes of which nobody who accepts work can read the tasks.
    pub(super) async fn stranded(&self) -> Result<Vec<Stranded>, StoreError> {
        let rows = self.ask(STRANDED, &[&self.run.queue]).await?;
        rows.iter()
            .map(|row| {
                Ok(Stranded {
                    lo: row.try_get(0)?,
                    hi: row.try_get(1)?,
                    tasks: row.try_get(2)?,
                })
            })
            .collect()
    }

    /// How many live tasks hold something that only version 2 can read.
    pub(super) async fn newer(&self) -> Result<i64, StoreError> {
        let rows = self.ask(NEWER, &[&self.run.queue]).await?;
        Ok(rows
            .first()
            .map(|row| row.try_get(0))
            .transpose()?
            .unwrap_or_default())
    }

    async fn ask(&self, sql: &str, texts: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let client = self.store.handler_pool().get().await?;
        let typed: Vec<(&(dyn ToSql + Sync), Type)> =
            texts.iter().map(|text| (*text, Type::TEXT)).collect();
        Ok(client.query_typed(sql, &typed).await?)
    }
}

fn order_id(input: &[u8]) -> String {
    let input: serde_json::Value = serde_json::from_slice(input).unwrap_or_default();
    input["order_id"].as_str().unwrap_or("?").to_owned()
}

/// Looks until there is something to see, or until `within` has passed.
pub(super) async fn until<T>(
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    let end = Instant::now() + within;
    loop {
        if let Some(seen) = look().await? {
            return Ok(Some(seen));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
