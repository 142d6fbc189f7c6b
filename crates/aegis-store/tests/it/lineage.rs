//! Which life of a database a claim belongs to: promotion, restore, upgrade, copy; and what adopting one does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aegis_devpg::{Data, Options, Server};
use aegis_model::{FenceReason, Held, Lineage, Outcome, State};
use aegis_schema::install;
use aegis_store::guarded::Completion;
use aegis_store::worker::{LeaseConn, Order};
use aegis_store::{AcquireRequest, Claim, Config, NewTask, Store, StoreError};
use aegis_testkit::{process_slot, skipped, wait_until};
use tokio_postgres::NoTls;
use uuid::Uuid;

use crate::support::{Bed, Worker, registration, request};

/// A server of the test's own with the schema in its database `postgres`.
struct Own {
    server: Server,
    store: Store,
}

impl Own {
    async fn start(data: Data, installs: bool) -> Self {
        let options = Options {
            data,
            ..Options::for_tests()
        };
        let server = tokio::task::spawn_blocking(move || Server::start(&options))
            .await
            .unwrap()
            .unwrap();
        if installs {
            let owner = Config::from_url(&server.url("postgres", "postgres")).unwrap();
            install(&owner, 2).await.unwrap();
        }
        let engine = Config::from_url(&server.url("aegis_engine", "postgres")).unwrap();
        let store = Store::connect(engine.with_pool_size(2)).await.unwrap();
        Self { server, store }
    }

    async fn value<T: tokio_postgres::types::FromSqlOwned>(&self, sql: &str) -> T {
        let url = self.server.url("postgres", "postgres");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        match client.query_one(sql, &[]).await {
            Ok(row) => row.get(0),
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }

    async fn worker(&self) -> Worker {
        let new = registration(&["k"]);
        let worker = Worker {
            id: new.worker,
            kinds: vec![("default".to_owned(), "k".to_owned())],
        };
        self.store.register(new).await.unwrap();
        worker
    }

    async fn claim(&self, worker: &Worker) -> Claim {
        self.store.submit(NewTask::new("k", "{}")).await.unwrap();
        let acquired = self.store.acquire(request(worker, 1)).await.unwrap();
        acquired.claims.into_iter().next().unwrap()
    }

    async fn stop(self) {
        tokio::task::spawn_blocking(|| self.server.stop())
            .await
            .unwrap();
    }

    fn restart(&self) {
        tokio::task::block_in_place(|| self.server.restart()).unwrap();
    }
}

async fn complete(store: &Store, held: Held) -> Outcome<State> {
    let one = Completion { held, result: None };
    store.complete(vec![one]).await.unwrap().remove(0)
}

async fn orders(store: &Store, held: Held) -> Vec<Order> {
    let conn = LeaseConn::connect(store.config()).await.unwrap();
    let orders = conn.orders(held.owner, &[held]).await.unwrap();
    orders.into_iter().map(|(_, _, order)| order).collect()
}

/// Nothing is acquired until somebody adopts the database; then claims stand above all of before.
async fn closed_until_adopted(store: &Store, worker: &Worker) -> Claim {
    store.submit(NewTask::new("k", "{}")).await.unwrap();
    let acquire = async |request: AcquireRequest| store.acquire(request).await;
    let refused = acquire(request(worker, 1)).await.unwrap_err();
    assert!(matches!(refused, StoreError::NotAdopted), "{refused:?}");
    assert!(refused.to_string().contains("aegis db adopt"), "{refused}");
    let before = store.database_status().await.unwrap().floor;
    assert_eq!(store.adopt("ann", "restored").await.unwrap(), before + 1);
    let acquired = acquire(request(worker, 1)).await.unwrap();
    let claim = acquired.claims.into_iter().next().unwrap();
    assert_eq!(claim.held.lineage.floor, before + 1);
    claim
}

/// A folder that the server's user may enter.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    folder
}

/// pg_upgrade, on two real clusters: another system identifier, and the timeline begins anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn m04_a_process_of_pg_upgrade_gives_another_life_that_has_to_be_adopted() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let folder = open_folder();
    let (old_path, new_path) = (folder.path().join("old"), folder.path().join("new"));
    let old = Own::start(Data::Kept(old_path.clone()), true).await;
    let binaries = old.server.binaries().to_path_buf();
    if !binaries.join("pg_upgrade").exists() {
        skipped("m04", "there is no pg_upgrade beside postgres");
        return;
    }
    // On its second timeline, as after a failover.
    promote(&old).await;
    let worker = old.worker().await;
    let claim = old.claim(&worker).await;
    assert_eq!(claim.held.lineage.timeline, 2);
    let identifier = "select system_identifier from pg_control_system()";
    let before: i64 = old.value(identifier).await;
    let run_as = old.server.run_as().map(str::to_owned);
    old.stop().await;
    let options = Options {
        data: Data::Kept(new_path.clone()),
        ..Options::for_tests()
    };
    tokio::task::block_in_place(|| {
        Server::start(&options).unwrap().stop();
        upgrade(
            &binaries,
            folder.path(),
            &old_path,
            &new_path,
            run_as.as_deref(),
        );
    });
    let new = Own::start(Data::Kept(new_path), false).await;
    let after: i64 = new.value(identifier).await;
    assert_ne!(
        before, after,
        "the fact has changed: the identifier is kept"
    );
    assert_eq!(
        new.value::<i32>("select aegis.timeline()").await,
        1,
        "the fact has changed: the timeline goes on"
    );
    // Claimed under the old life: its result is refused, and its row goes back as nobody's fault.
    assert_eq!(
        complete(&new.store, claim.held).await,
        Outcome::Fenced(FenceReason::Lineage)
    );
    let renewed = closed_until_adopted(&new.store, &worker).await;
    assert!(complete(&new.store, renewed.held).await.applied().is_some());
    assert_eq!(
        complete(&new.store, claim.held).await,
        Outcome::Fenced(FenceReason::Lineage)
    );
    new.stop().await;
}

fn upgrade(binaries: &Path, folder: &Path, old: &Path, new: &Path, run_as: Option<&str>) {
    let work = folder.join("work");
    fs::create_dir(&work).unwrap();
    let mut command = Command::new(binaries.join("pg_upgrade"));
    command
        .current_dir(&work)
        .args(["-U", "postgres", "-b"])
        .arg(binaries)
        .arg("-B")
        .arg(binaries)
        .arg("-d")
        .arg(old.join("data"))
        .arg("-D")
        .arg(new.join("data"));
    if let Some(user) = run_as {
        let user = nix::unistd::User::from_name(user).unwrap().unwrap();
        nix::unistd::chown(&work, Some(user.uid), Some(user.gid)).unwrap();
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "pg_upgrade: {}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Ends recovery on a new timeline, as the promotion of a standby does.
async fn promote(own: &Own) {
    let before: i32 = own.value("select aegis.timeline()").await;
    let url = own.server.url("postgres", "postgres");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("alter system set restore_command = 'false'")
        .await
        .unwrap();
    fs::write(own.server.data_dir().join("recovery.signal"), "").unwrap();
    own.restart();
    wait_until("the promotion", Duration::from_secs(30), async || {
        let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await else {
            return false;
        };
        tokio::spawn(connection);
        let row = client.query_one("select pg_is_in_recovery()", &[]).await;
        row.is_ok_and(|row| !row.get::<_, bool>(0))
    })
    .await;
    assert_eq!(
        own.value::<i32>("select aegis.timeline()").await,
        before + 1
    );
}

/// A promotion may have lost the newest claims: whoever claimed before it writes no more, nobody is charged, and new claims
/// stand above.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn rl_42_a_promoted_process_of_the_server_fences_the_claims_of_before() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let own = Own::start(Data::Temporary, true).await;
    let worker = own.worker().await;
    let claim = own.claim(&worker).await;
    promote(&own).await;
    assert_eq!(
        complete(&own.store, claim.held).await,
        Outcome::Fenced(FenceReason::Lineage)
    );
    assert_eq!(orders(&own.store, claim.held).await, [Order::Lost]);
    own.value::<i64>("with x as (update aegis.housekeeping set next_at = '-infinity' returning 1) select count(*) from x")
        .await;
    assert_eq!(
        own.store.tick(worker.id).await.unwrap().reaped,
        1,
        "stranded under a live worker"
    );
    let acquired = own.store.acquire(request(&worker, 1)).await.unwrap();
    let again = &acquired.claims[0];
    assert_eq!(
        (again.held.task, again.interruptions, again.crashes),
        (claim.held.task, 1, 0)
    );
    assert!(again.held.lineage > claim.held.lineage);
    assert!(complete(&own.store, again.held).await.applied().is_some());
    own.stop().await;
}

/// A restored snapshot of the data folder looks like the database that it was: only a worker that knows more can tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn m05_a_restored_process_of_the_server_is_noticed_by_whoever_holds_more() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let folder = open_folder();
    let (path, copy) = (folder.path().join("first"), folder.path().join("restored"));
    let first = Own::start(Data::Kept(path.clone()), true).await;
    let worker = first.worker().await;
    let task = first
        .store
        .submit(NewTask::new("k", "{}"))
        .await
        .unwrap()
        .task;
    let life =
        "select format('%s %s', system_identifier, aegis.timeline()) from pg_control_system()";
    let before: String = first.value(life).await;
    first.stop().await;
    let copied = Command::new("cp")
        .arg("-a")
        .arg(&path)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(copied.success());
    let first = Own::start(Data::Kept(path), false).await;
    let acquired = first.store.acquire(request(&worker, 1)).await.unwrap();
    let held = acquired.claims[0].held;
    assert_eq!((held.task, held.epoch), (task, 1));
    first.stop().await;

    let restored = Own::start(Data::Kept(copy), false).await;
    assert_eq!(
        restored.value::<String>(life).await,
        before,
        "the fact has changed: a snapshot has another life"
    );
    assert_eq!(orders(&restored.store, held).await, [Order::Regressed]);
    let status = restored.store.database_status().await.unwrap();
    assert!(status.closed_at.is_some());
    assert!(status.closed_why.unwrap().contains(&task.to_string()));
    let claim = closed_until_adopted(&restored.store, &worker).await;
    assert!(
        restored
            .store
            .database_status()
            .await
            .unwrap()
            .closed_at
            .is_none()
    );
    // The same epoch again, in another life: above the one that was lost, wherever fencing tokens are compared.
    assert!(claim.held.lineage > held.lineage);
    assert!(complete(&restored.store, held).await.applied().is_none());
    restored.stop().await;
}

/// A copy under another identifier (dump and restore, a clone): simulated by the stored identifier.
#[tokio::test]
async fn a_copy_of_a_database_writes_nothing_until_it_is_adopted() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let claim = bed.claim(&worker).await;
    bed.sql("update aegis.database set system_identifier = system_identifier - 1")
        .await;
    assert_eq!(
        bed.complete(claim.held).await,
        Outcome::Fenced(FenceReason::Lineage)
    );
    assert_eq!(orders(&bed.store, claim.held).await, [Order::Lost]);
    let other = closed_until_adopted(&bed.store, &worker).await;
    assert_eq!(
        bed.complete(claim.held).await,
        Outcome::Fenced(FenceReason::Lineage)
    );
    assert_eq!(bed.tick(&worker).await.reaped, 1);
    assert_eq!(
        bed.causes(claim.held.task).await,
        ["fenced", "fenced", "interruption"]
    );
    assert!(bed.complete(other.held).await.applied().is_some());
}

/// Fencing tokens are compared by life first, then by epoch.
#[test]
fn a_newer_life_stands_above_every_epoch() {
    let life = |floor, timeline| Lineage { floor, timeline };
    assert!((life(1, 1), 1) > (life(0, 9), 99));
    assert!((life(0, 2), 1) > (life(0, 1), 99));
}

/// A worker whose lease was lost registers anew; a result that it had ready is sent under the claim's worker, and refused.
/// Under the new registration it would pass a guard that compares the process's newest worker only.
#[tokio::test]
async fn m18_a_result_from_before_a_new_registration_is_refused() {
    let bed = Bed::new().await;
    let old = bed.worker(&["k"]).await;
    let claim = bed.claim(&old).await;
    bed.expire(&old).await;
    let new = bed
        .worker_with(&["k"], |r| r.predecessor = Some(old.id))
        .await;
    // Before anybody reaps the row: it is still running at the claim's epoch and rev.
    assert_eq!(
        bed.live::<i64>(claim.held.task, "epoch").await,
        claim.held.epoch
    );
    assert_eq!(
        bed.complete(claim.held).await,
        Outcome::Fenced(FenceReason::Lease)
    );
    let under_the_new_one = Held {
        owner: new.id,
        ..claim.held
    };
    assert_eq!(
        bed.complete(under_the_new_one).await,
        Outcome::Fenced(FenceReason::Owner)
    );
    assert_eq!(bed.state(claim.held.task).await, State::Running);
    // The fact: without the owner in the guard everything matches, the new worker's lease included.
    let passes: bool = bed
        .value(
            "select exists (select from aegis.task t, aegis.lineage() i where t.id = $1 and t.claim_id = $2 and t.epoch = $3 and t.rev = $4
                and t.state = 2 and t.floor = i.floor and t.timeline = i.timeline and aegis.lease_live($5))",
            &[&claim.held.task, &claim.held.claim_id, &claim.held.epoch, &claim.held.rev, &new.id],
        )
        .await;
    assert!(passes);
}

/// A worker id is fresh at each start: a second registration under a used one is refused.
#[tokio::test]
async fn te_20_rl_09_an_id_of_a_worker_is_never_used_again() {
    let bed = Bed::new().await;
    let worker = bed.worker(&["k"]).await;
    let mut again = registration(&["k"]);
    again.worker = worker.id;
    assert!(bed.store.register(again).await.is_err());
    assert_ne!(Uuid::now_v7(), worker.id);
}
