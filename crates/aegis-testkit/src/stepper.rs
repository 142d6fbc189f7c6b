//! Statements on two or three real connections in a chosen order, to test interleavings.
//!
//! A statement is *started* and then either seen *blocked* (PostgreSQL itself says that its
//! backend waits for a heavyweight lock, and for whom) or awaited until it is *done*. Nothing
//! sleeps and hopes: a wait ends when the server shows the state, or panics at a bound and says
//! what it saw instead.
//!
//! ```no_run
//! use aegis_testkit::{Stepper, TestDb};
//!
//! # async fn test() {
//! let db = TestDb::new().await;
//! let stepper = Stepper::new(&db).await;
//! let (a, b) = (stepper.conn("a").await, stepper.conn("b").await);
//! a.run("create table t as select 1 as id, 0 as n").await;
//!
//! a.run("begin").await;
//! a.run("update t set n = n + 1").await;
//! let waits = b.spawn("update t set n = n + 10 returning n");
//! assert_eq!(waits.blocked().await, ["a"]);
//! a.run("commit").await;
//! let rows = waits.done().await.unwrap();
//! assert_eq!(rows[0].get::<_, i32>(0), 11);
//! # }
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, Row};

use crate::TestDb;

/// How long a statement may take to get blocked, or done.
const BOUND: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Makes the connections and looks at them from one of its own.
#[derive(Debug)]
pub struct Stepper {
    observer: Arc<Observer>,
    url: String,
}

/// One named connection.
#[derive(Clone, Debug)]
pub struct StepConn {
    client: Arc<Client>,
    pid: i32,
    name: String,
    observer: Arc<Observer>,
}

/// A statement, or a call of several, that was started.
#[must_use = "a started statement is judged by `blocked` or `done`"]
#[derive(Debug)]
pub struct Pending<T> {
    task: JoinHandle<T>,
    what: String,
    conn: StepConn,
}

#[derive(Debug)]
struct Observer {
    client: Client,
    names: Mutex<BTreeMap<i32, String>>,
}

/// What PostgreSQL shows of one backend.
#[derive(Debug)]
struct Seen {
    state: Option<String>,
    wait: Option<String>,
    blockers: Vec<i32>,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.as_deref().unwrap_or("gone");
        let wait = self.wait.as_deref().unwrap_or("nothing");
        write!(f, "its backend is {state} and waits for {wait}")
    }
}

impl Stepper {
    /// A stepper on the test's database.
    pub async fn new(db: &TestDb) -> Self {
        Self::at(&db.url()).await
    }

    /// A stepper on the database of a superuser's URL.
    pub async fn at(url: &str) -> Self {
        let observer = Observer {
            client: crate::db::connect(url).await,
            names: Mutex::new(BTreeMap::new()),
        };
        Self {
            observer: Arc::new(observer),
            url: url.to_owned(),
        }
    }

    /// A connection as the superuser, known by `name` in what is reported.
    pub async fn conn(&self, name: &str) -> StepConn {
        self.conn_at(name, &self.url).await
    }

    /// A connection to `url`, for another role. Its statements are cancelled after a minute, so
    /// that a test which is wrong ends.
    pub async fn conn_at(&self, name: &str, url: &str) -> StepConn {
        let client = crate::db::connect(url).await;
        client
            .batch_execute("set statement_timeout = '60s'")
            .await
            .unwrap();
        let pid: i32 = client
            .query_one("select pg_backend_pid()", &[])
            .await
            .unwrap()
            .get(0);
        let earlier = self
            .observer
            .names
            .lock()
            .unwrap()
            .insert(pid, name.to_owned());
        assert_eq!(earlier, None, "a pid was used again under another name");
        StepConn {
            client: Arc::new(client),
            pid,
            name: name.to_owned(),
            observer: Arc::clone(&self.observer),
        }
    }
}

impl StepConn {
    /// The connection itself, for calls that are not steps. Shared, because a started statement
    /// holds it too.
    pub fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client)
    }

    /// The process id of its backend.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Runs one statement to its end; panics when it fails or takes half a minute.
    #[track_caller]
    pub fn run(&self, sql: &str) -> impl Future<Output = Vec<Row>> {
        let pending = self.spawn(sql);
        let caller = std::panic::Location::caller();
        async move {
            let what = pending.what.clone();
            match pending.done().await {
                Ok(rows) => rows,
                Err(error) => panic!("{what}: {error:?} (run at {caller})"),
            }
        }
    }

    /// Starts one statement. Between statements that were only started no order is promised.
    pub fn spawn(&self, sql: &str) -> Pending<Result<Vec<Row>, Error>> {
        let text = sql.to_owned();
        self.spawn_with(sql, async move |client| client.query(&text, &[]).await)
    }

    /// Starts anything that uses the connection, such as a function of the store; `what` names it
    /// in what is reported.
    pub fn spawn_with<T, C, F>(&self, what: &str, call: C) -> Pending<T>
    where
        C: FnOnce(Arc<Client>) -> F,
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        Pending {
            task: tokio::spawn(call(Arc::clone(&self.client))),
            what: format!("{}: {what}", self.name),
            conn: self.clone(),
        }
    }
}

impl<T> Pending<T> {
    /// Waits until the backend waits for a lock and gives the names of those that it waits for,
    /// sorted; a connection that the stepper does not know is `pid N`. Panics when the statement
    /// ends instead.
    pub async fn blocked(&self) -> Vec<String> {
        let deadline = Instant::now() + BOUND;
        let mut earlier = Vec::new();
        loop {
            let seen = self.conn.observer.look(self.conn.pid).await;
            assert!(
                !self.task.is_finished(),
                "{} ended and was to be blocked",
                self.what
            );
            // Twice the same: a lock that is held for an instant is no answer.
            if !seen.blockers.is_empty() && seen.blockers == earlier {
                return self.conn.observer.names_of(&seen.blockers);
            }
            assert!(
                Instant::now() < deadline,
                "{} is not blocked after {} s: {seen}",
                self.what,
                BOUND.as_secs()
            );
            earlier = seen.blockers;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for the end and gives the result; panics after half a minute and says what it
    /// waits for.
    pub async fn done(mut self) -> T {
        match tokio::time::timeout(BOUND, &mut self.task).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            Err(_) => {
                let seen = self.conn.observer.look(self.conn.pid).await;
                let by = self.conn.observer.names_of(&seen.blockers);
                panic!(
                    "{} is not done after {} s: blocked by {by:?}, {seen}",
                    self.what,
                    BOUND.as_secs()
                )
            }
        }
    }
}

impl Observer {
    async fn look(&self, pid: i32) -> Seen {
        let row = self
            .client
            .query_opt(
                "select state, wait_event_type || ': ' || wait_event, pg_blocking_pids(pid), \
                 wait_event_type from pg_stat_activity where pid = $1",
                &[&pid],
            )
            .await
            .unwrap();
        let Some(row) = row else {
            return Seen {
                state: None,
                wait: None,
                blockers: Vec::new(),
            };
        };
        let kind: Option<String> = row.get(3);
        let mut blockers: Vec<i32> = row.get(2);
        if kind.as_deref() != Some("Lock") {
            blockers.clear();
        }
        blockers.sort_unstable();
        // A parallel group can be named more than once.
        blockers.dedup();
        Seen {
            state: row.get(0),
            wait: row.get(1),
            blockers,
        }
    }

    fn names_of(&self, pids: &[i32]) -> Vec<String> {
        let names = self.names.lock().unwrap();
        let mut found: Vec<String> = pids
            .iter()
            .map(|pid| {
                names
                    .get(pid)
                    .cloned()
                    .unwrap_or_else(|| format!("pid {pid}"))
            })
            .collect();
        found.sort();
        found
    }
}
