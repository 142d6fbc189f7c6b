//! Who a server has to be, by mode. Signatures of the handshake are checked in every mode.
//!
//! Never: a verdict of our own about a chain of certificates; webpki gives it.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::error::StoreError;

/// Judges the server's certificate.
#[derive(Debug)]
pub(super) struct Verify {
    provider: Arc<CryptoProvider>,
    authority: Option<Arc<WebPkiServerVerifier>>,
    host: bool,
}

impl Verify {
    /// Anybody.
    pub(super) fn nothing(provider: &Arc<CryptoProvider>) -> Self {
        Self {
            provider: Arc::clone(provider),
            authority: None,
            host: false,
        }
    }

    /// Whoever one of these certifies, under any name.
    pub(super) fn authority(
        roots: RootCertStore,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            host: false,
            ..Self::host(roots, provider)?
        })
    }

    /// Whom one of these certifies to be the host of the URL.
    pub(super) fn host(
        roots: RootCertStore,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, StoreError> {
        let authority =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build()
                .map_err(|error| StoreError::Url {
                    what: format!("the certificates of sslrootcert cannot be used: {error}"),
                })?;
        Ok(Self {
            provider: Arc::clone(provider),
            authority: Some(authority),
            host: true,
        })
    }
}

impl ServerCertVerifier for Verify {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        match authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            // The name is looked at last: the chain was found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.host => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
