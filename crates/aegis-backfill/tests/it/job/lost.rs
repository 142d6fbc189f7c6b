//! Sessions that are lost: the job goes on in a new one, at the committed cursor.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aegis_backfill::job::{AtPause, Connecting, Ports, run};
use aegis_backfill::throttle::Limits;
use aegis_testkit::wait_until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio_postgres::NoTls;
use tokio_postgres::config::{Config, Host};

use super::{BOUND, beside, counted, counting, not_moved, number, sized, stands, who};

/// How a connection ends over which nothing went for a while.
#[derive(Clone, Copy)]
enum Thaws {
    /// It is gone.
    Gone,
    /// As that of a process that was stopped: the server's answer of before is read, and its last words are the answer to what comes next.
    WithLastWords,
}

impl Thaws {
    /// What the server has said last before: that it changed seven rows, or, where the next words have to be the answer to one statement
    /// alone, that it has the settings of a transaction.
    fn stands_at(self) -> &'static [u8] {
        match self {
            Self::Gone => b"UPDATE 7\0",
            Self::WithLastWords => b"SET\0Z\0\0\0\x05T",
        }
    }
}

/// A connection over which nothing goes any more, in either direction, once the server has said what `how` waits for: a runner that
/// stands still inside a transaction. Only the first time; it ends when `thaw` is true.
async fn freezing(
    url: String,
    how: Thaws,
    frozen: Arc<AtomicBool>,
    mut thaw: watch::Receiver<bool>,
) -> Result<tokio_postgres::Client, String> {
    let config: Config = url.parse().unwrap();
    let Host::Unix(folder) = &config.get_hosts()[0] else {
        panic!("the test server has a socket");
    };
    let socket: PathBuf = folder.join(format!(".s.PGSQL.{}", config.get_ports()[0]));
    let mut server = UnixStream::connect(socket).await.unwrap();
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 8192], [0; 8192]);
        loop {
            tokio::select! {
                Ok(read) = theirs.read(&mut up) => {
                    if read == 0 || server.write_all(&up[..read]).await.is_err() {
                        return;
                    }
                }
                Ok(read) = server.read(&mut down) => {
                    let words = &down[..read];
                    let at = how.stands_at();
                    let is_there = words.windows(at.len()).any(|part| part == at);
                    if is_there && !frozen.swap(true, Ordering::SeqCst) {
                        thaw.wait_for(|thawed| *thawed).await.ok();
                        if let Thaws::WithLastWords = how {
                            let mut last_words = Vec::new();
                            server.read_to_end(&mut last_words).await.ok();
                            theirs.write_all(words).await.unwrap();
                            let asked = theirs.read(&mut up).await.unwrap();
                            assert_ne!(asked, 0, "the next statement");
                            theirs.write_all(&last_words).await.unwrap();
                        }
                        return;
                    }
                    if read == 0 || theirs.write_all(words).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    let (client, connection) = config
        .connect_raw(ours, NoTls)
        .await
        .map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test]
async fn a_runner_that_stands_still_inside_a_batch_keeps_no_row_from_a_writer() {
    stands_still(Thaws::Gone).await;
}

#[tokio::test]
async fn a_runner_that_was_stopped_and_hears_that_the_server_ended_it_takes_a_new_session() {
    stands_still(Thaws::WithLastWords).await;
}

/// A writer goes on beside a runner that stands still inside a batch, and afterwards the runner ends its job.
async fn stands_still(how: Thaws) {
    let db = counted(70).await;
    let mut spec = counting();
    spec.batch = sized(7, 7);
    let frozen = Arc::<AtomicBool>::default();
    let (thaw, thawed) = watch::channel(false);
    let (url, seen, moved) = (db.url(), Arc::clone(&frozen), spec.clone());
    let runner = tokio::spawn(async move {
        let connect = move || -> Connecting {
            Box::pin(freezing(
                url.clone(),
                how,
                Arc::clone(&seen),
                thawed.clone(),
            ))
        };
        let ports = Ports {
            connect: &connect,
            limits: &|| Ok(Limits::default()),
            wait: BOUND,
            at_pause: AtPause::Waits,
        };
        run(ports, &moved, &who(), &mut |_| {}).await
    });
    wait_until("it stands still in a batch", BOUND, async || {
        frozen.load(Ordering::SeqCst)
    })
    .await;
    // A writer goes on.
    db.admin
        .batch_execute(
            "SET statement_timeout = '30s'; UPDATE app.t SET done = done WHERE id = 1; RESET statement_timeout",
        )
        .await
        .unwrap();
    thaw.send(true).unwrap();
    assert_eq!(runner.await.unwrap().unwrap().rows_changed, 70);
    assert_eq!(not_moved(&db, 1).await, 0);
}

#[tokio::test]
async fn a_session_that_is_ended_is_replaced_and_each_row_is_moved_once() {
    let db = counted(20_000).await;
    let mut spec = counting();
    spec.batch.start = 50;
    spec.batch.max = 50;
    let runner = beside(&db, &spec, Arc::default());
    for times in 1..=5_i64 {
        let seen = times * 2000;
        wait_until("more rows are moved", BOUND, async || {
            let sql = "SELECT coalesce(max(rows_seen), 0) FROM aegis_migrate.backfill";
            number(&db, sql).await >= seen
        })
        .await;
        let ended = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
                     WHERE application_name = 'a runner' AND datname = current_database()";
        assert_eq!(number(&db, ended).await, 1, "time {times}");
        wait_until("a new session has it", BOUND, async || {
            stands(&db).await.epoch == times + 1
        })
        .await;
    }
    assert_eq!(runner.await.unwrap().unwrap().rows_changed, 20_000);
    assert_eq!(not_moved(&db, 1).await, 0);
}
