//! A proxy between a worker and PostgreSQL that loses answers, cuts connections, and goes silent.
//!
//! It looks for the text of a statement in what a client sends, so the client must send statements unnamed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio_postgres::config::Host;

/// What happens to the next request that contains a text.
#[derive(Clone, Debug)]
pub(crate) enum Cut {
    /// It never reaches the server; the connection ends.
    Request(&'static str),
    /// The server executes it; its answer never comes back; the connection ends.
    Answer(&'static str),
}

/// The whole line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Up,
    /// Connections stay, nothing gets through.
    Silent,
}

/// A listening proxy; ends with the test.
pub(crate) struct Proxy {
    port: u16,
    user: String,
    database: String,
    cut: Arc<Mutex<Option<Cut>>>,
    line: watch::Sender<Line>,
    /// Connections opened before this many are half-open: nothing gets through, and nobody says so.
    frozen: watch::Sender<usize>,
    opened: Arc<AtomicUsize>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[derive(Clone)]
enum Target {
    Unix(PathBuf),
    Tcp(String, u16),
}

impl Proxy {
    /// A proxy before the database of a URL.
    pub(crate) async fn before(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let target = match config.get_hosts().first() {
            Some(Host::Unix(folder)) => Target::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            Some(Host::Tcp(host)) => Target::Tcp(host.clone(), port),
            None => Target::Tcp("127.0.0.1".to_owned(), port),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            user: config.get_user().unwrap().to_owned(),
            database: config.get_dbname().unwrap().to_owned(),
            cut: Arc::default(),
            line: watch::channel(Line::Up).0,
            frozen: watch::channel(0).0,
            opened: Arc::default(),
        };
        let (cut, line) = (Arc::clone(&proxy.cut), proxy.line.subscribe());
        let (frozen, opened) = (proxy.frozen.subscribe(), Arc::clone(&proxy.opened));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server: Box<dyn Stream> = match &target {
                    Target::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
                    Target::Tcp(host, port) => {
                        Box::new(TcpStream::connect((host.as_str(), *port)).await.unwrap())
                    }
                };
                let number = opened.fetch_add(1, Ordering::SeqCst);
                let carried = carry(client, server, Arc::clone(&cut), line.clone());
                let mut frozen = frozen.clone();
                tokio::spawn(async move {
                    tokio::pin!(carried);
                    let froze = async { frozen.wait_for(|frozen| number < *frozen).await.is_ok() };
                    tokio::select! {
                        () = &mut carried => {}
                        // Neither read, nor written, nor closed.
                        _ = froze => std::future::pending().await,
                    }
                });
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!(
            "postgresql://{}@127.0.0.1:{}/{}",
            self.user, self.port, self.database
        )
    }

    /// Arms one cut.
    pub(crate) fn cut(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }

    /// Has the armed cut happened?
    pub(crate) fn was_cut(&self) -> bool {
        self.cut.lock().unwrap().is_none()
    }

    /// Every connection so far is half-open from now on; new ones work.
    pub(crate) fn freeze(&self) {
        self.frozen.send_replace(self.opened.load(Ordering::SeqCst));
    }

    pub(crate) fn line(&self, line: Line) {
        self.line.send_replace(line);
    }
}

async fn carry(
    client: TcpStream,
    server: Box<dyn Stream>,
    cut: Arc<Mutex<Option<Cut>>>,
    mut line: watch::Receiver<Line>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut swallow = false;
    loop {
        if line.wait_for(|line| *line == Line::Up).await.is_err() {
            return;
        }
        tokio::select! {
            // Looked at before every piece, so that what arrives in silence stays unread.
            biased;
            changed = line.changed() => if changed.is_err() { return },
            read = from_client.read(&mut asked) => {
                let Ok(n @ 1..) = read else { return };
                match matching(&cut, &asked[..n]) {
                    Some(Cut::Request(_)) => return,
                    Some(Cut::Answer(_)) => swallow = true,
                    None => {}
                }
                if to_server.write_all(&asked[..n]).await.is_err() { return }
            }
            read = from_server.read(&mut answered) => {
                let Ok(n @ 1..) = read else { return };
                if swallow {
                    // ReadyForQuery: the server has done all of it.
                    if answered[..n].windows(5).any(|five| five == b"Z\0\0\0\x05") { return }
                    continue;
                }
                if to_client.write_all(&answered[..n]).await.is_err() { return }
            }
        }
    }
}

fn matching(cut: &Mutex<Option<Cut>>, bytes: &[u8]) -> Option<Cut> {
    let mut armed = cut.lock().unwrap();
    let (Cut::Request(text) | Cut::Answer(text)) = armed.as_ref()?;
    let found = bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes());
    if found { armed.take() } else { None }
}
