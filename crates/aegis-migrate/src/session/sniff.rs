//! Reads the process id that the server announces (BackendKeyData), which the client library keeps to itself.
//!
//! A pooler announces a number of its own. So the announced id beside `pg_backend_pid()` tells whether a connection is direct.
//! Source: postgresql.org/docs/18/protocol-message-formats.html, BackendKeyData.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// What was announced, once it was.
#[derive(Debug, Clone, Default)]
pub(super) struct Announced(Arc<Mutex<Option<i32>>>);

impl Announced {
    pub(super) fn pid(&self) -> Option<i32> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, pid: i32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
    }
}

/// A stream that is listened to until the id was announced.
#[derive(Debug)]
pub struct Sniffed<S> {
    stream: S,
    heard: Vec<u8>,
    done: bool,
    announced: Announced,
}

/// Startup answers are short; what is longer is no startup.
const HEARD_MAX: usize = 64 * 1024;

impl<S> Sniffed<S> {
    pub(super) const fn new(stream: S, announced: Announced) -> Self {
        Self {
            stream,
            heard: Vec::new(),
            done: false,
            announced,
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        if self.done {
            return;
        }
        self.heard.extend_from_slice(bytes);
        // A server that accepts TLS says `S` alone: what follows is encrypted, and the inner stream is listened to.
        if self.heard == b"S" || self.heard.len() > HEARD_MAX {
            self.done = true;
            return;
        }
        if self.heard.first() == Some(&b'N') && self.heard.len() > 1 {
            // TLS was refused, and the startup goes on in the clear.
            self.heard.remove(0);
        }
        let mut at = 0;
        while let Some(head) = self.heard.get(at..at + 5) {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let kind = head[0];
            let Some(body) = self.heard.get(at + 5..at + 1 + length) else {
                break;
            };
            match (kind, body) {
                (b'K', [a, b, c, d, ..]) => {
                    self.announced.set(i32::from_be_bytes([*a, *b, *c, *d]));
                    self.done = true;
                    return;
                }
                (b'Z', _) => {
                    self.done = true;
                    return;
                }
                _ => at += 1 + length,
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sniffed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled {
            let heard = buffer.filled()[before..].to_vec();
            self.hear(&heard);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sniffed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Sniffed<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// A TLS connector whose decrypted streams are listened to.
pub(super) struct SniffedTls<T> {
    pub(super) inner: T,
    pub(super) announced: Announced,
}

impl<S, T> TlsConnect<S> for SniffedTls<T>
where
    T: TlsConnect<S>,
    T::Stream: Unpin + Send,
    T::Future: Send + 'static,
    T::Error: Send,
{
    type Stream = Sniffed<T::Stream>;
    type Error = T::Error;
    type Future =
        Pin<Box<dyn Future<Output = Result<Sniffed<T::Stream>, T::Error>> + Send + 'static>>;

    fn connect(self, stream: S) -> Self::Future {
        let announced = self.announced;
        let connecting = self.inner.connect(stream);
        Box::pin(async move { Ok(Sniffed::new(connecting.await?, announced)) })
    }
}

/// A connector for one host, from whatever makes connectors.
pub(super) fn connector<M, S>(
    make: &mut M,
    host: &str,
    announced: &Announced,
) -> Result<SniffedTls<M::TlsConnect>, M::Error>
where
    M: MakeTlsConnect<S>,
{
    Ok(SniffedTls {
        inner: make.make_tls_connect(host)?,
        announced: announced.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Announced, Sniffed};

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn heard(parts: &[&[u8]]) -> Option<i32> {
        let announced = Announced::default();
        let mut sniffed = Sniffed::new((), announced.clone());
        for part in parts {
            sniffed.hear(part);
        }
        announced.pid()
    }

    #[test]
    fn the_announced_id_is_found_however_the_bytes_arrive() {
        let mut startup = message(b'R', &[0, 0, 0, 0]);
        startup.extend(message(b'S', b"server_version\x0018\0"));
        startup.extend(message(b'K', &[0, 0, 10, 7, 1, 2, 3, 4]));
        startup.extend(message(b'Z', b"I"));
        assert_eq!(heard(&[&startup]), Some(2567));
        let single: Vec<&[u8]> = startup.chunks(1).collect();
        assert_eq!(heard(&single), Some(2567));
        // 18 may announce longer keys.
        let long = message(b'K', &[0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(heard(&[&long]), Some(9));
        let mut refused = vec![b'N'];
        refused.extend(&startup);
        assert_eq!(heard(&[b"N", &startup]), Some(2567));
        assert_eq!(heard(&[b"S", &startup]), None);
        assert_eq!(heard(&[&message(b'Z', b"I")]), None);
    }
}
