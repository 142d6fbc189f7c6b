//! A proxy before PostgreSQL that cuts a connection at a statement's frames: before they are forwarded, after, or when the
//! server has answered.
//!
//! Invariants: only whole batches are forwarded (`frames`); a cut happens once for each time that it is armed, and is
//! counted when it happens. Must never keep an accepted connection whose server is gone.

mod frames;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{oneshot, watch};

use crate::error::DrillError;
pub use frames::{Batch, Does, Frames};

/// Longer than two leases of the drill's workers.
const LATE: Duration = Duration::from_secs(5);

/// Where a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The batch never reaches the server.
    Before,
    /// The server gets it, and the connection ends at once.
    After,
    /// The server has answered all of it, and the answer is lost.
    Replied,
    /// The batch never reaches the server, and the connection stays open in silence.
    Silent,
    /// Nothing is cut: the server gets it five seconds late, as from a process that was frozen.
    Late,
    /// Nothing is cut: the server gets it when the drill says so, after it has stopped the process that sent it.
    Frozen,
}

/// A statement that is held for a process that will be stopped. Dropping it lets the statement go on.
#[derive(Debug)]
pub struct HeldStatement {
    /// What the process calls itself.
    pub name: String,
    /// Says that it may go on.
    pub go_on: oneshot::Sender<()>,
}

/// What is held for the drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A statement that takes lost tasks back.
    Housekeeping,
    /// A statement that asks for tasks.
    Claim,
}

impl Holds {
    const fn name(self) -> &'static str {
        match self {
            Self::Housekeeping => "housekeeping",
            Self::Claim => "claim",
        }
    }

    fn is(self, batch: &Batch) -> bool {
        match self {
            Self::Housekeeping => batch.does == Does::Housekeep,
            Self::Claim => batch.claims,
        }
    }
}

/// Who waits for what to be held.
#[derive(Debug)]
struct Wanted {
    what: Holds,
    /// Of this client only.
    of: Option<String>,
    hears: oneshot::Sender<HeldStatement>,
}

/// What was cut: the place, and whether it was a COMMIT or a single statement.
pub type Cuts = BTreeMap<(Place, &'static str), u64>;

#[derive(Debug, Default)]
struct Armed {
    next: Vec<(Place, Does)>,
    done: Cuts,
    /// Who hears of the next statement that is held.
    wanted: Option<Wanted>,
}

/// A listening proxy; ends with the runtime.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    armed: Arc<Mutex<Armed>>,
    /// The server's socket.
    server: Arc<Mutex<PathBuf>>,
    /// Connections accepted before this number changed are cut.
    generation: watch::Sender<u64>,
}

impl Proxy {
    /// Before the server with this socket.
    ///
    /// # Errors
    /// Loopback cannot be listened on.
    pub async fn before(socket: PathBuf) -> Result<Self, DrillError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(DrillError::system("listen on 127.0.0.1"))?;
        let address = listener
            .local_addr()
            .map_err(DrillError::system("listen on 127.0.0.1"))?;
        let proxy = Self {
            port: address.port(),
            armed: Arc::default(),
            server: Arc::new(Mutex::new(socket)),
            generation: watch::channel(0).0,
        };
        let (armed, generation) = (Arc::clone(&proxy.armed), proxy.generation.subscribe());
        let server = Arc::clone(&proxy.server);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (armed, mut cut) = (Arc::clone(&armed), generation.clone());
                cut.mark_unchanged();
                let socket = lock(&server).clone();
                tokio::spawn(async move {
                    // A server that is down ends the client's connection, as without a proxy.
                    let Ok(server) = UnixStream::connect(&socket).await else {
                        return;
                    };
                    tokio::select! {
                        () = carry(client, server, &armed) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Ok(proxy)
    }

    /// The URL of a database for a role, through the proxy.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgresql://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next batch that does this is cut there.
    pub fn arm(&self, place: Place, does: Does) {
        self.lock().next.push((place, does));
    }

    /// The next such statement, of this client or of any that has a name, is held, and whoever waits here is told. Only one
    /// waits: who wanted something before is forgotten.
    pub fn hold(&self, what: Holds, of: Option<&str>) -> oneshot::Receiver<HeldStatement> {
        let (hears, told) = oneshot::channel();
        let of = of.map(str::to_owned);
        self.lock().wanted = Some(Wanted { what, of, hears });
        told
    }

    /// Another server answers at this address from now on; who is connected to the one before is cut.
    pub fn point_at(&self, socket: PathBuf) {
        *lock(&self.server) = socket;
        self.cut_all();
    }

    /// Cuts all connections that are open now.
    pub fn cut_all(&self) {
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// What was cut so far.
    pub fn cuts(&self) -> Cuts {
        self.lock().done.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Armed> {
        lock(&self.armed)
    }
}

fn lock<T>(one: &Mutex<T>) -> MutexGuard<'_, T> {
    one.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds a statement until it may go on, when somebody wants such a one of this client.
async fn hold(armed: &Mutex<Armed>, batch: &Batch, name: Option<&str>) {
    let Some(name) = name else { return };
    let wants =
        |one: &mut Wanted| one.what.is(batch) && one.of.as_deref().is_none_or(|of| of == name);
    let Some(Wanted { what, hears, .. }) = lock(armed).wanted.take_if(wants) else {
        return;
    };
    let (go_on, goes_on) = oneshot::channel();
    let held = HeldStatement {
        name: name.to_owned(),
        go_on,
    };
    if hears.send(held).is_ok() && goes_on.await.is_ok() {
        let done = &mut lock(armed).done;
        *done.entry((Place::Frozen, what.name())).or_default() += 1;
    }
}

/// Is this the batch that an armed cut waits for?
fn matching(armed: &Mutex<Armed>, batch: &Batch) -> Option<Place> {
    let mut armed = lock(armed);
    let index = armed
        .next
        .iter()
        .position(|(_, does)| *does == batch.does)?;
    let (place, does) = armed.next.remove(index);
    let what = match does {
        Does::Commit => "commit",
        Does::Housekeep => "housekeeping",
        Does::Write | Does::Else => "statement",
    };
    *armed.done.entry((place, what)).or_default() += 1;
    Some(place)
}

async fn carry(client: TcpStream, server: UnixStream, armed: &Mutex<Armed>) {
    client.set_nodelay(true).ok();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut frames = Frames::default();
    let mut swallow = false;
    let mut name: Option<String> = None;
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(n @ 1..) = read else { return };
                for batch in frames.take(&asked[..n]) {
                    if let Some(told) = batch.application_name() {
                        name = Some(told.to_owned());
                    }
                    hold(armed, &batch, name.as_deref()).await;
                    let cut = matching(armed, &batch);
                    match cut {
                        Some(Place::Before) => return,
                        Some(Place::Silent) => {
                            // Until the client gives it up.
                            while matches!(from_client.read(&mut asked).await, Ok(1..)) {}
                            return;
                        }
                        Some(Place::Late) => tokio::time::sleep(LATE).await,
                        _ => {}
                    }
                    if to_server.write_all(&batch.bytes).await.is_err() { return }
                    match cut {
                        Some(Place::After) => return,
                        Some(Place::Replied) => swallow = true,
                        _ => {}
                    }
                }
            }
            read = from_server.read(&mut answered) => {
                let Ok(n @ 1..) = read else { return };
                if swallow {
                    // ReadyForQuery: the server has done all of it.
                    if answered[..n].windows(5).any(|five| five == b"Z\0\0\0\x05") { return }
                } else if to_client.write_all(&answered[..n]).await.is_err() { return }
            }
        }
    }
}
