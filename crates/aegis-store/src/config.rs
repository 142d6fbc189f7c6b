//! Where the database is, and what stands between.
//!
//! Invariants: statements are prepared by name only where the URL says so (`statements=named`), since a transaction pooler
//! breaks them; what a pooler cannot forward (LISTEN, DDL) goes over the direct URL, where there is one.
//!
//! A line that is dead without saying so is noticed: by TCP within about 10 s, and where TCP sees nothing (a proxy that hangs)
//! by a deadline of each call.
//!
//! Never: print a URL; [`Config::place`] is what messages may show.

use std::str::FromStr;
use std::time::Duration;

use crate::error::StoreError;
use crate::session::Mode;
use crate::tls::{Tls, TlsWords};

/// Longer than any statement that the server lets run (`statement_timeout` of the roles, 30 s).
const DEADLINE: Duration = Duration::from_secs(35);
/// Until what was sent and not acknowledged, or an idle line that does not answer, ends the connection.
const LINE_DEAD_AFTER: Duration = Duration::from_secs(10);

/// How to reach the database.
#[derive(Debug, Clone)]
pub struct Config {
    pub(crate) postgres: tokio_postgres::Config,
    pub(crate) tls: Tls,
    pub(crate) direct: Option<tokio_postgres::Config>,
    pub(crate) direct_tls: Tls,
    pub(crate) mode: Mode,
    pub(crate) pool_size: usize,
    pub(crate) deadline: Duration,
}

impl Config {
    /// Reads a `postgresql://` URL. `statements=named` in its query says that no transaction pooler is between; `sslmode`,
    /// `sslrootcert`, `sslcert` and `sslkey` mean what they mean to libpq, and the files are read now.
    ///
    /// # Errors
    /// [`StoreError::Url`].
    pub fn from_url(url: &str) -> Result<Self, StoreError> {
        let Taken { url, mode, tls } = take_own(url)?;
        let tls = Tls::new(&tls)?;
        let postgres = parse(&url, &tls)?;
        let direct = (mode == Mode::Named).then(|| postgres.clone());
        Ok(Self {
            postgres,
            direct_tls: tls.clone(),
            tls,
            direct,
            mode,
            pool_size: 8,
            deadline: DEADLINE,
        })
    }

    /// A second URL that goes around the pooler, for notifications and DDL.
    ///
    /// # Errors
    /// [`StoreError::Url`].
    pub fn with_direct_url(mut self, url: &str) -> Result<Self, StoreError> {
        let taken = take_own(url)?;
        self.direct_tls = Tls::new(&taken.tls)?;
        self.direct = Some(parse(&taken.url, &self.direct_tls)?);
        Ok(self)
    }

    /// How many connections the pool may open.
    #[must_use]
    pub fn with_pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections.max(1);
        self
    }

    /// How long a call may take before its answer counts as lost and its connection is given up; 35 s unless said otherwise.
    /// Longer than the roles' `statement_timeout`.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The name that the server shows for these connections.
    #[must_use]
    pub fn with_application_name(mut self, name: &str) -> Self {
        self.postgres.application_name(name);
        if let Some(direct) = &mut self.direct {
            direct.application_name(name);
        }
        self
    }

    /// The same place as another role; a pooler pools by user, so renewal has its own.
    #[must_use]
    pub fn as_role(&self, role: &str) -> Self {
        let mut config = self.clone();
        config.postgres.user(role);
        if let Some(direct) = &mut config.direct {
            direct.user(role);
        }
        config
    }

    /// Another database of the same server.
    #[must_use]
    pub fn in_database(&self, name: &str) -> Self {
        let mut config = self.clone();
        config.postgres.dbname(name);
        if let Some(direct) = &mut config.direct {
            direct.dbname(name);
        }
        config
    }

    /// The role that connects.
    pub fn role(&self) -> &str {
        self.postgres.get_user().unwrap_or_default()
    }

    /// Host and port, or the socket folder, for messages: no secrets.
    pub fn place(&self) -> String {
        let host = match self.postgres.get_hosts().first() {
            Some(tokio_postgres::config::Host::Tcp(host)) => host.clone(),
            Some(tokio_postgres::config::Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = self.postgres.get_ports().first().copied().unwrap_or(5432);
        format!("{host} port {port}")
    }
}

fn parse(url: &str, tls: &Tls) -> Result<tokio_postgres::Config, StoreError> {
    let mut config = tokio_postgres::Config::from_str(url).map_err(|error| StoreError::Url {
        what: error.to_string(),
    })?;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    // What the URL says stands. The driver does not tell "not said" from its default for the idle time.
    if config.get_tcp_user_timeout().is_none() && !url.contains("tcp_user_timeout") {
        config.tcp_user_timeout(LINE_DEAD_AFTER);
    }
    if !url.contains("keepalives_idle") {
        config.keepalives_idle(LINE_DEAD_AFTER / 2);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(LINE_DEAD_AFTER / 5);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(3);
    }
    tls.apply(&mut config)?;
    Ok(config)
}

/// A URL without what is ours.
struct Taken {
    url: String,
    mode: Mode,
    tls: TlsWords,
}

/// Takes our own parameters out of the query, since the driver refuses what it does not know.
fn take_own(url: &str) -> Result<Taken, StoreError> {
    let mut mode = Mode::Unnamed;
    let mut tls = TlsWords::default();
    // A `?` before the `@` belongs to the password, as the driver has it too.
    let behind_password = url.find('@').map_or(0, |at| at + 1);
    let query_at = url[behind_password..]
        .find('?')
        .map(|at| behind_password + at);
    if url.contains("://") && url[behind_password..].contains('@') {
        // What stands before the second one would be taken for the host or for a parameter, and shown.
        return Err(StoreError::Url {
            what:
                "it holds more than one @; in a name, a password or a parameter it is written %40"
                    .to_owned(),
        });
    }
    let Some((base, query)) = query_at.map(|at| (&url[..at], &url[at + 1..])) else {
        let url = url.to_owned();
        return Ok(Taken { url, mode, tls });
    };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("statements", "named")) => mode = Mode::Named,
            Some(("statements", "unnamed")) => mode = Mode::Unnamed,
            Some(("statements", other)) => {
                return Err(StoreError::Url {
                    what: format!("statements={other} is neither named nor unnamed"),
                });
            }
            Some((name, value)) if tls.take(name, value)? => {}
            _ => rest.push(pair),
        }
    }
    let url = if rest.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", rest.join("&"))
    };
    Ok(Taken { url, mode, tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_taken_from_the_url() {
        let named = Config::from_url("postgresql://a@/b?host=/tmp&statements=named").unwrap();
        assert_eq!(named.mode, Mode::Named);
        assert_eq!(named.place(), "/tmp port 5432");
        let plain = Config::from_url("postgresql://a@h:6432/b").unwrap();
        assert_eq!(plain.mode, Mode::Unnamed);
        assert!(plain.direct.is_none());
    }

    #[test]
    fn a_dead_line_is_noticed_unless_the_url_says_otherwise() {
        let plain = Config::from_url("postgresql://a@h/b").unwrap().postgres;
        assert_eq!(plain.get_tcp_user_timeout(), Some(&Duration::from_secs(10)));
        let idle = plain.get_keepalives_idle()
            + plain.get_keepalives_interval().unwrap() * plain.get_keepalives_retries().unwrap();
        assert!(plain.get_keepalives() && idle <= Duration::from_secs(11));
        let said = "postgresql://a@h/b?tcp_user_timeout=60&keepalives_idle=7200";
        let said = Config::from_url(said).unwrap().postgres;
        assert_eq!(said.get_tcp_user_timeout(), Some(&Duration::from_mins(1)));
        assert_eq!(said.get_keepalives_idle(), Duration::from_hours(2));
    }

    #[test]
    fn a_bad_url_says_what_to_write() {
        let error = Config::from_url("postgresql://a@h/b?statements=maybe").unwrap_err();
        assert!(
            error.to_string().contains("neither named nor unnamed"),
            "{error}"
        );
        let error = Config::from_url("nonsense").unwrap_err();
        assert!(
            error.to_string().contains("postgresql://USER@HOST"),
            "{error}"
        );
    }
}
