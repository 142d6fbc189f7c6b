//! A line to the database that is really cut: before a statement reaches the server, right behind it, or when the server has
//! answered all of it.
//!
//! It finds a statement by its text, so the client sends statements unnamed. Invariant: an armed cut happens once.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_postgres::config::Host;

/// Every guarded write holds this text of the guard.
pub(super) const GUARDED: &str = "AND aegis.lineage_is((SELECT floor FROM i)";
/// Both acquire calls.
pub(super) const ACQUIRES: &str = "last_request IS DISTINCT FROM";
/// The end of a transaction.
pub(super) const COMMITS: &str = "COMMIT";
/// Asks what became of a write.
pub(super) const READS_BACK: &str = "/* task/read_back */";
/// A person's cancel.
pub(super) const CANCELS: &str = "aegis.cancel_task(";
/// A worker's gate closes.
pub(super) const DRAINS: &str = "draining_at = clock_timestamp()";

/// Where the line is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The statement never reaches the server.
    Before,
    /// The server gets all of it, and the connection ends at once.
    Behind,
    /// The server has answered, and nobody hears of it.
    Answered,
}

/// Cuts that wait, the first of them first, and the server's processes whose connections were cut.
#[derive(Debug, Default)]
struct Cuts {
    armed: VecDeque<(Place, &'static str)>,
    done: VecDeque<i32>,
}

/// A listening line; ends with its runtime.
pub(super) struct Line {
    url: String,
    cuts: Arc<Mutex<Cuts>>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[derive(Clone)]
enum Target {
    Unix(PathBuf),
    Tcp(String, u16),
}

impl Target {
    fn of(config: &tokio_postgres::Config) -> Self {
        let port = config.get_ports().first().copied().unwrap_or(5432);
        match config.get_hosts().first() {
            Some(Host::Unix(folder)) => Self::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            Some(Host::Tcp(host)) => Self::Tcp(host.clone(), port),
            None => Self::Tcp("127.0.0.1".to_owned(), port),
        }
    }

    async fn connect(&self) -> Box<dyn Stream> {
        match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
            Self::Tcp(host, port) => {
                Box::new(TcpStream::connect((host.as_str(), *port)).await.unwrap())
            }
        }
    }
}

impl Line {
    /// A line to the database of a URL.
    pub(super) async fn to(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let target = Target::of(&config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let line = Self {
            url: format!(
                "postgresql://{}@127.0.0.1:{}/{}",
                config.get_user().unwrap(),
                listener.local_addr().unwrap().port(),
                config.get_dbname().unwrap()
            ),
            cuts: Arc::default(),
        };
        let cuts = Arc::clone(&line.cuts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, cuts) = (target.clone(), Arc::clone(&cuts));
                tokio::spawn(async move { carry(client, target.connect().await, &cuts).await });
            }
        });
        line
    }

    /// The database's URL by this line.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The next statement with this text is cut there, after those that were armed before.
    pub(super) fn arm(&self, place: Place, text: &'static str) {
        self.cuts.lock().unwrap().armed.push_back((place, text));
    }

    /// How many armed cuts still wait.
    pub(super) fn armed(&self) -> usize {
        self.cuts.lock().unwrap().armed.len()
    }

    /// The server's process that was cut off. Panics when nothing was cut: the test would prove nothing.
    pub(super) fn cut_off(&self) -> i32 {
        let mut cuts = self.cuts.lock().unwrap();
        assert!(cuts.armed.is_empty(), "not cut: {:?}", cuts.armed);
        cuts.done.pop_front().unwrap()
    }
}

async fn carry(client: TcpStream, server: Box<dyn Stream>, cuts: &Mutex<Cuts>) {
    client.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut process = 0;
    let mut ends = None;
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(n @ 1..) = read else { return };
                let asked = &asked[..n];
                if ends.is_none() {
                    ends = matching(cuts, asked, process);
                }
                if ends == Some(Place::Before) || to_server.write_all(asked).await.is_err() {
                    return;
                }
                // A Sync, or the end of a query: now the server has all of it.
                let whole = asked.ends_with(b"S\0\0\0\x04") || asked.ends_with(b"COMMIT\0");
                if ends == Some(Place::Behind) && whole {
                    return;
                }
            }
            read = from_server.read(&mut answered) => {
                let Ok(n @ 1..) = read else { return };
                let answered = &answered[..n];
                if process == 0 {
                    process = key_data(answered).unwrap_or(0);
                }
                if ends == Some(Place::Answered) && has(answered, b"Z\0\0\0\x05") {
                    return;
                }
                if ends.is_none() && to_client.write_all(answered).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Is this what the first armed cut waits for? Then it is done.
fn matching(cuts: &Mutex<Cuts>, asked: &[u8], process: i32) -> Option<Place> {
    let mut cuts = cuts.lock().unwrap();
    let (place, text) = *cuts.armed.front()?;
    if !has(asked, text.as_bytes()) {
        return None;
    }
    cuts.armed.pop_front();
    cuts.done.push_back(process);
    Some(place)
}

/// The process that the server names when a connection begins (`BackendKeyData`).
fn key_data(bytes: &[u8]) -> Option<i32> {
    let found = bytes
        .windows(5)
        .position(|five| five == b"K\0\0\0\x0c" || five == b"K\0\0\0\x28")?;
    let process = bytes.get(found + 5..found + 9)?;
    Some(i32::from_be_bytes(process.try_into().ok()?))
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
