//! A connection that sends another text in the place of a statement's own: a mutant needs no compilation.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use aegis_store::session::{Conn, Param, Session, Statement};
use tokio_postgres::{Client, Error, Row};

pub(super) struct Rewritten<'a> {
    client: &'a Client,
    text: Option<&'a str>,
    answered: AtomicUsize,
}

impl<'a> Rewritten<'a> {
    /// `text`: what is sent; `None`: what the statement says itself.
    pub(super) fn new(client: &'a Client, text: Option<&'a str>) -> Self {
        Self {
            client,
            text,
            answered: AtomicUsize::new(0),
        }
    }

    /// How many rows came back, before anybody looked at them.
    pub(super) fn answered(&self) -> usize {
        self.answered.load(Relaxed)
    }

    async fn rows(
        &self,
        statement: &'static Statement,
        n: usize,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        let text = self.text.unwrap_or(statement.texts[n]);
        let types = statement.types.iter().cloned();
        let typed: Vec<_> = params.iter().copied().zip(types).collect();
        let rows = self.client.query_typed(text, &typed).await?;
        self.answered.fetch_add(rows.len(), Relaxed);
        Ok(rows)
    }
}

impl Session for Rewritten<'_> {
    fn conn(&self) -> Conn<'_> {
        self.client.conn()
    }

    async fn query(
        &self,
        statement: &'static Statement,
        n: usize,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Error> {
        self.rows(statement, n, params).await
    }

    async fn query_opt(
        &self,
        statement: &'static Statement,
        n: usize,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, Error> {
        Ok(self.rows(statement, n, params).await?.pop())
    }
}
