//! What does not come back: values of the old side that forward and then backward make something else of.
//!
//! Invariants: some rows, in a transaction that reads only and is bounded; what is answered has a key and never a value.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use aegis_catalog::quote;
use serde::Serialize;
use tokio_postgres::{Client, IsolationLevel};

use super::{Pinned, Sides, SyncError, TRIED_ROWS, holds};

/// What some rows of a table have shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loses {
    /// Rows that were tried.
    pub rows: i64,
    /// Of these, those whose old side does not come back.
    pub lost: i64,
    /// One of them: its key, or its place.
    pub key: Option<String>,
}

impl Pinned {
    /// Tries the way there and back on some of the rows that are there, as `role` (none: the current one). None where it cannot be asked
    /// so, since nobody knows what an expression reads.
    ///
    /// # Errors
    /// The server's: an expression that fails, or takes too long. Nothing was changed.
    pub async fn loses(
        &self,
        client: &mut Client,
        role: Option<&str>,
        key: &[String],
    ) -> Result<Option<Loses>, SyncError> {
        let Some(sql) = self.sides().there_and_back(key) else {
            return Ok(None);
        };
        let transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::ReadCommitted)
            .read_only(true)
            .start()
            .await?;
        let mut settings =
            "SET LOCAL lock_timeout = 300; SET LOCAL statement_timeout = 2000; SET LOCAL search_path = pg_catalog, pg_temp".to_owned();
        if let Some(role) = role {
            write!(settings, "; SET LOCAL ROLE {}", quote(role)).ok();
        }
        transaction.batch_execute(&settings).await?;
        let row = transaction.query_one(&sql, &[]).await?;
        let loses = Loses {
            rows: row.try_get("rows")?,
            lost: row.try_get("lost")?,
            key: row.try_get("key")?,
        };
        transaction.rollback().await?;
        Ok(Some(loses))
    }
}

impl Sides {
    /// The count, over rows whose new side is what forward makes of the old one.
    fn there_and_back(&self, key: &[String]) -> Option<String> {
        let mut kept: BTreeSet<&String> = self.old.iter().map(|column| &column.name).collect();
        for column in self.old.iter().filter(|column| column.from.is_some()) {
            kept.extend(column.reads.as_ref()?);
        }
        let is_made = |name: &String| {
            let mut made = self.new.iter().filter(|column| column.from.is_some());
            made.any(|column| column.name == *name)
        };
        let mut columns: Vec<String> = kept
            .into_iter()
            .filter(|name| !is_made(name))
            .map(|name| quote(name))
            .collect();
        for column in &self.new {
            let Some(from) = &column.from else { continue };
            columns.push(format!(
                "CAST(({from}) AS {}) AS {}",
                column.type_sql,
                quote(&column.name)
            ));
        }
        let parts: Vec<String> = key
            .iter()
            .map(|name| format!("{}::text", quote(name)))
            .collect();
        let key = if parts.is_empty() {
            "aegis_place".to_owned()
        } else {
            format!("concat_ws(', ', {})", parts.join(", "))
        };
        let comes_back = holds(self.old.iter().filter(|column| column.from.is_some()));
        Some(format!(
            "SELECT count(*) AS rows, count(*) FILTER (WHERE NOT {comes_back}) AS lost, min(aegis_key) FILTER (WHERE NOT {comes_back}) AS key \
             FROM (SELECT {}, {key} AS aegis_key \
             FROM (SELECT aegis_table.ctid::text AS aegis_place, aegis_table.* FROM {} AS aegis_table LIMIT {TRIED_ROWS}) AS aegis_row) AS aegis_row",
            columns.join(", "),
            self.rule.table.sql()
        ))
    }
}
