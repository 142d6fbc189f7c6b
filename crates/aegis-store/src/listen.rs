//! Notifications: a hint that a queue has work. Polling is the truth.
//!
//! Invariant: nothing depends on a hint arriving; a listener that ended is noticed and made again by its owner, and through
//! a transaction pooler there is none.

use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Client};

use crate::config::Config;
use crate::error::StoreError;

/// A connection that listens. Dropping it ends the connection.
pub struct Listener {
    _client: Client,
    woken: watch::Receiver<u64>,
}

impl Listener {
    /// Listens for the given queues over the direct URL; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] or a database error.
    pub async fn connect(config: &Config, queues: &[String]) -> Result<Option<Self>, StoreError> {
        let Some(direct) = &config.direct else {
            return Ok(None);
        };
        let (client, mut connection) = direct
            .connect(config.direct_tls.connector())
            .await
            .map_err(|source| StoreError::Unreachable {
                place: config.place(),
                source: Box::new(source),
            })?;
        let (wake, woken) = watch::channel(0);
        let queues = queues.to_vec();
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(message) = messages.next().await {
                match message {
                    Ok(AsyncMessage::Notification(hint))
                        if queues.iter().any(|queue| queue == hint.payload()) =>
                    {
                        wake.send_modify(|count| *count += 1);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(error = %error, "the listening connection ended");
                        break;
                    }
                }
            }
        });
        client.batch_execute("LISTEN aegis").await?;
        Ok(Some(Self {
            _client: client,
            woken,
        }))
    }

    /// Returns when a hint has arrived since the last call. `false`: the connection has ended.
    pub async fn hint(&mut self) -> bool {
        self.woken.changed().await.is_ok()
    }
}
