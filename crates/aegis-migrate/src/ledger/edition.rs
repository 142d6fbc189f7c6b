//! The edition of the ledger's own tables: made under the mutex by the first program that brings it, left alone by all others.
//!
//! Invariants: a program that brings nothing newer locks nothing that applications write to, and puts nothing of its own over
//! what a newer one made; what is made newer waits for no lock longer than [`WAIT_MS`] at a time, so that no writer waits
//! longer behind it.

use std::time::Duration;

use aegis_backfill::Pause;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient, Transaction};

use super::{LedgerError, LedgerName, script};

/// Raised with every change of a file of `schema/`, here and in aegis-backfill. Never reused.
pub(super) const EDITION: i32 = 2;

/// How long a lock is waited for: as long as a step of a run does.
const WAIT_MS: u32 = 300;

/// How often.
const TRIES: u32 = 30;

/// Between two tries, for those who waited behind it.
const PAUSE: Duration = Duration::from_millis(500);

/// Makes this program's edition, unless it or a newer one is there.
pub(super) async fn bring(
    client: &Client,
    name: LedgerName,
    numbered: bool,
) -> Result<(), LedgerError> {
    if numbered && there(client, name).await? >= EDITION {
        return Ok(());
    }
    let mut pause = Pause::of(PAUSE);
    for tried in 0..TRIES {
        if tried > 0 {
            pause.wait().await;
        }
        match make(client, name).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {}
            ended => return Ok(ended?),
        }
    }
    Err(LedgerError::Locked {
        tries: TRIES,
        wait_ms: WAIT_MS,
    })
}

/// The same in the caller's transaction, with one try: what waits too long is error 55P03.
pub(super) async fn bring_in(
    transaction: &Transaction<'_>,
    name: LedgerName,
    numbered: bool,
) -> Result<(), tokio_postgres::Error> {
    if numbered && there(transaction, name).await? >= EDITION {
        return Ok(());
    }
    transaction.batch_execute(&making(name)).await
}

async fn there(
    client: &impl GenericClient,
    name: LedgerName,
) -> Result<i32, tokio_postgres::Error> {
    let sql = name.sql(include_str!("../../sql/ledger/edition.sql"));
    client.query_one(&*sql, &[]).await?.try_get("number")
}

/// What makes this edition, for one transaction.
fn making(name: LedgerName) -> String {
    format!(
        "SET LOCAL lock_timeout = {WAIT_MS};\n{}{}SET LOCAL lock_timeout TO DEFAULT;",
        script(name),
        name.sql(include_str!("../../sql/ledger/set_edition.sql"))
            .replace("$1", &EDITION.to_string()),
    )
}

/// In one round trip: it is there whole or not at all, and a lost answer is settled by trying again.
async fn make(client: &Client, name: LedgerName) -> Result<(), tokio_postgres::Error> {
    let made = client
        .batch_execute(&format!("BEGIN;\n{}\nCOMMIT;", making(name)))
        .await;
    if made.is_err() {
        // The first error is what is told.
        client.batch_execute("ROLLBACK").await.ok();
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::sha256;

    /// Changed with [`EDITION`], in one commit: a database that has an edition never looks at its files again.
    const SCRIPT: &str = "ccfc5bdd0d9cad8b5d1564b768c1491209f3f6884ac1d0c74615bbc2719be433";

    #[test]
    fn files_that_are_changed_are_another_edition() {
        let whole = script(LedgerName::Application);
        assert_eq!(
            sha256(whole.as_bytes()),
            SCRIPT,
            "a file of schema/ was changed: raise EDITION, and write this hash beside it"
        );
    }
}
