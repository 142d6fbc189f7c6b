//! The store: a pool of connections, verified once.
//!
//! Invariants: a call that was sent is never dropped half-way by a `select!` or a timeout: `Store::detached` runs it in a
//! task of its own, and only its waiter can be dropped. It ends at a deadline all the same, as an answer that was lost, and its
//! connections are closed, never lent again. Start-up verifies what the guard rests on.
//!
//! Never: lend these connections to handlers; they have a pool of their own ([`Store::handler_pool`]).

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};

use crate::config::Config;
use crate::error::StoreError;
use crate::heads::Heads;
use crate::install;
use crate::lanes::Lanes;
use crate::session::{Conn, Mode};
use crate::submit::wake::Hints;

/// The engine's database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// The call that this copy serves is past its deadline: its connections are not lent again.
    overdue: Arc<AtomicBool>,
}

struct Inner {
    config: Config,
    pool: Pool,
    handlers: Pool,
    lanes: Lanes,
    heads: Heads,
    hints: Hints,
}

/// A store that does not keep its connections alive.
pub(crate) struct WeakStore(Weak<Inner>);

impl WeakStore {
    pub(crate) fn upgrade(&self) -> Option<Store> {
        Some(Store {
            inner: self.0.upgrade()?,
            overdue: Arc::default(),
        })
    }
}

/// A pooled connection together with the way statements are sent on it.
pub struct PooledConn {
    /// Taken only when it is dropped.
    object: Option<Object>,
    mode: Mode,
    overdue: Arc<AtomicBool>,
}

impl PooledConn {
    /// To call generated statements on.
    pub fn conn(&self) -> Conn<'_> {
        Conn::pooled(self.object(), self.mode)
    }

    /// To begin a transaction on.
    pub fn client(&mut self) -> &mut Object {
        match &mut self.object {
            Some(object) => object,
            None => unreachable!("it is taken only when it is dropped"),
        }
    }

    fn object(&self) -> &Object {
        match &self.object {
            Some(object) => object,
            None => unreachable!("it is taken only when it is dropped"),
        }
    }

    /// How statements are sent on it.
    pub fn mode(&self) -> Mode {
        self.mode
    }
}

impl Drop for PooledConn {
    /// A connection that did not answer in time may never answer: out of the pool, and closed.
    fn drop(&mut self) {
        if self.overdue.load(Ordering::SeqCst)
            && let Some(object) = self.object.take()
        {
            drop(Object::take(object));
        }
    }
}

impl Store {
    /// Connects and verifies: the server's version, the schema against this binary, and the settings that the guard
    /// rests on.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`], a version, or a setting; each says what to do.
    pub async fn connect(config: Config) -> Result<Self, StoreError> {
        let store = Self::connect_unverified(config)?;
        store.verify().await?;
        Ok(store)
    }

    /// Opens the pool without looking at the database: for `db status` and the installer.
    ///
    /// # Errors
    /// [`StoreError::Url`] when a pool cannot be made of the configuration.
    pub fn connect_unverified(config: Config) -> Result<Self, StoreError> {
        let engine = pool(&config, config.pool_size)?;
        let handlers = pool(&config, config.pool_size)?;
        Ok(Self {
            inner: Arc::new(Inner {
                config,
                pool: engine,
                handlers,
                lanes: Lanes::default(),
                heads: Heads::default(),
                hints: Hints::default(),
            }),
            overdue: Arc::default(),
        })
    }

    pub(crate) fn hints(&self) -> &Hints {
        &self.inner.hints
    }

    pub(crate) fn downgrade(&self) -> WeakStore {
        WeakStore(Arc::downgrade(&self.inner))
    }

    /// How it was configured.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The pool for handlers' own SQL (`commit`, `complete_in`).
    pub fn handler_pool(&self) -> &Pool {
        &self.inner.handlers
    }

    pub(crate) fn heads(&self) -> &Heads {
        &self.inner.heads
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.inner.lanes
    }

    /// A connection of the engine's own pool.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`] when none can be had within 5 s.
    pub async fn conn(&self) -> Result<PooledConn, StoreError> {
        let object = self
            .inner
            .pool
            .get()
            .await
            .map_err(|source| StoreError::Unreachable {
                place: self.inner.config.place(),
                source: Box::new(source),
            })?;
        Ok(PooledConn {
            object: Some(object),
            mode: self.inner.config.mode,
            overdue: Arc::clone(&self.overdue),
        })
    }

    /// Runs a call that ends at the deadline, as one whose answer was lost.
    ///
    /// # Errors
    /// What the call answers; [`StoreError::Deadline`].
    pub async fn bounded<T, F>(&self, call: impl FnOnce(Store) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let within = self.inner.config.deadline;
        let overdue = Arc::new(AtomicBool::new(false));
        let store = Self {
            inner: Arc::clone(&self.inner),
            overdue: Arc::clone(&overdue),
        };
        // Dropped after the flag is set, so that its connections see it.
        let mut call = std::pin::pin!(call(store));
        if let Ok(answer) = tokio::time::timeout(within, call.as_mut()).await {
            return answer;
        }
        overdue.store(true, Ordering::SeqCst);
        Err(StoreError::Deadline {
            place: self.inner.config.place(),
            within,
        })
    }

    /// Waits for an answer on a connection that the caller holds, for at most `calls` deadlines. After it the connection may never
    /// answer: the caller gives it up.
    ///
    /// # Errors
    /// [`StoreError::Deadline`].
    pub async fn answered<T>(
        &self,
        calls: u32,
        answer: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let within = self.inner.config.deadline * calls;
        tokio::time::timeout(within, answer)
            .await
            .map_err(|_| StoreError::Deadline {
                place: self.inner.config.place(),
                within,
            })
    }

    /// Runs a call in a task of its own, so that dropping the waiter does not drop the call.
    pub(crate) async fn detached<T, F>(
        &self,
        call: impl FnOnce(Store) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let store = self.clone();
        tokio::spawn(async move { store.bounded(call).await })
            .await
            .unwrap_or(Err(StoreError::Panicked))
    }

    async fn verify(&self) -> Result<(), StoreError> {
        let conn = self.conn().await?;
        let row = conn
            .object()
            .query_typed(
                "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                    current_setting('default_transaction_isolation'), current_setting('jit'), current_user::text",
                &[],
            )
            .await?;
        let row = row.first().ok_or(StoreError::Panicked)?;
        if row.try_get::<_, i32>(0)? < 150_000 {
            return Err(StoreError::ServerTooOld {
                found: row.try_get(1)?,
            });
        }
        let role: String = row.try_get(4)?;
        for (column, name, wanted) in [
            (2, "default_transaction_isolation", "read committed"),
            (3, "jit", "off"),
        ] {
            let found: String = row.try_get(column)?;
            if found != wanted {
                return Err(StoreError::Setting {
                    name,
                    found,
                    wanted,
                    role,
                });
            }
        }
        if role == "aegis_engine" {
            self.verify_limits(&conn, role).await?;
        }
        install::verify(conn.object()).await
    }
}

impl Store {
    /// Without these a statement or a transaction of the engine's could hold its locks for ever.
    async fn verify_limits(&self, conn: &PooledConn, role: String) -> Result<(), StoreError> {
        let rows = conn
            .object()
            .query_typed(
                "SELECT name, setting::int8 FROM pg_settings
                    WHERE name IN ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout')",
                &[],
            )
            .await?;
        for row in rows {
            let (found_name, found_ms): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            for (name, wanted, longest_ms) in LIMITS {
                if name == found_name && !(1..=longest_ms).contains(&found_ms) {
                    return Err(StoreError::Setting {
                        name,
                        found: format!("{found_ms}ms"),
                        wanted,
                        role,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Settings in milliseconds that must not be 0: what is wanted, and the longest that is accepted.
const LIMITS: [(&str, &str, i64); 3] = [
    ("lock_timeout", "5s", i64::MAX),
    ("statement_timeout", "30s", i64::MAX),
    ("idle_in_transaction_session_timeout", "10s", 60_000),
];

fn pool(config: &Config, size: usize) -> Result<Pool, StoreError> {
    let manager = Manager::from_config(
        config.postgres.clone(),
        config.tls.connector(),
        ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        },
    );
    Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts {
            wait: Some(std::time::Duration::from_secs(5)),
            create: Some(std::time::Duration::from_secs(5)),
            recycle: Some(std::time::Duration::from_secs(5)),
        })
        .build()
        .map_err(|error| StoreError::Url {
            what: error.to_string(),
        })
}
