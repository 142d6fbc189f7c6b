//! A PgBouncer in transaction mode between one worker and the proxy; none where it is not installed, which the report says.
//!
//! Invariant: it ends with the drill however that ends, because its shell waits for the end of a pipe from it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::unistd::{Uid, User, geteuid};
use tokio::process::{Child, ChildStdin, Command};

use crate::error::DrillError;

/// As the report calls it.
pub(super) const NAME: &str = "pgbouncer_in_transaction_mode";
/// Two clients of one pool meet each other's sessions at once.
const SCRIPT: &str = r#""$1" -q $3 "$2" & p=$!; cat; kill $p; wait $p"#;

/// A running pooler; dropping it ends it.
pub(super) struct Pooler {
    port: u16,
    _shell: Child,
    _held: Option<ChildStdin>,
}

impl Pooler {
    /// Starts one before a port of loopback; `None`: it is not installed.
    ///
    /// # Errors
    /// It is there and cannot be started.
    pub(super) fn start(upstream: u16, socket_folder: &Path) -> Result<Option<Self>, DrillError> {
        let Some(program) = program() else {
            return Ok(None);
        };
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|listener| listener.local_addr())
            .map_err(DrillError::system("find a free port"))?
            .port();
        // The one folder that the server's user surely enters, and that goes with the server.
        let users = socket_folder.join("pgbouncer.users");
        write(&users, "\"aegis_engine\" \"\"\n\"aegis_lease\" \"\"\n")?;
        let settings = socket_folder.join("pgbouncer.ini");
        write(
            &settings,
            &format!(
                "[databases]\n* = host=127.0.0.1 port={upstream}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
                 unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 3\n\
                 max_client_conn = 50\nserver_login_retry = 0.1\n",
                users.display()
            ),
        )?;
        let owner = fs::metadata(socket_folder)
            .map_err(DrillError::file("look at", socket_folder))?
            .uid();
        // It refuses to run as root; the server's user is there for that.
        let user = match User::from_uid(Uid::from_raw(owner)) {
            Ok(Some(user)) if geteuid().is_root() => format!("-u {}", user.name),
            _ => String::new(),
        };
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "aegis-drill"])
            .arg(program)
            .arg(&settings)
            .arg(user)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(DrillError::system("start pgbouncer"))?;
        let held = shell.stdin.take();
        Ok(Some(Self {
            port,
            _shell: shell,
            _held: held,
        }))
    }

    /// The URL of a database for a role.
    pub(super) fn url(&self, role: &str, database: &str) -> String {
        format!("postgresql://{role}@127.0.0.1:{}/{database}", self.port)
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Debian puts it where only root looks.
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.exists())
}

/// For everybody to read: the pooler runs as another user.
fn write(path: &Path, text: &str) -> Result<(), DrillError> {
    fs::write(path, text).map_err(DrillError::file("write", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
        .map_err(DrillError::file("open for reading", path))
}
