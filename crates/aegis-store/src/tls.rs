//! TLS to PostgreSQL: what the URL asks for, with libpq's words.
//!
//! | `sslmode` | encrypted | the server is |
//! | --- | --- | --- |
//! | `disable` | never | not looked at |
//! | `prefer` (unless said otherwise) | when the server offers it | not looked at |
//! | `require` | always, or there is no connection | not looked at; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | always | certified by `sslrootcert`, or by an authority that the machine trusts |
//! | `verify-full` | always | as above, and the host of the URL |
//!
//! Invariants: files are read when the URL is, so that what is wrong with them is told before anything is connected to; a mode
//! that wants encryption is never served without it, over a socket neither.
//!
//! Never: a certificate that was not asked for, a second TLS stack.

mod url;
mod verify;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::StoreError;

pub(crate) use url::TlsWords;
use verify::Verify;

/// What a URL asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Makes connections that are as encrypted as the URL asks for.
#[derive(Clone)]
pub(crate) struct Tls {
    mode: SslMode,
    connector: MakeRustlsConnect,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files that the URL names.
    pub(crate) fn new(words: &TlsWords) -> Result<Self, StoreError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mode = words.effective_mode();
        let verifier = match mode {
            SslMode::Disable | SslMode::Prefer | SslMode::Require => Verify::nothing(&provider),
            SslMode::VerifyCa => Verify::authority(roots(words)?, &provider)?,
            SslMode::VerifyFull => Verify::host(roots(words)?, &provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refuse(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&words.cert, &words.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let chain = certificates("sslcert", cert)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    refuse(format!(
                        "sslkey={} cannot be read as a key: {error}",
                        key.display()
                    ))
                })?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    refuse(format!(
                        "sslcert and sslkey do not belong together: {error}"
                    ))
                })?
            }
            _ => {
                return Err(refuse(
                    "sslcert and sslkey go together; give both or none".to_owned(),
                ));
            }
        };
        Ok(Self {
            mode,
            connector: MakeRustlsConnect::new(config),
        })
    }

    /// What the driver connects with.
    pub(crate) fn connector(&self) -> MakeRustlsConnect {
        self.connector.clone()
    }

    /// Tells the driver whether it may go on without TLS.
    pub(crate) fn apply(&self, postgres: &mut tokio_postgres::Config) -> Result<(), StoreError> {
        use tokio_postgres::config::{Host, SslMode as Driver};
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        let sockets = postgres
            .get_hosts()
            .iter()
            .filter(|host| is_socket(host))
            .count();
        let only_sockets = sockets > 0 && sockets == postgres.get_hosts().len();
        let mode = match self.mode {
            SslMode::Disable => Driver::Disable,
            // A server never encrypts a socket; asking costs a round trip.
            SslMode::Prefer if only_sockets => Driver::Disable,
            SslMode::Prefer => Driver::Prefer,
            _ if sockets > 0 => {
                return Err(refuse(
                    "an sslmode that wants encryption beside a socket, which PostgreSQL does not encrypt; give a host, or leave sslmode out".to_owned(),
                ));
            }
            _ => Driver::Require,
        };
        postgres.ssl_mode(mode);
        Ok(())
    }
}

fn roots(words: &TlsWords) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &words.root {
        for certificate in certificates("sslrootcert", path)? {
            roots.add(certificate).map_err(|error| {
                refuse(format!(
                    "sslrootcert={} holds something that is no authority: {error}",
                    path.display()
                ))
            })?;
        }
        return Ok(roots);
    }
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(refuse(
            "the machine trusts no authority; install its ca-certificates, or give sslrootcert=FILE".to_owned(),
        ));
    }
    Ok(roots)
}

fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let cannot = |why: String| {
        refuse(format!(
            "{what}={} cannot be read as certificates: {why}",
            path.display()
        ))
    };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| cannot(error.to_string()))?;
    let found: Result<Vec<_>, _> = read.collect();
    match found {
        Ok(found) if found.is_empty() => {
            Err(cannot("there is no BEGIN CERTIFICATE in it".to_owned()))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(cannot(error.to_string())),
    }
}

fn refuse(what: String) -> StoreError {
    StoreError::Url { what }
}
