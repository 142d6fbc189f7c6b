//! A session of a runner: direct, writable, on the right database, with the settings that everything else relies on.
//!
//! Invariants: nothing happens in a database before all of this is shown; a lost session is never replaced silently, since the mutex
//! is lost with it.

mod cancel;
mod sniff;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_postgres::config::{Config, Host};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Connection, NoTls};

use cancel::To;
use sniff::{Announced, Sniffed};

pub use cancel::Cancel;
pub use sniff::announced;

/// Servers older than this are not supported.
const OLDEST: i32 = 140_000;

/// Settings that are read back, as the server prints them.
const READ_BACK: [(&str, &str); 8] = [
    ("client_connection_check_interval", "500ms"),
    ("search_path", "pg_catalog, pg_temp"),
    ("TimeZone", "UTC"),
    ("standard_conforming_strings", "on"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("lock_timeout", "0"),
    ("statement_timeout", "0"),
];

/// A proven session.
pub struct Direct {
    /// The session.
    pub client: Client,
    /// Its process on the server.
    pub pid: i32,
    /// The database.
    pub database: String,
    /// The role that works.
    pub role: String,
    /// As 180006.
    pub version_num: i32,
    /// As the server says it.
    pub version: String,
    /// Ends what the session is doing.
    pub cancel: Cancel,
    again: Option<Again>,
}

/// Makes another session of the same target, under a name.
type Again = Arc<dyn Fn(String) -> Connecting + Send + Sync>;
/// A session that is being made and proven.
pub type Connecting = Pin<Box<dyn Future<Output = Result<Direct, SessionError>> + Send>>;

/// Why a session cannot be a runner's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No connection.
    #[error("cannot connect to {place}: {why}")]
    Unreachable {
        /// Host and port.
        place: String,
        /// Why.
        why: String,
    },
    /// Not the server itself.
    #[error(
        "{place} is a pooler: it announced process {announced} and runs this session in process {found}. Its lock would stay on a connection of somebody else; give the server's own address (--database-direct-url)"
    )]
    Pooler {
        /// Host and port.
        place: String,
        /// The process that was announced.
        announced: i32,
        /// The process that runs the session.
        found: i32,
    },
    /// It could not be shown.
    #[error(
        "{place} announced no process, so nobody can say that it is the server itself; give the server's own address"
    )]
    NotShown {
        /// Host and port.
        place: String,
    },
    /// A standby.
    #[error("{place} is a standby: it only reads. Give the primary's address")]
    Standby {
        /// Host and port.
        place: String,
    },
    /// Set to read only.
    #[error(
        "{place}: this role's sessions in this database are set to read only (default_transaction_read_only); somebody wants no writes here, so nothing is done"
    )]
    ReadOnly {
        /// Host and port.
        place: String,
    },
    /// Another database than was named.
    #[error("this is database {found}, and {wanted} was named")]
    OtherDatabase {
        /// Where the session is.
        found: String,
        /// What was named.
        wanted: String,
    },
    /// Too old.
    #[error("the server is {found}; 14 and newer are supported")]
    TooOld {
        /// Its version.
        found: String,
    },
    /// A setting that did not hold.
    #[error(
        "{name} is {found} after it was set to {wanted}: something between here and the server changes settings"
    )]
    Setting {
        /// Which.
        name: String,
        /// What it is.
        found: String,
        /// What was set.
        wanted: String,
    },
    /// The database.
    #[error("the session could not be prepared")]
    Database(#[source] tokio_postgres::Error),
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct")
            .field("pid", &self.pid)
            .field("database", &self.database)
            .field("role", &self.role)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Direct {
    /// Connects and proves. `application_name` names the runner to whoever looks at pg_stat_activity.
    pub async fn connect<M>(
        config: &Config,
        tls: M,
        application_name: &str,
    ) -> Result<Self, SessionError>
    where
        M: MakeTlsConnect<Sniffed<TcpStream>> + Clone + Send + Sync + 'static,
        M::Stream: Unpin + Send + 'static,
        M::TlsConnect: Send,
        <M::TlsConnect as tokio_postgres::tls::TlsConnect<Sniffed<TcpStream>>>::Future:
            Send + 'static,
        <M::TlsConnect as tokio_postgres::tls::TlsConnect<Sniffed<TcpStream>>>::Error: Send,
    {
        let mut direct = Self::once(config, tls.clone(), application_name).await?;
        direct.again = Some(again(config.clone(), tls));
        Ok(direct)
    }

    /// What makes another session of the same target, proven like this one. It shares nothing with it, so losing this one does not end
    /// the other.
    pub fn again(&self) -> impl Fn(String) -> Connecting + Send + Sync + 'static {
        let again = self.again.clone();
        move |name| match &again {
            Some(again) => again(name),
            None => Box::pin(std::future::ready(Err(SessionError::Unreachable {
                place: "the target".to_owned(),
                why: "this session is another one's and makes none".to_owned(),
            }))),
        }
    }

    async fn once<M>(
        config: &Config,
        mut tls: M,
        application_name: &str,
    ) -> Result<Self, SessionError>
    where
        M: MakeTlsConnect<Sniffed<TcpStream>>,
        M::Stream: Unpin + Send + 'static,
        M::TlsConnect: Send,
        <M::TlsConnect as tokio_postgres::tls::TlsConnect<Sniffed<TcpStream>>>::Future:
            Send + 'static,
        <M::TlsConnect as tokio_postgres::tls::TlsConnect<Sniffed<TcpStream>>>::Error: Send,
    {
        let mut config = config.clone();
        config.application_name(application_name);
        let place = place(&config);
        let unreachable = |why: String| SessionError::Unreachable {
            place: place.clone(),
            why,
        };
        let announced = Announced::default();
        let mut last = "no host is given".to_owned();
        for (at, host) in config.get_hosts().iter().enumerate() {
            let port = *config
                .get_ports()
                .get(at)
                .or_else(|| config.get_ports().first())
                .unwrap_or(&5432);
            let (client, to) = match host {
                Host::Tcp(name) => {
                    let dialled = dial(&config, name, port).await;
                    let stream = match dialled {
                        Ok(stream) => stream,
                        Err(error) => {
                            last = error.to_string();
                            continue;
                        }
                    };
                    let connector =
                        sniff::connector(&mut tls, name, &announced).map_err(|error| {
                            unreachable(
                                Into::<Box<dyn std::error::Error + Send + Sync>>::into(error)
                                    .to_string(),
                            )
                        })?;
                    let stream = Sniffed::new(stream, announced.clone());
                    let (client, connection) = config
                        .connect_raw(stream, connector)
                        .await
                        .map_err(|error| unreachable(said(&error)))?;
                    drive(connection);
                    (client, To::Tcp(name.clone(), port))
                }
                Host::Unix(folder) => {
                    let socket = folder.join(format!(".s.PGSQL.{port}"));
                    let stream = match tokio::net::UnixStream::connect(&socket).await {
                        Ok(stream) => stream,
                        Err(error) => {
                            last = error.to_string();
                            continue;
                        }
                    };
                    let stream = Sniffed::new(stream, announced.clone());
                    let (client, connection) = config
                        .connect_raw(stream, NoTls)
                        .await
                        .map_err(|error| unreachable(said(&error)))?;
                    drive(connection);
                    (client, To::Unix(socket))
                }
            };
            return prove(client, to, &config, &place, announced.pid()).await;
        }
        Err(unreachable(last))
    }

    /// The major version, as 18.
    pub fn major(&self) -> u32 {
        u32::try_from(self.version_num / 10_000).unwrap_or(0)
    }
}

fn again<M>(config: Config, tls: M) -> Again
where
    M: MakeTlsConnect<Sniffed<TcpStream>> + Clone + Send + Sync + 'static,
    M::Stream: Unpin + Send + 'static,
    M::TlsConnect: Send,
    <M::TlsConnect as tokio_postgres::tls::TlsConnect<Sniffed<TcpStream>>>::Future: Send + 'static,
    <M::TlsConnect as tokio_postgres::tls::TlsConnect<Sniffed<TcpStream>>>::Error: Send,
{
    Arc::new(move |name| {
        let (config, tls) = (config.clone(), tls.clone());
        Box::pin(async move {
            let mut direct = Direct::once(&config, tls.clone(), &name).await?;
            direct.again = Some(again(config, tls));
            Ok(direct)
        })
    })
}

async fn dial(config: &Config, host: &str, port: u16) -> std::io::Result<TcpStream> {
    let bound = config
        .get_connect_timeout()
        .copied()
        .unwrap_or(Duration::from_secs(10));
    let stream = tokio::time::timeout(bound, TcpStream::connect((host, port)))
        .await
        .map_err(|_| std::io::Error::other(format!("no answer in {} s", bound.as_secs())))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn drive<S, T>(connection: Connection<S, T>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "a runner's connection ended");
        }
    });
}

async fn prove(
    client: Client,
    to: To,
    config: &Config,
    place: &str,
    announced: Option<i32>,
) -> Result<Direct, SessionError> {
    let place = place.to_owned();
    let row = client
        .query_one(include_str!("../../sql/session/facts.sql"), &[])
        .await
        .map_err(SessionError::Database)?;
    let get = SessionError::Database;
    let pid: i32 = row.try_get("pid").map_err(get)?;
    let announced = announced.ok_or_else(|| SessionError::NotShown {
        place: place.clone(),
    })?;
    if announced != pid {
        return Err(SessionError::Pooler {
            place,
            announced,
            found: pid,
        });
    }
    if row.try_get("standby").map_err(get)? {
        return Err(SessionError::Standby { place });
    }
    if row.try_get::<_, String>("read_only").map_err(get)? == "on" {
        return Err(SessionError::ReadOnly { place });
    }
    let database: String = row.try_get("database").map_err(get)?;
    if let Some(wanted) = config.get_dbname()
        && wanted != database
    {
        return Err(SessionError::OtherDatabase {
            found: database,
            wanted: wanted.to_owned(),
        });
    }
    let (version_num, version): (i32, String) = (
        row.try_get("version_num").map_err(get)?,
        row.try_get("version").map_err(get)?,
    );
    supported(version_num, &version)?;
    client
        .batch_execute(include_str!("../../sql/session/settings.sql"))
        .await
        .map_err(SessionError::Database)?;
    let names: Vec<&str> = READ_BACK.iter().map(|(name, _)| *name).collect();
    let values: Vec<&str> = READ_BACK.iter().map(|(_, value)| *value).collect();
    let wrong = client
        .query_opt(
            include_str!("../../sql/session/read_back.sql"),
            &[&names, &values],
        )
        .await
        .map_err(SessionError::Database)?;
    if let Some(row) = wrong {
        return Err(SessionError::Setting {
            name: row.try_get("name").map_err(get)?,
            found: row
                .try_get::<_, Option<String>>("found")
                .map_err(get)?
                .unwrap_or_else(|| "not there".to_owned()),
            wanted: row.try_get("wanted").map_err(get)?,
        });
    }
    tracing::info!(pid, %version, %database, settings = ?READ_BACK, "a direct session");
    Ok(Direct {
        pid,
        database,
        role: row.try_get("role").map_err(get)?,
        version_num,
        version,
        cancel: Cancel {
            token: client.cancel_token(),
            to,
        },
        client,
        again: None,
    })
}

fn supported(number: i32, said: &str) -> Result<(), SessionError> {
    if number < OLDEST {
        let found = said.to_owned();
        return Err(SessionError::TooOld { found });
    }
    Ok(())
}

/// Host and port, without user or password.
fn place(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        })
        .collect();
    let ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
    format!("{}:{}", hosts.join(","), ports.join(","))
}

fn said(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                text.push_str(": ");
                text.push_str(&cause.to_string());
                source = cause.source();
            }
            text
        },
        |db| db.message().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::{SessionError, supported};

    #[test]
    fn a_server_before_14_is_refused_by_its_version() {
        let refused = supported(130_022, "13.22").unwrap_err();
        assert!(matches!(&refused, SessionError::TooOld { found } if found == "13.22"));
        assert_eq!(crate::run::RunError::from(refused).exit_code(), 17);
        supported(140_000, "14.0").unwrap();
    }
}
