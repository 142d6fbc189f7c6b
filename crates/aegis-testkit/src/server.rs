//! The server of a test run: the one that `AEGIS_TEST_SERVER` names, or a private one for this
//! process, ended with it (a static is never dropped; the watchdog sees the process end).

use std::sync::OnceLock;

use aegis_devpg::{Options, Server};

static SERVER: OnceLock<TestServer> = OnceLock::new();

/// Where databases can be made.
#[derive(Debug)]
pub(crate) struct TestServer {
    url: String,
    /// Kept here so that it lives as long as the process.
    _private: Option<Server>,
}

impl TestServer {
    /// The one of this process, started at the first call.
    pub(crate) async fn get() -> &'static Self {
        tokio::task::spawn_blocking(|| SERVER.get_or_init(Self::open))
            .await
            .expect("start the test server")
    }

    fn open() -> Self {
        if let Ok(url) = std::env::var("AEGIS_TEST_SERVER") {
            return Self {
                url,
                _private: None,
            };
        }
        let server = Server::start(&Options::for_tests())
            // With its sources: anyhow's debug form is the whole chain.
            .map_err(anyhow::Error::from)
            .unwrap_or_else(|error| panic!("start a private PostgreSQL for the tests: {error:?}"));
        Self {
            url: server.url(server.superuser(), "postgres"),
            _private: Some(server),
        }
    }

    /// The superuser's URL of `database`.
    pub(crate) fn url(&self, database: &str) -> String {
        with_database(&self.url, database)
    }

    /// The URL of `database` for `role`, without a password.
    pub(crate) fn url_as(&self, role: &str, database: &str) -> String {
        with_role(&with_database(&self.url, database), role)
    }
}

/// The superuser's URL of the run's server, database `postgres`: for tests that start processes
/// which make their own databases.
pub async fn server_url() -> String {
    TestServer::get().await.url("postgres")
}

/// Splits a URL into scheme, authority, database and query.
fn split(url: &str) -> (&str, &str, &str, &str) {
    let (scheme, rest) = url
        .split_once("://")
        .unwrap_or_else(|| panic!("AEGIS_TEST_SERVER must be a postgresql:// URL, not {url:?}"));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    (scheme, authority, database, query)
}

fn join(scheme: &str, authority: &str, database: &str, query: &str) -> String {
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{scheme}://{authority}/{database}{mark}{query}")
}

fn with_database(url: &str, database: &str) -> String {
    let (scheme, authority, _, query) = split(url);
    join(scheme, authority, database, query)
}

fn with_role(url: &str, role: &str) -> String {
    let (scheme, authority, database, query) = split(url);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    join(scheme, &format!("{role}@{host}"), database, query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_and_role_are_replaced_and_the_rest_kept() {
        let socket = "postgresql://postgres@/postgres?host=%2Ftmp%2Fx&port=5432";
        assert_eq!(
            with_database(socket, "t"),
            "postgresql://postgres@/t?host=%2Ftmp%2Fx&port=5432"
        );
        assert_eq!(
            with_role(socket, "worker"),
            "postgresql://worker@/postgres?host=%2Ftmp%2Fx&port=5432"
        );
        let tcp = "postgres://a:b@127.0.0.1:5433";
        assert_eq!(with_database(tcp, "t"), "postgres://a:b@127.0.0.1:5433/t");
        assert_eq!(with_role(tcp, "w"), "postgres://w@127.0.0.1:5433/");
    }
}
