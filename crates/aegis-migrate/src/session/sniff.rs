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

/// Startup answers are short; what is longer is no startup.
const HEARD_MAX: usize = 64 * 1024;
/// A message's kind and length.
const HEAD_BYTES: usize = 5;

/// What a server says first, in pieces of any length.
#[derive(Debug, Default)]
struct Startup {
    /// What was heard and is no whole message yet.
    heard: Vec<u8>,
    heard_bytes: usize,
    /// The answer about TLS, where there is one, is behind us.
    is_in_messages: bool,
    done: bool,
}

impl Startup {
    /// The id, in the piece that completes its message.
    fn hear(&mut self, bytes: &[u8]) -> Option<i32> {
        if self.done {
            return None;
        }
        let taken = bytes.len().min(HEARD_MAX - self.heard_bytes);
        self.heard.extend_from_slice(&bytes[..taken]);
        self.heard_bytes += taken;
        let pid = self.messages();
        if self.done || self.heard_bytes == HEARD_MAX {
            self.done = true;
            self.heard = Vec::new();
        }
        pid
    }

    fn messages(&mut self) -> Option<i32> {
        if !self.is_in_messages {
            match self.heard[..] {
                // The first byte of a length is 0: a message, and no answer about TLS.
                [_, 0, ..] => {}
                // TLS was refused, and the startup goes on in the clear.
                [b'N', _, ..] => drop(self.heard.remove(0)),
                // TLS was accepted: what follows is encrypted, and the inner stream is listened to. Or nothing that is known.
                [_, _, ..] => {
                    self.done = true;
                    return None;
                }
                _ => return None,
            }
            self.is_in_messages = true;
        }
        while let Some((&[kind, a, b, c, d], rest)) = self.heard.split_first_chunk::<HEAD_BYTES>() {
            // The length counts itself.
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            let Some(body_bytes) = length.checked_sub(HEAD_BYTES - 1) else {
                self.done = true;
                return None;
            };
            let body = rest.get(..body_bytes)?;
            match (kind, body) {
                (b'K', [a, b, c, d, ..]) => {
                    self.done = true;
                    return Some(i32::from_be_bytes([*a, *b, *c, *d]));
                }
                (b'Z', _) => {
                    self.done = true;
                    return None;
                }
                _ => drop(self.heard.drain(..HEAD_BYTES + body_bytes)),
            }
        }
        None
    }
}

/// The process id that a server announces in what it says first, which arrives in these pieces.
pub fn announced<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<i32> {
    let mut startup = Startup::default();
    pieces.into_iter().find_map(|piece| startup.hear(piece))
}

/// A stream that is listened to until the id was announced.
#[derive(Debug)]
pub struct Sniffed<S> {
    stream: S,
    startup: Startup,
    announced: Announced,
}

impl<S> Sniffed<S> {
    pub(super) fn new(stream: S, announced: Announced) -> Self {
        Self {
            stream,
            startup: Startup::default(),
            announced,
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        if let Some(pid) = self.startup.hear(bytes) {
            self.announced.set(pid);
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
            self.hear(&buffer.filled()[before..]);
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
    use super::{HEARD_MAX, Startup, announced};

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn heard(parts: &[&[u8]]) -> Option<i32> {
        announced(parts.iter().copied())
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
    #[test]
    fn pieces_decide_nothing() {
        let mut said = message(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]);
        // A notice first: its length begins with 0, as no answer about TLS is followed by.
        for first in [b"N\0\0\0\x05\0".as_slice(), b"S\0\0\0\x06a\0", b"N"] {
            let whole = [first, &said].concat();
            let single: Vec<&[u8]> = whole.chunks(1).collect();
            assert_eq!(heard(&[&whole]), Some(7), "{first:?}");
            assert_eq!(heard(&single), Some(7), "{first:?}");
        }
        // TLS was accepted, and what follows looks like a message by chance.
        said.insert(0, b'S');
        said[1] = 0x16;
        let single: Vec<&[u8]> = said.chunks(1).collect();
        assert_eq!((heard(&[&said]), heard(&single)), (None, None));
    }

    #[test]
    fn what_is_no_startup_is_given_up_and_kept_by_nobody() {
        let mut startup = Startup::default();
        assert_eq!(startup.hear(b"R\0\0\0\x03"), None);
        assert!(startup.done, "a length that does not count itself");
        let mut startup = Startup::default();
        for _ in 0..HEARD_MAX {
            assert_eq!(startup.hear(b"R\0\x7f\xff\xff"), None);
        }
        assert!(startup.done && startup.heard.is_empty());
    }
}
