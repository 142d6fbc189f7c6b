//! A proxy before the test server that cuts one connection at one frame: what a killed process, or a lost network, is for the server.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aegis_testkit::TestDb;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_postgres::config::{Config, Host};

/// "May we speak TLS?", to which the server says no.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Where it is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The frame never reaches the server.
    Before,
    /// The server gets it, and the connection ends at once.
    After,
    /// The server has answered, and the answer is lost.
    Replied,
}

/// Which frames of the client are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// All.
    Any,
    /// COMMIT.
    Commit,
}

/// A frame of the client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sent {
    /// Its type; a space where it has none.
    pub(crate) kind: char,
    /// The SQL of a query, or of a statement that is prepared.
    pub(crate) sql: String,
}

impl Sent {
    fn of(frame: &[u8], is_startup: bool) -> Self {
        let kind = if is_startup {
            ' '
        } else {
            char::from(frame[0])
        };
        let mut texts = frame.get(5..).unwrap_or_default().split(|byte| *byte == 0);
        let sql = match kind {
            'Q' => texts.next(),
            'P' => texts.nth(1),
            _ => None,
        };
        let sql = String::from_utf8_lossy(sql.unwrap_or_default()).into_owned();
        Self { kind, sql }
    }
}

/// A proxy for one connection.
pub(crate) struct Proxy {
    /// How to connect to it.
    pub(crate) config: Config,
    seen: Arc<AtomicUsize>,
    sent: Arc<Mutex<Vec<Sent>>>,
    forwards: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Cuts at the frame with this number, from 1. Zero: at none.
    pub(crate) async fn before(db: &TestDb, which: Frame, number: usize, place: Place) -> Self {
        let real: Config = db.url().parse().unwrap();
        let Host::Unix(folder) = &real.get_hosts()[0] else {
            panic!("the test server has a socket");
        };
        let socket = folder.join(format!(".s.PGSQL.{}", real.get_ports()[0]));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(port)
            .user(real.get_user().unwrap())
            .dbname(real.get_dbname().unwrap());
        let seen = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&seen);
        let sent = Arc::<Mutex<Vec<Sent>>>::default();
        let hears = Arc::clone(&sent);
        let forwards = tokio::spawn(async move {
            let (client, _) = listener.accept().await.unwrap();
            // However it ends, both sides are closed with it.
            forward(client, socket, which, number, place, &counts, &hears).await;
        });
        Self {
            config,
            seen,
            sent,
            forwards,
        }
    }

    /// Cuts now.
    pub(crate) fn end(&self) {
        self.forwards.abort();
    }

    /// All frames so far, the one at which it was cut as the last.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// Frames that were counted.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

async fn forward(
    client: TcpStream,
    socket: PathBuf,
    which: Frame,
    number: usize,
    place: Place,
    seen: &AtomicUsize,
    sent: &Mutex<Vec<Sent>>,
) -> Option<()> {
    let server = UnixStream::connect(socket).await.ok()?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    // Answers go back by themselves until the cut takes them over.
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let mut answers = tokio::task::JoinSet::new();
    answers.spawn(async move {
        let mut buffer = vec![0; 65_536];
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => return Some(from_server),
                read = from_server.read(&mut buffer) => match read {
                    Ok(length @ 1..) => to_client.write_all(&buffer[..length]).await.ok()?,
                    _ => return None,
                },
            }
        }
    });
    let mut stop = Some(stop);
    let mut is_startup = true;
    loop {
        let frame = frame(&mut from_client, is_startup).await?;
        sent.lock().unwrap().push(Sent::of(&frame, is_startup));
        // A question for TLS comes before the startup, and has no type either.
        is_startup = is_startup && frame == SSL_REQUEST;
        let is_commit = frame.starts_with(b"Q") && frame.ends_with(b"COMMIT\0");
        let counted = which == Frame::Any || is_commit;
        let is_it = counted && seen.fetch_add(1, Ordering::SeqCst) + 1 == number;
        if !is_it {
            to_server.write_all(&frame).await.ok()?;
            continue;
        }
        if place == Place::Replied {
            stop.take()?.send(()).ok()?;
            let mut from_server = answers.join_next().await?.ok()??;
            to_server.write_all(&frame).await.ok()?;
            // As long as "COMMIT" and "ready" at least.
            let mut answer = [0; 18];
            from_server.read_exact(&mut answer).await.ok()?;
            return None;
        }
        if place == Place::After {
            to_server.write_all(&frame).await.ok()?;
        }
        return None;
    }
}

/// One frame of the client; the startup has no type.
async fn frame(from: &mut tokio::net::tcp::OwnedReadHalf, is_startup: bool) -> Option<Vec<u8>> {
    let mut frame = vec![0; if is_startup { 4 } else { 5 }];
    from.read_exact(&mut frame).await.ok()?;
    let length: [u8; 4] = frame[frame.len() - 4..].try_into().ok()?;
    let rest = usize::try_from(u32::from_be_bytes(length))
        .ok()?
        .checked_sub(4)?;
    let head = frame.len();
    frame.resize(head + rest, 0);
    from.read_exact(&mut frame[head..]).await.ok()?;
    Some(frame)
}
