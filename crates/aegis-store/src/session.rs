//! How a generated statement reaches PostgreSQL.
//!
//! [`Statement`] is a text with its types, as the generator found them; [`Session`] is anything that can
//! send one; [`Conn`] is a pooled connection or transaction together with the way to send.
//!
//! Invariants: a statement is sent *unnamed with its types*, in one round trip that any transaction pooler
//! forwards, unless the caller states that no pooler is between; only then is it prepared by name, once per
//! connection, which saves planning it each time.
//!
//! Never: guess the mode from a pooled connection. [`Mode`] comes from configuration.

use std::future::Future;

use bytes::Bytes;
use deadpool_postgres::{ClientWrapper, StatementCache};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, CopyInSink, Error, Row};

/// A statement as `cargo xtask sql` described it.
#[derive(Debug)]
pub struct Statement {
    /// `aggregate/verb`, the path of its file under `sql/` without the extension.
    pub name: &'static str,
    /// The texts: one, or one for each batch size, ascending.
    pub texts: &'static [&'static str],
    /// The type of each parameter, in order; the same for every text. Of a COPY: of each column.
    pub types: &'static [Type],
}

/// A parameter value, as `tokio-postgres` takes it.
pub type Param<'a> = &'a (dyn ToSql + Sync);

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Prepared by name once per connection. Only where no transaction pooler is between.
    Named,
    /// Parsed at each call, with stated types. Works everywhere.
    Unnamed,
}

/// Something that generated functions can be called on.
///
/// The methods are provided, so that a wrapper (a counter, a crash point) may replace one of them.
pub trait Session: Sync {
    /// The connection, and how to send on it.
    fn conn(&self) -> Conn<'_>;

    /// Sends text number `text` of `statement` and returns all rows.
    fn query(
        &self,
        statement: &'static Statement,
        text: usize,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Error>> + Send {
        async move {
            self.conn()
                .query(statement.texts[text], statement.types, params)
                .await
        }
    }

    /// As [`Session::query`], for at most one row; more are an error.
    fn query_opt(
        &self,
        statement: &'static Statement,
        text: usize,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Option<Row>, Error>> + Send {
        async move {
            self.conn()
                .query_opt(statement.texts[text], statement.types, params)
                .await
        }
    }

    /// As [`Session::query`], for exactly one row; none and more are errors.
    fn query_one(
        &self,
        statement: &'static Statement,
        text: usize,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Row, Error>> + Send {
        async move {
            self.conn()
                .query_one(statement.texts[text], statement.types, params)
                .await
        }
    }

    /// Sends the statement and returns the number of rows it changed.
    fn execute(
        &self,
        statement: &'static Statement,
        text: usize,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<u64, Error>> + Send {
        async move {
            self.conn()
                .execute(statement.texts[text], statement.types, params)
                .await
        }
    }
}

/// A connection with the way to send on it. Cheap: two pointers.
#[derive(Debug, Clone, Copy)]
pub struct Conn<'a> {
    client: &'a Client,
    /// Present in [`Mode::Named`] only.
    prepared: Option<&'a StatementCache>,
}

impl<'a> Conn<'a> {
    /// A pooled connection, outside a transaction.
    pub fn pooled(client: &'a ClientWrapper, mode: Mode) -> Self {
        Self::with(client, &client.statement_cache, mode)
    }

    /// A transaction of a pooled connection.
    pub fn in_transaction(transaction: &'a deadpool_postgres::Transaction<'_>, mode: Mode) -> Self {
        Self::with(transaction.client(), &transaction.statement_cache, mode)
    }

    fn with(client: &'a Client, cache: &'a StatementCache, mode: Mode) -> Self {
        Self {
            client,
            prepared: (mode == Mode::Named).then_some(cache),
        }
    }

    /// Are statements prepared by name here?
    pub(crate) fn is_named(self) -> bool {
        self.prepared.is_some()
    }

    /// Begins a COPY into the database. Only where [`Conn::is_named`]: it takes two round trips on one server process.
    pub(crate) async fn copy_in(
        self,
        statement: &'static Statement,
    ) -> Result<CopyInSink<Bytes>, Error> {
        let sql = statement.texts[0];
        match self.prepared {
            Some(cache) => {
                let prepared = cache.prepare_typed(self.client, sql, &[]).await?;
                self.client.copy_in(&prepared).await
            }
            None => self.client.copy_in(sql).await,
        }
    }

    async fn query(
        self,
        sql: &str,
        types: &[Type],
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        match self.prepared {
            Some(cache) => {
                let prepared = cache.prepare_typed(self.client, sql, types).await?;
                self.client.query(&prepared, params).await
            }
            None => self.client.query_typed(sql, &typed(types, params)).await,
        }
    }

    async fn query_opt(
        self,
        sql: &str,
        types: &[Type],
        params: &[Param<'_>],
    ) -> Result<Option<Row>, Error> {
        match self.prepared {
            Some(cache) => {
                let prepared = cache.prepare_typed(self.client, sql, types).await?;
                self.client.query_opt(&prepared, params).await
            }
            None => {
                self.client
                    .query_typed_opt(sql, &typed(types, params))
                    .await
            }
        }
    }

    async fn query_one(
        self,
        sql: &str,
        types: &[Type],
        params: &[Param<'_>],
    ) -> Result<Row, Error> {
        match self.prepared {
            Some(cache) => {
                let prepared = cache.prepare_typed(self.client, sql, types).await?;
                self.client.query_one(&prepared, params).await
            }
            None => {
                self.client
                    .query_typed_one(sql, &typed(types, params))
                    .await
            }
        }
    }

    async fn execute(self, sql: &str, types: &[Type], params: &[Param<'_>]) -> Result<u64, Error> {
        match self.prepared {
            Some(cache) => {
                let prepared = cache.prepare_typed(self.client, sql, types).await?;
                self.client.execute(&prepared, params).await
            }
            None => self.client.execute_typed(sql, &typed(types, params)).await,
        }
    }
}

impl Session for Conn<'_> {
    fn conn(&self) -> Conn<'_> {
        *self
    }
}

/// A bare connection has no cache: always unnamed.
impl Session for Client {
    fn conn(&self) -> Conn<'_> {
        Conn {
            client: self,
            prepared: None,
        }
    }
}

/// As on its connection: always unnamed.
impl Session for tokio_postgres::Transaction<'_> {
    fn conn(&self) -> Conn<'_> {
        self.client().conn()
    }
}

fn typed<'a>(types: &[Type], params: &[Param<'a>]) -> Vec<(Param<'a>, Type)> {
    params.iter().copied().zip(types.iter().cloned()).collect()
}

/// The text to use for `wanted` rows: that of the smallest size that holds them, else the largest.
pub fn batch_text(sizes: &[usize], wanted: usize) -> usize {
    let fits = sizes.partition_point(|&size| size < wanted);
    fits.min(sizes.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    //! The pure part; sending is tested with the statements themselves.

    use super::batch_text;

    #[test]
    fn batch_text_takes_the_smallest_size_that_holds_all() {
        let sizes = [1, 10, 100, 500];
        let texts = [0, 1, 2, 10, 11, 500, 501].map(|wanted| batch_text(&sizes, wanted));
        assert_eq!(texts, [0, 0, 1, 1, 2, 3, 3]);
    }
}
