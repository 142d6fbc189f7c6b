//! Through PgBouncer in transaction mode: everything that does not need a session works unnamed; named statements fail loudly
//! or work, and never lie.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aegis_model::{Class, Outcome, State};
use aegis_store::guarded::{Completion, SaveTo, complete_in};
use aegis_store::transaction::commit_checked;
use aegis_store::worker::{Beat, LeaseConn, Renewed};
use aegis_store::{Config, NewTask, Store, StoreError};
use aegis_testkit::{process_slot, skipped, wait_until};

use crate::support::{Bed, registration, request};

/// A PgBouncer in front of the test's server; it ends with this, and with the test's process however that ends.
struct Pooler {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.exists())
}

/// The folder of the server's socket, from a URL of the test server.
fn socket_of(url: &str) -> Option<PathBuf> {
    let (_, query) = url.split_once('?')?;
    let host = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("host="))?;
    Some(PathBuf::from(host.replace("%2F", "/").replace("%2f", "/")))
}

impl Pooler {
    fn start(program: &Path, socket: &Path) -> Self {
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
        let users = write(
            "users",
            "\"aegis_engine\" \"\"\n\"aegis_lease\" \"\"\n".to_owned(),
        );
        // Two server connections for all clients: what hangs on a session would meet another's at once.
        let settings = write(
            "pgbouncer.ini",
            format!(
                "[databases]\n* = host={} port=5432\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
                 auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 50\n",
                socket.display(),
                users.display()
            ),
        );
        // It refuses to run as root, and only the server's user may enter the folder of the socket.
        let owner = nix::unistd::Uid::from_raw(fs::metadata(socket).unwrap().uid());
        let owner = nix::unistd::User::from_uid(owner).unwrap().unwrap().name;
        let user = if nix::unistd::geteuid().is_root() {
            format!("-u {owner}")
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

    fn url(&self, role: &str, database: &str) -> String {
        format!("postgresql://{role}@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // The shell's `cat` ends with its input, and the shell with the pooler.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

/// A test database, a pooler in front of it, and a store that goes through it.
async fn pooled(name: &str) -> Option<(Bed, Pooler, Store)> {
    let Some(program) = program() else {
        skipped(name, "there is no pgbouncer; apt-get install pgbouncer");
        return None;
    };
    let bed = Bed::new().await;
    let Some(socket) = socket_of(&bed.db.url()) else {
        skipped(name, "the test server has no socket");
        return None;
    };
    let pooler = Pooler::start(&program, &socket);
    wait_until("the pooler's port", Duration::from_secs(20), async || {
        tokio::net::TcpStream::connect(("127.0.0.1", pooler.port))
            .await
            .is_ok()
    })
    .await;
    let config = Config::from_url(&pooler.url("aegis_engine", bed.db.name())).unwrap();
    let store = Store::connect(config.with_pool_size(8)).await.unwrap();
    Some((bed, pooler, store))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_a_transaction_pooler_is_no_hindrance_to_unnamed_statements() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let Some((bed, _pooler, store)) = pooled("unnamed statements through a pooler").await else {
        return;
    };
    // Eight clients over two connections of the server, all at once.
    let clients = (0..8).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let kind = format!("k{n}");
            let new = registration(&[&kind]);
            let worker = crate::support::Worker {
                id: new.worker,
                kinds: vec![("default".to_owned(), kind.clone())],
            };
            store.register(new).await.unwrap();
            let lease = LeaseConn::connect(store.config()).await.unwrap();
            for round in 1..=5 {
                let mut keyed = NewTask::new(&kind, "{}");
                keyed.key = Some(format!("{n} {round}"));
                store
                    .submit_batch(vec![
                        keyed,
                        NewTask::new(&kind, "{}"),
                        NewTask::new(&kind, "{}"),
                    ])
                    .await
                    .unwrap();
                let claims = store.acquire(request(&worker, 3)).await.unwrap().claims;
                assert_eq!(claims.len(), 3);
                let beat = Beat {
                    number: round,
                    executing: 3,
                    claim_ticks: 0,
                    progress_ticks: 0,
                };
                assert!(matches!(
                    lease.renew(worker.id, beat).await.unwrap(),
                    Renewed::Alive { .. }
                ));
                let held: Vec<_> = claims.iter().map(|claim| claim.held).collect();
                assert!(lease.orders(worker.id, &held).await.unwrap().is_empty());
                let saved = store
                    .checkpoint(SaveTo {
                        held: held[0],
                        lane: claims[0].lane,
                        protocol: 1,
                        data: b"{}".to_vec(),
                    })
                    .await
                    .unwrap();
                let mut first = held[0];
                first.rev = saved.applied().unwrap().rev;
                let group = [first, held[1]].map(|held| Completion { held, result: None });
                for answer in store.complete(group.to_vec()).await.unwrap() {
                    assert_eq!(answer, Outcome::Applied(State::Succeeded));
                }
                let mut client = store.handler_pool().get().await.unwrap();
                let transaction = client.transaction().await.unwrap();
                let last = Completion {
                    held: held[2],
                    result: None,
                };
                assert!(complete_in(&*transaction, &last).await.unwrap());
                commit_checked(transaction).await.unwrap();
                store.tick(worker.id).await.unwrap();
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    let done: i64 = bed
        .value("select count(*) from aegis.task_history", &[])
        .await;
    assert_eq!(done, 8 * 5 * 3);
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    let held = bed.dispatch(&claim, Class::Fenced).await;
    bed.settle(held, claim.lane, "fenced").await;
}

/// Poolers older than 1.21, and any that is set so, know nothing of named statements: then `statements=named` is an error of
/// the first statement that meets another client's connection, and never another statement's answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_a_transaction_pooler_makes_named_statements_fail_loudly_or_work() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let Some((bed, pooler, _)) = pooled("named statements through a pooler").await else {
        return;
    };
    let named = format!(
        "{}?statements=named",
        pooler.url("aegis_engine", bed.db.name())
    );
    let store = Store::connect(Config::from_url(&named).unwrap().with_pool_size(8))
        .await
        .unwrap();
    let id = bed.submit("k").await;
    let mut told = Vec::new();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut errors = Vec::new();
                for _ in 0..30 {
                    match store.task(id).await {
                        Ok(task) => assert_eq!(task.expect("another's answer").id, id),
                        Err(StoreError::Database { source }) => {
                            errors.push(source.code().map(|code| code.code().to_owned()));
                        }
                        Err(other) => panic!("{other:?}"),
                    }
                }
                errors
            })
        })
        .collect();
    for client in clients {
        told.extend(client.await.unwrap());
    }
    for code in told {
        // No such statement, or one of that name is there already.
        assert!(
            matches!(code.as_deref(), Some("26000" | "42P05")),
            "{code:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_a_transaction_pooler_is_noticed_by_the_doctor() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let Some((bed, pooler, _store)) = pooled("the doctor through a pooler").await else {
        return;
    };
    let url = pooler.url("aegis_engine", bed.db.name());
    for (url, severity) in [
        (url.clone(), aegis_store::doctor::Severity::Ok),
        (
            format!("{url}?statements=named"),
            aegis_store::doctor::Severity::Critical,
        ),
    ] {
        let config = Config::from_url(&url).unwrap();
        let check = aegis_store::doctor::find("pooler").unwrap();
        let found = aegis_store::doctor::examine(config, Duration::from_secs(20), &[check])
            .await
            .unwrap();
        assert_eq!(found[0].severity, severity, "{url}: {found:?}");
        assert_eq!(found[0].values["pooler_seen"], true, "{found:?}");
    }
}
