//! Everything that a database says was applied: executed here, or recorded as a baseline.

use tokio_postgres::GenericClient;

use super::Recorded;
use crate::baseline::{self, BaselineError};

/// Reads it; nothing where the tool was never here.
pub async fn recorded<C: GenericClient + Sync>(client: &C) -> Result<Vec<Recorded>, BaselineError> {
    baseline::read(client).await
}
