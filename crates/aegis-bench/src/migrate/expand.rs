//! An expand below 500 writes a second, with a foreign key between the two tables that are written, while somebody's long
//! transaction holds one of them: how long the longest write took.
//!
//! The bound is the lock timeout and 100 ms: a write that came while a lock was waited for stands behind it for so long, and no
//! longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aegis_migrate::change::Phase;
use aegis_migrate::run::Ladder;
use tokio::task::JoinSet;

use super::{Database, connect, sealed};
use crate::setting::Setting;
use crate::{Figures, figure};

/// Connections that write, and how far apart the writes of each are: 500 a second.
const WRITERS: u64 = 10;
const EVERY: Duration = Duration::from_millis(20);

/// How long the transaction that is in the way stays.
const IN_THE_WAY: Duration = Duration::from_secs(2);

const CHANGE: &str = r#"format = 1
id = "20261129T1030_expand"
schema = "app"
[expand]
sql = "expand.sql"
compatible = [
    { rule = "add-column", reason = "programs name their columns" },
    { rule = "new-write-restriction", reason = "every order has its customer" },
]
"#;

const EXPAND: &str = "
ALTER TABLE orders ADD COLUMN note text;
ALTER TABLE customers ADD COLUMN note text DEFAULT 'none';
ALTER TABLE orders ADD CONSTRAINT orders_customer FOREIGN KEY (customer) REFERENCES customers (id) NOT VALID;
";

#[expect(clippy::cast_precision_loss, reason = "milliseconds and a count")]
pub(super) async fn measure(setting: &Setting) -> anyhow::Result<Figures> {
    let database = Database::make(setting, "bench_expand").await?;
    database
        .client
        .batch_execute(
            "CREATE SCHEMA app;
             CREATE TABLE app.customers (id bigint PRIMARY KEY, name text NOT NULL);
             CREATE TABLE app.orders (id bigint PRIMARY KEY, customer bigint NOT NULL, amount int NOT NULL);
             INSERT INTO app.customers SELECT n, 'customer ' || n FROM generate_series(1, 100000) n;
             INSERT INTO app.orders SELECT n, 1 + n % 100000, 1 FROM generate_series(1, 100000) n",
        )
        .await?;
    database
        .client
        .batch_execute("VACUUM ANALYZE app.customers, app.orders")
        .await?;
    let set = sealed(&[
        ("20261129T1030_expand/change.toml", CHANGE),
        ("20261129T1030_expand/expand.sql", EXPAND),
    ])?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        writers.spawn(write(database.url.clone(), number, Arc::clone(&stop)));
    }
    // The writers are at their pace before anything is in their way.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reader = connect(&database.url).await?;
    reader
        .batch_execute("BEGIN; SELECT count(*) FROM app.orders")
        .await?;
    let leave = tokio::spawn(async move {
        tokio::time::sleep(IN_THE_WAY).await;
        reader.batch_execute("COMMIT").await
    });
    let start = Instant::now();
    let summary = database.run(&set, Phase::Expand).await;
    let took = start.elapsed();
    leave.await??;
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut longest, mut count) = (Duration::ZERO, 0_u64);
    while let Some(ended) = writers.join_next().await {
        let (of_one, writes) = ended??;
        longest = longest.max(of_one);
        count += writes;
    }
    anyhow::ensure!(
        summary?.applied == 3,
        "the expand did not apply its three statements"
    );
    anyhow::ensure!(took >= IN_THE_WAY, "nothing was in the way of the expand");
    let bound = Ladder::default().lock_timeout + Duration::from_millis(100);
    let seconds = took.as_secs_f64() + 2.0;
    Ok(vec![
        figure("expand_longest_write_ms", longest.as_secs_f64() * 1000.0),
        figure(
            "expand_longest_write_vs_bound",
            longest.as_secs_f64() / bound.as_secs_f64(),
        ),
        figure("expand_writes_per_second", count as f64 / seconds),
        figure("expand_s", took.as_secs_f64()),
    ])
}

/// Writes to both tables in turns until it is told to stop: the longest write, and how many. A write's time runs from the
/// moment at which it was due.
async fn write(url: String, number: u64, stop: Arc<AtomicBool>) -> anyhow::Result<(Duration, u64)> {
    let client = connect(&url).await?;
    let orders = client
        .prepare("UPDATE app.orders SET amount = amount + 1 WHERE id = $1")
        .await?;
    let customers = client
        .prepare("UPDATE app.customers SET name = name || '.' WHERE id = $1")
        .await?;
    let (mut longest, mut count) = (Duration::ZERO, 0);
    let mut due = tokio::time::interval(EVERY);
    while !stop.load(Ordering::Relaxed) {
        let began = due.tick().await;
        let id = i64::try_from(1 + (number + count * WRITERS) % 100_000)?;
        let statement = if count % 2 == 0 { &orders } else { &customers };
        client.execute(statement, &[&id]).await?;
        longest = longest.max(began.elapsed());
        count += 1;
    }
    Ok((longest, count))
}
