//! How a check looks at the database: a short read-only transaction with a limit of its own.
//!
//! Invariants: one check that fails or hangs does not stop the others: its statement is ended by the server after the limit, its
//! connection is given up a moment later. Works through a transaction pooler and as the reader role.
//!
//! Never: write; hold a lock longer than one statement.

use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::verdict::Verdict;
use crate::config::Config;
use crate::error::StoreError;
use crate::generated::doctor;
use crate::session::{Conn, Mode};
use crate::store::Store;

/// What a client waits longer than the server works.
const GRACE: Duration = Duration::from_secs(2);

/// The eyes of all checks.
pub struct Look {
    pub(super) store: Store,
    pub(super) timeout: Duration,
}

impl Look {
    /// Opens two connections' worth of a pool; `timeout` is for each check.
    pub(super) fn open(config: Config, timeout: Duration) -> Result<Self, StoreError> {
        let config = config.with_pool_size(2).with_deadline(timeout + GRACE);
        Ok(Self {
            store: Store::connect_unverified(config)?,
            timeout,
        })
    }

    /// How statements are sent.
    pub(super) fn mode(&self) -> Mode {
        self.store.config().mode
    }

    /// Runs statements in one read-only transaction with the check's limit.
    pub(super) async fn at<T>(
        &self,
        read: impl AsyncFnOnce(Conn<'_>) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let timeout_ms = i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX);
        self.store
            .bounded(async move |store: Store| {
                let mut conn = store.conn().await?;
                let mode = conn.mode();
                let transaction = conn
                    .client()
                    .build_transaction()
                    .isolation_level(tokio_postgres::IsolationLevel::ReadCommitted)
                    .read_only(true)
                    .start()
                    .await?;
                let eyes = Conn::in_transaction(&transaction, mode);
                doctor::limits(&eyes, timeout_ms).await?;
                let found = read(eyes).await?;
                transaction.rollback().await?;
                Ok(found)
            })
            .await
    }
}

/// Why a check could not run, and what would let it.
pub(super) fn could_not_run(error: &StoreError, role: &str, timeout: Duration) -> Verdict {
    let mut told = error.to_string();
    let mut below = std::error::Error::source(error);
    while let Some(cause) = below {
        told.push_str(": ");
        told.push_str(&cause.to_string());
        below = cause.source();
    }
    let code = match error {
        StoreError::Database { source } => source.code().cloned(),
        _ => None,
    };
    let verdict = Verdict::unknown(format!("the check could not run: {told}"));
    match code {
        Some(code) if code == SqlState::INSUFFICIENT_PRIVILEGE => verdict.todo(format!(
            "GRANT SELECT ON ALL TABLES IN SCHEMA aegis TO {role}, or run it as aegis_reader"
        )),
        Some(code) if code == SqlState::QUERY_CANCELED => verdict.todo(format!(
            "aegis doctor --timeout {}: it took longer than {} s",
            timeout.as_secs() * 4,
            timeout.as_secs_f64()
        )),
        Some(code)
            if [
                SqlState::UNDEFINED_TABLE,
                SqlState::UNDEFINED_COLUMN,
                SqlState::UNDEFINED_FUNCTION,
                SqlState::INVALID_SCHEMA_NAME,
            ]
            .contains(&code) =>
        {
            verdict.todo("aegis db install (of this version, as the owner)")
        }
        _ => verdict.todo("look at the server's log"),
    }
}
