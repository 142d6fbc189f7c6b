//! Signed documents: DSSE envelopes with Ed25519, so that what somebody else saw, and what somebody decided, can be checked by
//! anybody who has the public keys. Source of the form: github.com/secure-systems-lab/dsse, protocol.md.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};

use super::keyring::Keyring;

/// RFC 8410: an Ed25519 SubjectPublicKeyInfo is this prefix and the 32 bytes of the key.
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A document with the signatures over it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The document, in base64.
    pub payload: String,
    /// What kind of document it is.
    #[serde(rename = "payloadType")]
    pub payload_type: String,
    /// Who signed.
    pub signatures: Vec<Signature>,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The signer's name in the keyring: a hint, never trusted.
    pub keyid: String,
    /// Ed25519 over the pre-authentication encoding, in base64.
    pub sig: String,
}

/// Why an envelope or a key says nothing.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// Not an envelope.
    #[error("{what} is no DSSE envelope: {why}")]
    Malformed {
        /// The file.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// Another kind of document.
    #[error("{what} holds {found}, and {wanted} is needed here")]
    OtherType {
        /// The file.
        what: String,
        /// What it says it is.
        found: String,
        /// What is needed.
        wanted: &'static str,
    },
    /// Nobody of `approvers.toml` signed it.
    #[error(
        "{what} has no valid signature of anybody in {file}, which names {people} (it says that it is of {named}); nobody vouches for it"
    )]
    NobodyKnown {
        /// The file.
        what: String,
        /// Who may say what.
        file: String,
        /// The names in that.
        people: String,
        /// The names in the envelope.
        named: String,
    },
    /// A key of nobody in `approvers.toml`.
    #[error(
        "{what} is the key of nobody in {file}, which names {people}; sign with the key of one of them, or add yours: `openssl pkey -in {what} -pubout`"
    )]
    UnknownKey {
        /// The key's file.
        what: String,
        /// Who may say what.
        file: String,
        /// The names in that.
        people: String,
    },
    /// A key that cannot be used.
    #[error(
        "{what} is no Ed25519 key in PEM: {why}; `openssl genpkey -algorithm ed25519` makes one"
    )]
    Key {
        /// The file.
        what: String,
        /// What is wrong.
        why: String,
    },
}

/// A private key that signs.
pub struct Signer {
    name: String,
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Signer {
    /// From a PKCS#8 PEM text; `what` names the file in errors.
    pub fn from_pem(name: &str, pem: &str, what: &str) -> Result<Self, EnvelopeError> {
        let key = |why: String| EnvelopeError::Key {
            what: what.to_owned(),
            why,
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| key(format!("no PRIVATE KEY block ({error})")))?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map_err(|error| key(error.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            pair,
        })
    }

    /// Signs a document.
    pub fn sign(&self, payload_type: &str, payload: &[u8]) -> Envelope {
        let sig = self.pair.sign(&encoding(payload_type, payload));
        Envelope {
            payload: STANDARD.encode(payload),
            payload_type: payload_type.to_owned(),
            signatures: vec![Signature {
                keyid: self.name.clone(),
                sig: STANDARD.encode(sig),
            }],
        }
    }
}

/// A public key of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// From a SubjectPublicKeyInfo PEM text (`openssl pkey -pubout`).
    pub fn from_pem(pem: &str, what: &str) -> Result<Self, EnvelopeError> {
        let key = |why: String| EnvelopeError::Key {
            what: what.to_owned(),
            why,
        };
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| key(format!("no PUBLIC KEY block ({error})")))?;
        match der.strip_prefix(&SPKI_PREFIX) {
            Some(raw) if raw.len() == 32 => Ok(Self(raw.to_vec())),
            _ => Err(key("a key of another algorithm".to_owned())),
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(message, signature)
            .is_ok()
    }
}

impl Envelope {
    /// Reads an envelope; `what` names the file in errors.
    pub fn read(text: &str, what: &str) -> Result<Self, EnvelopeError> {
        serde_json::from_str(text).map_err(|error| EnvelopeError::Malformed {
            what: what.to_owned(),
            why: error.to_string(),
        })
    }

    /// The document, and the names of those in the keyring whose signature over it is valid (each once, sorted).
    pub fn open(
        &self,
        wanted: &'static str,
        keyring: &Keyring,
        what: &str,
    ) -> Result<(Vec<u8>, Vec<String>), EnvelopeError> {
        let malformed = |why: String| EnvelopeError::Malformed {
            what: what.to_owned(),
            why,
        };
        if self.payload_type != wanted {
            return Err(EnvelopeError::OtherType {
                what: what.to_owned(),
                found: self.payload_type.clone(),
                wanted,
            });
        }
        let payload = STANDARD
            .decode(&self.payload)
            .map_err(|error| malformed(format!("payload: {error}")))?;
        let message = encoding(&self.payload_type, &payload);
        let mut signers = std::collections::BTreeSet::new();
        for signature in &self.signatures {
            let bytes = STANDARD
                .decode(&signature.sig)
                .map_err(|error| malformed(format!("signature of {}: {error}", signature.keyid)))?;
            // The name is only a hint, so every key is tried: who really signed is who counts.
            if let Some(person) = keyring
                .people()
                .iter()
                .find(|person| person.key.verifies(&message, &bytes))
            {
                signers.insert(person.name.clone());
            }
        }
        if signers.is_empty() {
            let (file, people) = (keyring.file().to_owned(), keyring.names());
            let named = self.signatures.iter().map(|one| one.keyid.as_str());
            let named: Vec<_> = named.filter(|name| !name.is_empty()).collect();
            let (what, named) = (what.to_owned(), listed(&named));
            return Err(EnvelopeError::NobodyKnown {
                what,
                file,
                people,
                named,
            });
        }
        Ok((payload, signers.into_iter().collect()))
    }
}

/// Names, or that there are none.
pub(super) fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(", ")
    }
}

/// DSSE's pre-authentication encoding: type and body with their lengths, so that neither can be moved into the other.
fn encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    )
    .into_bytes();
    message.extend_from_slice(payload);
    message
}
