//! A run of the demo, as it is written down in the database before anything is submitted: the verifier finds it there.
//!
//! Two tables of the demo's own, beside the engine's: `demo.run`, and `demo.receipt`, which handlers write in the transaction
//! of their completion. `demo.receipt` has no unique key on purpose: a receipt too many must be seen, not prevented.

use aegis_store::{Store, StoreError};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The kind of the demo's tasks.
pub const KIND: &str = "demo.order";

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name, which the payment service's record carries too.
    pub id: String,
    /// The tenant of its tasks: orders of two runs in one database are not repeats of each other.
    pub tenant: String,
    /// The queue of its tasks, so that the workers of another run leave them alone.
    pub queue: String,
}

const TABLES: &str = "
CREATE SCHEMA IF NOT EXISTS demo;
CREATE TABLE IF NOT EXISTS demo.run (
    id text PRIMARY KEY, tenant text NOT NULL, queue text NOT NULL, kind text NOT NULL, seed bigint NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE IF NOT EXISTS demo.receipt (
    queue text NOT NULL, task uuid NOT NULL, order_id text NOT NULL, reservation text NOT NULL, charge text NOT NULL,
    payout text NOT NULL, notification text NOT NULL, epoch bigint NOT NULL, written_by text NOT NULL,
    written_at timestamptz NOT NULL DEFAULT clock_timestamp());
GRANT USAGE ON SCHEMA demo TO aegis_engine, aegis_reader;
GRANT SELECT ON demo.run TO aegis_engine, aegis_reader;
GRANT SELECT, INSERT ON demo.receipt TO aegis_engine;
GRANT SELECT ON demo.receipt TO aegis_reader;
";

impl Run {
    /// A run with a name of its own.
    pub fn new() -> Self {
        let mut name = Uuid::new_v4().simple().to_string();
        name.truncate(6);
        Self {
            id: format!("run-{name}"),
            tenant: format!("demo-{name}"),
            queue: format!("orders-{name}"),
        }
    }

    /// Makes the demo's tables where they are missing, and writes the run down. As the owner of the engine's tables.
    ///
    /// # Errors
    /// What the database said.
    pub async fn write_down(&self, store: &Store, seed: u64) -> Result<(), StoreError> {
        let client = store.handler_pool().get().await?;
        client.batch_execute(TABLES).await?;
        let seed = i64::from_ne_bytes(seed.to_ne_bytes());
        client
            .query_typed(
                "INSERT INTO demo.run (id, tenant, queue, kind, seed) VALUES ($1, $2, $3, $4, $5)",
                &[
                    (&self.id, Type::TEXT),
                    (&self.tenant, Type::TEXT),
                    (&self.queue, Type::TEXT),
                    (&KIND, Type::TEXT),
                    (&seed, Type::INT8),
                ],
            )
            .await?;
        Ok(())
    }
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}
