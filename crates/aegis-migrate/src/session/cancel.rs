//! Ends what a session is doing, over a connection of its own. The driver's own way needs a host that the driver itself has dialled.
//!
//! Invariant: bounded; who asks hears whether the server could be asked. Whether it has ended is seen on the session.

use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{CancelToken, NoTls};

use super::{SessionError, said};

/// How long asking may take.
const ASK_MAX: Duration = Duration::from_secs(5);

/// The right to end what a session is doing.
#[derive(Clone)]
pub struct Cancel {
    pub(super) token: CancelToken,
    pub(super) to: To,
}

/// Where a session is.
#[derive(Debug, Clone)]
pub(super) enum To {
    /// Host and port.
    Tcp(String, u16),
    /// The socket.
    Unix(PathBuf),
}

impl Cancel {
    /// Asks the server to end it.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn send<M>(&self, tls: M) -> Result<(), SessionError>
    where
        M: MakeTlsConnect<TcpStream>,
    {
        match tokio::time::timeout(ASK_MAX, self.ask(tls)).await {
            Ok(asked) => asked.map_err(|why| self.unreachable(why)),
            Err(_) => Err(self.unreachable(format!("no answer in {} s", ASK_MAX.as_secs()))),
        }
    }

    async fn ask<M>(&self, mut tls: M) -> Result<(), String>
    where
        M: MakeTlsConnect<TcpStream>,
    {
        match &self.to {
            To::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port))
                    .await
                    .map_err(|error| error.to_string())?;
                let connector = tls.make_tls_connect(host).map_err(|error| {
                    Into::<Box<dyn std::error::Error + Send + Sync>>::into(error).to_string()
                })?;
                let asked = self.token.cancel_query_raw(stream, connector).await;
                asked.map_err(|error| said(&error))
            }
            To::Unix(socket) => {
                let stream = UnixStream::connect(socket)
                    .await
                    .map_err(|error| error.to_string())?;
                let asked = self.token.cancel_query_raw(stream, NoTls).await;
                asked.map_err(|error| said(&error))
            }
        }
    }

    fn unreachable(&self, why: String) -> SessionError {
        let place = match &self.to {
            To::Tcp(host, port) => format!("{host}:{port}"),
            To::Unix(socket) => socket.display().to_string(),
        };
        SessionError::Unreachable { place, why }
    }
}
