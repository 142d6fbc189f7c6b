//! TLS to a real PostgreSQL with certificates of the test's own: what each `sslmode` accepts, and that what wants encryption
//! is never served without it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use aegis_devpg::{Options, Server};
use aegis_schema::SchemaError;
use aegis_store::listen::Listener;
use aegis_store::worker::LeaseConn;
use aegis_store::{Config, Store, StoreError};
use aegis_testkit::{process_slot, wait_until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A server that listens on 127.0.0.1 with a certificate for that address, and the authorities.
struct Place {
    server: Server,
    url: String,
    folder: tempfile::TempDir,
}

/// An authority and what it certifies.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), Issuer::new(params, key))
}

fn certified(names: &[&str], issuer: &Issuer<'static, KeyPair>) -> (String, String) {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, issuer)
        .unwrap();
    (certificate.pem(), key.serialize_pem())
}

impl Place {
    async fn new() -> Self {
        let options = Options {
            tcp_port: Some(0),
            ..Options::for_tests()
        };
        let server = tokio::task::spawn_blocking(move || Server::start(&options).unwrap())
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (right, issuer) = authority("right");
        let (wrong, _) = authority("wrong");
        let (certificate, key) = certified(&["127.0.0.1"], &issuer);
        fs::write(folder.path().join("right.pem"), right).unwrap();
        fs::write(folder.path().join("wrong.pem"), wrong).unwrap();
        fs::write(
            folder.path().join("other.key"),
            KeyPair::generate().unwrap().serialize_pem(),
        )
        .unwrap();
        fs::write(folder.path().join("server.pem"), &certificate).unwrap();
        fs::write(folder.path().join("server.key"), &key).unwrap();
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            hand_over(&server.data_dir().join(name), &text, &server.data_dir());
        }
        let url = server.tcp_url("postgres").unwrap();
        Self {
            server,
            url,
            folder,
        }
    }

    /// Turns TLS on or off, and waits until new connections see it.
    async fn serve_tls(&self, on: bool) {
        let admin = self.server.url(self.server.superuser(), "postgres");
        let word = if on { "on" } else { "off" };
        let (client, connection) = tokio_postgres::connect(&admin, tokio_postgres::NoTls)
            .await
            .unwrap();
        let connection = tokio::spawn(connection);
        client
            .batch_execute(&format!("ALTER SYSTEM SET ssl = {word}"))
            .await
            .unwrap();
        client
            .batch_execute("SELECT pg_reload_conf()")
            .await
            .unwrap();
        wait_until(
            "the server has read its settings",
            std::time::Duration::from_secs(30),
            async || {
                client
                    .query_one("SHOW ssl", &[])
                    .await
                    .unwrap()
                    .get::<_, String>(0)
                    == word
            },
        )
        .await;
        connection.abort();
    }

    fn url(&self, query: &str) -> String {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        format!(
            "{}{mark}{}",
            self.url,
            query.replace("DIR", &self.folder.path().display().to_string())
        )
    }

    /// Whether a connection by this URL is encrypted; or why there is none.
    async fn encrypted(&self, query: &str) -> Result<bool, String> {
        self.encrypted_at(&self.url(query)).await
    }

    async fn encrypted_at(&self, url: &str) -> Result<bool, String> {
        let config = Config::from_url(url).map_err(|error| error.to_string())?;
        let store = Store::connect_unverified(config).map_err(|error| error.to_string())?;
        let client = store
            .handler_pool()
            .get()
            .await
            .map_err(|error| format!("{error:?}"))?;
        let row = client
            .query_one(
                "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
                &[],
            )
            .await
            .unwrap();
        Ok(row.get(0))
    }
}

/// Writes a file that belongs to the server's user and nobody else, as PostgreSQL wants its key.
fn hand_over(path: &Path, text: &str, like: &Path) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let owner = fs::metadata(like).unwrap();
    chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[tokio::test]
async fn process_each_sslmode_accepts_what_it_says() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.serve_tls(true).await;
    let cases = [
        ("sslmode=disable", Ok(false)),
        ("", Ok(true)),
        ("sslmode=prefer", Ok(true)),
        ("sslmode=require", Ok(true)),
        ("sslmode=verify-full&sslrootcert=DIR/right.pem", Ok(true)),
        ("sslmode=verify-ca&sslrootcert=DIR/right.pem", Ok(true)),
        ("sslmode=require&sslrootcert=DIR/right.pem", Ok(true)),
        (
            "sslmode=verify-full&sslrootcert=DIR/wrong.pem",
            Err("UnknownIssuer"),
        ),
        (
            "sslmode=verify-ca&sslrootcert=DIR/wrong.pem",
            Err("UnknownIssuer"),
        ),
        (
            "sslmode=require&sslrootcert=DIR/wrong.pem",
            Err("UnknownIssuer"),
        ),
    ];
    for (query, wanted) in cases {
        match (place.encrypted(query).await, wanted) {
            (Ok(encrypted), Ok(wanted)) => assert_eq!(encrypted, wanted, "{query}"),
            (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{query}: {error}"),
            (other, wanted) => panic!("{query}: {other:?} instead of {wanted:?}"),
        }
    }
    // The certificate is for 127.0.0.1, not for the name that leads there.
    let named = |query| place.url(query).replace("@127.0.0.1:", "@localhost:");
    let ca = place
        .encrypted_at(&named("sslmode=verify-ca&sslrootcert=DIR/right.pem"))
        .await;
    assert_eq!(ca, Ok(true));
    let full = place
        .encrypted_at(&named("sslmode=verify-full&sslrootcert=DIR/right.pem"))
        .await;
    assert!(
        full.as_ref()
            .is_err_and(|error| error.contains("NotValidForName")),
        "{full:?}"
    );
}

#[tokio::test]
async fn process_what_wants_encryption_is_never_served_without_it() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.serve_tls(false).await;
    assert_eq!(place.encrypted("sslmode=prefer").await, Ok(false));
    for query in [
        "sslmode=require",
        "sslmode=verify-ca&sslrootcert=DIR/right.pem",
        "sslmode=verify-full&sslrootcert=DIR/right.pem",
    ] {
        let refused = place.encrypted(query).await;
        assert!(
            refused.as_ref().is_err_and(|error| error.contains("TLS")),
            "{query}: {refused:?}"
        );
    }
    let config = Config::from_url(&place.url("sslmode=require")).unwrap();
    assert!(matches!(
        aegis_schema::install(&config, 1).await,
        Err(SchemaError::Store(StoreError::Unreachable { .. }))
    ));
    assert!(matches!(
        LeaseConn::connect(&config).await,
        Err(StoreError::Unreachable { .. })
    ));
    let direct = config
        .with_direct_url(&place.url("sslmode=require"))
        .unwrap();
    assert!(matches!(
        Listener::connect(&direct, &[]).await,
        Err(StoreError::Unreachable { .. })
    ));
}

#[tokio::test]
async fn process_every_connection_of_the_engine_is_encrypted() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.serve_tls(true).await;
    let config = Config::from_url(
        &place.url("sslmode=verify-full&sslrootcert=DIR/right.pem&statements=named"),
    )
    .unwrap()
    .with_application_name("encrypted");
    aegis_schema::install(&config, 1).await.unwrap();
    let store = Store::connect_unverified(config.clone()).unwrap();
    store.counts().await.unwrap();
    let client = store.handler_pool().get().await.unwrap();
    let _lease = LeaseConn::connect(&config).await.unwrap();
    let _listener = Listener::connect(&config, &["default".to_owned()])
        .await
        .unwrap()
        .unwrap();
    let row = client
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE s.ssl) FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
             WHERE a.application_name = 'encrypted'",
            &[],
        )
        .await
        .unwrap();
    let (all, encrypted): (i64, i64) = (row.get(0), row.get(1));
    assert!(all >= 4, "pool, handlers, lease, listener: {all}");
    assert_eq!(all, encrypted);
}

#[tokio::test]
async fn process_what_is_wrong_with_the_files_is_told_before_anything_is_connected_to() {
    let _slot = process_slot();
    let folder = tempfile::tempdir().unwrap();
    let (ca, issuer) = authority("right");
    let (certificate, key) = certified(&["me"], &issuer);
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    file("ca.pem", &ca);
    file("me.pem", &certificate);
    file("me.key", &key);
    file("other.key", &KeyPair::generate().unwrap().serialize_pem());
    file("empty.pem", "nothing\n");
    let read = |query: &str| {
        let query = query.replace("DIR", &folder.path().display().to_string());
        Config::from_url(&format!("postgresql://ada:hunter2@127.0.0.1:1/db?{query}"))
    };
    read("sslmode=verify-full&sslrootcert=DIR/ca.pem&sslcert=DIR/me.pem&sslkey=DIR/me.key")
        .unwrap();
    let cases = [
        (
            "sslmode=verify-full&sslrootcert=DIR/none.pem",
            "sslrootcert=",
        ),
        (
            "sslmode=verify-full&sslrootcert=DIR/empty.pem",
            "BEGIN CERTIFICATE",
        ),
        ("sslmode=verified", "verify-full"),
        ("sslmode=require&sslcert=DIR/me.pem", "go together"),
        (
            "sslmode=require&sslcert=DIR/me.pem&sslkey=DIR/other.key",
            "do not belong together",
        ),
        (
            "sslmode=require&sslcert=DIR/me.pem&sslkey=DIR/empty.pem",
            "sslkey=",
        ),
    ];
    for (query, wanted) in cases {
        let error = read(query).unwrap_err().to_string();
        assert!(
            error.contains(wanted) && !error.contains("hunter2"),
            "{query}: {error}"
        );
    }
    let socket =
        Config::from_url("postgresql:///db?host=/tmp&user=ada&sslmode=require").unwrap_err();
    assert!(socket.to_string().contains("socket"), "{socket}");
    Config::from_url("postgresql:///db?host=/tmp&user=ada").unwrap();
}
