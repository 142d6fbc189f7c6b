//! What earlier attempts of a task have stored: checkpoint, steps, ledger. Loaded in one go, at first use.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use aegis_store::StoreError;
use aegis_store::generated::task;
use aegis_store::guarded::LedgerEntry;

use crate::execution::Execution;
use crate::task_error::TaskError;
use crate::writer::Pause;

/// Bytes with the protocol that wrote them.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) protocol: i32,
    pub(crate) data: Vec<u8>,
}

/// The stored parts of a task at the start of this attempt.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) checkpoint: Option<Stored>,
    pub(crate) steps: HashMap<(String, String), Stored>,
    pub(crate) ledger: Mutex<Ledger>,
}

/// The ledger of a task, as old as `read_at`: what is left of a period there has shrunk since.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) entries: HashMap<String, LedgerEntry>,
    pub(crate) read_at: Instant,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Ledger {
    pub(crate) fn of(entries: Vec<LedgerEntry>) -> Self {
        Self {
            entries: entries
                .into_iter()
                .map(|entry| (entry.id.clone(), entry))
                .collect(),
            read_at: Instant::now(),
        }
    }
}

impl Execution {
    /// The stored parts. Nothing is asked when no earlier attempt has stored any.
    pub(crate) async fn parts(&self) -> Result<&Parts, TaskError> {
        self.parts
            .get_or_try_init(|| async {
                if !self.claim.has_parts {
                    return Ok(Parts::default());
                }
                let mut pause = Pause::new();
                loop {
                    match self.load().await {
                        Ok(parts) => return Ok(parts),
                        Err(error) => self.try_again(error, &mut pause).await?,
                    }
                }
            })
            .await
    }

    /// After a failed read: waits, while the database is away and the lease lasts.
    pub(crate) async fn try_again(
        &self,
        error: StoreError,
        pause: &mut Pause,
    ) -> Result<(), TaskError> {
        if !error.is_passing() {
            return Err(error.into());
        }
        if !self.incarnation.fence.is_eligible() {
            return Err(self.lose().into());
        }
        pause.wait().await;
        Ok(())
    }

    async fn load(&self) -> Result<Parts, StoreError> {
        let id = self.claim.held.task;
        let store = &self.shared.store;
        let (checkpoint, steps) = store
            .bounded(async move |store| {
                let conn = store.conn().await?;
                let conn = conn.conn();
                Ok((
                    task::load_checkpoint(&conn, id).await?,
                    task::load_steps(&conn, id).await?,
                ))
            })
            .await?;
        Ok(Parts {
            checkpoint: checkpoint.map(|row| Stored {
                protocol: row.protocol,
                data: row.data,
            }),
            steps: steps
                .into_iter()
                .map(|row| {
                    let stored = Stored {
                        protocol: row.protocol,
                        data: row.value,
                    };
                    ((row.name, row.key), stored)
                })
                .collect(),
            ledger: Mutex::new(Ledger::of(store.ledger(id).await?)),
        })
    }
}
