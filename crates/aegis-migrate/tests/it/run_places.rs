//! Places where a runner must not begin, and a disk that is full while it builds.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aegis_devpg::{Options, Server};
use aegis_migrate::change::Phase;
use aegis_migrate::run::RunError;
use aegis_migrate::session::{Direct, SessionError};
use aegis_testkit::{TestDb, process_slot, skipped, wait_until};
use tokio_postgres::NoTls;
use tokio_postgres::config::{Config, Host};

use crate::run::{ran, set, used};

const BOUND: Duration = Duration::from_secs(30);

/// The folder of the server's socket, and the user that the server runs as.
fn socket_and_owner(db: &TestDb) -> (PathBuf, u32, u32) {
    let config: Config = db.url().parse().unwrap();
    let Host::Unix(folder) = &config.get_hosts()[0] else {
        panic!("the test server has a socket");
    };
    let owner = fs::metadata(folder.join(".s.PGSQL.5432"))
        .or_else(|_| fs::metadata(folder))
        .unwrap();
    (folder.clone(), owner.uid(), owner.gid())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn user_name(uid: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&uid.to_string()));
    line.unwrap().split(':').next().unwrap().to_owned()
}

/// A PgBouncer in transaction mode; it ends with this, and with the test's process however that ends.
struct Pooler {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    fn start(program: &Path, db: &TestDb) -> Self {
        let (socket, uid, _) = socket_and_owner(db);
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            path
        };
        let real: Config = db.url().parse().unwrap();
        let users = write("users", format!("\"{}\" \"\"\n", real.get_user().unwrap()));
        let settings = write(
            "pgbouncer.ini",
            format!(
                "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
                 auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 50\n",
                socket.display(),
                real.get_ports()[0],
                users.display()
            ),
        );
        // It refuses to run as root, and only the server's user may enter the folder of the socket.
        let user = if is_root() {
            format!("-u {}", user_name(uid))
        } else {
            String::new()
        };
        let script = format!(
            "{} -q {user} {} & p=$!; cat; kill $p; wait $p",
            program.display(),
            settings.display()
        );
        let child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            port,
            _folder: folder,
        }
    }

    fn config(&self, db: &TestDb) -> Config {
        let real: Config = db.url().parse().unwrap();
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user(real.get_user().unwrap())
            .dbname(real.get_dbname().unwrap());
        config
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // The shell's `cat` ends with its input, and the shell with the pooler.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

fn pgbouncer() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.exists())
}

#[tokio::test]
async fn process_mg_05_and_mg_13_a_pooler_is_refused_at_the_start_and_named() {
    let Some(program) = pgbouncer() else {
        skipped(
            "mg_05_and_mg_13",
            "there is no pgbouncer; apt-get install pgbouncer",
        );
        return;
    };
    let _slot = process_slot();
    let db = used().await;
    let pooler = Pooler::start(&program, &db);
    let config = pooler.config(&db);
    wait_until("the pooler answers", BOUND, async || {
        config.connect(NoTls).await.is_ok()
    })
    .await;
    let error = Direct::connect(&config, NoTls, "aegis migrate/r1/run-1")
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::Pooler { .. }), "{error}");
    let error = RunError::from(error);
    assert_eq!(error.exit_code(), 17);
    let said = error.to_string();
    assert!(
        said.contains(&format!("127.0.0.1:{} is a pooler", pooler.port)),
        "{said}"
    );
    // Detected before anything: no ledger, and no lock on a connection of somebody else.
    let left: i64 = db
        .admin
        .query_one(
            "SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'aegis_migrate') + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(left, 0);
}

#[tokio::test]
async fn process_a_standby_is_refused_and_the_wrong_database_too() {
    let _slot = process_slot();
    let db = TestDb::empty().await;
    let mut config: Config = db.url().parse().unwrap();
    let server = tokio::task::spawn_blocking(|| {
        let server = Server::start(&Options::for_tests()).unwrap();
        let owner = fs::metadata(server.data_dir()).unwrap();
        let signal = server.data_dir().join("standby.signal");
        fs::write(&signal, "").unwrap();
        chown(&signal, Some(owner.uid()), Some(owner.gid())).unwrap();
        server.restart().unwrap();
        server
    })
    .await
    .unwrap();
    let standby: Config = server.url(server.superuser(), "postgres").parse().unwrap();
    let error = Direct::connect(&standby, NoTls, "aegis migrate/r1/run-1")
        .await
        .unwrap_err();
    assert!(matches!(error, SessionError::Standby { .. }), "{error}");
    tokio::task::spawn_blocking(move || server.stop())
        .await
        .unwrap();
    config.dbname("nowhere_at_all");
    let error = Direct::connect(&config, NoTls, "aegis migrate/r1/run-1")
        .await
        .unwrap_err();
    assert_eq!(RunError::from(error).exit_code(), 17);
}

/// A small disk, that is gone with this.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path, megabytes: u32) -> Option<Self> {
        let options = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then(|| Self(folder.to_owned()))
    }

    fn grow(&self, megabytes: u32) {
        let options = format!("remount,size={megabytes}m");
        let status = Command::new("mount")
            .args(["-o", &options])
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

#[tokio::test]
async fn process_a_build_that_fills_the_disk_is_cured_by_the_next_run_when_there_is_room() {
    let _slot = process_slot();
    let db = used().await;
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    let Some(disk) = Disk::mount(&place, 2) else {
        skipped("a_build_that_fills_the_disk", "mounting needs root");
        return;
    };
    let (_, uid, gid) = socket_and_owner(&db);
    chown(&place, Some(uid), Some(gid)).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
    let space = format!("space_{}", db.name());
    db.admin
        .batch_execute(&format!(
            "CREATE TABLESPACE {space} LOCATION '{}'",
            place.display()
        ))
        .await
        .unwrap();
    db.admin
        .batch_execute("INSERT INTO app.users SELECT g, repeat(md5(g::text), 8) FROM generate_series(10, 40000) g")
        .await
        .unwrap();
    let set = set(
        "CREATE TABLE app.x (id int);",
        Some(&format!(
            "CREATE INDEX CONCURRENTLY i ON app.users (name) TABLESPACE {space};"
        )),
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    let error = ran(&db, &set, Phase::Migrate).await.unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    assert!(error.to_string().contains("53100"), "{error}");
    disk.grow(64);
    assert_eq!(ran(&db, &set, Phase::Migrate).await.unwrap().applied, 1);
    let valid: bool = db
        .admin
        .query_one(
            "SELECT indisvalid AND indisready FROM pg_index WHERE indexrelid = 'app.i'::regclass",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(valid);
    for sql in [
        "DROP INDEX app.i".to_owned(),
        "CHECKPOINT".to_owned(),
        format!("DROP TABLESPACE {space}"),
    ] {
        db.admin.batch_execute(&sql).await.unwrap();
    }
}
