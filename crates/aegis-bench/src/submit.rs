//! Batch submit against INSERT … SELECT unnest of the same bytes into one table with a primary key.

use std::time::Instant;

use aegis_store::NewTask;
use anyhow::Context as _;
use uuid::Uuid;

use crate::setting::Setting;
use crate::{Figures, figure, median};

const BATCH: usize = 10_000;

/// Measures both sides in turns.
#[expect(clippy::cast_precision_loss, reason = "a count of rows")]
pub(crate) async fn measure(
    setting: &Setting,
    input: &[u8],
    rounds: usize,
) -> anyhow::Result<Figures> {
    let store = setting.store(2).await?;
    let client = setting.client();
    client
        .batch_execute("CREATE TABLE bench.plain (id uuid PRIMARY KEY, input bytea NOT NULL)")
        .await?;
    let insert = client
        .prepare("INSERT INTO bench.plain SELECT * FROM unnest($1::uuid[], $2::bytea[])")
        .await?;
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    for round in 0..=rounds {
        let ids: Vec<Uuid> = (0..BATCH).map(|_| Uuid::now_v7()).collect();
        let inputs = vec![input; BATCH];
        let start = Instant::now();
        client.execute(&insert, &[&ids, &inputs]).await?;
        let plain = start.elapsed().as_secs_f64();
        let tasks: Vec<NewTask> = (0..BATCH)
            .map(|_| NewTask {
                queue: "submit-only".to_owned(),
                ..NewTask::new("bench.noop", input)
            })
            .collect();
        let start = Instant::now();
        let submitted = store.submit_batch(tasks).await.context("submit")?;
        let ours = start.elapsed().as_secs_f64();
        anyhow::ensure!(submitted.len() == BATCH, "a batch was answered in part");
        // The first round prepares the statements.
        if round > 0 {
            ratios.push(plain / ours);
            rates.push(BATCH as f64 / ours);
        }
    }
    client
        .batch_execute("TRUNCATE aegis.task, aegis.task_body")
        .await?;
    Ok(vec![
        figure("submit_vs_insert", median(&mut ratios)),
        figure("submits_per_second", median(&mut rates)),
    ])
}
