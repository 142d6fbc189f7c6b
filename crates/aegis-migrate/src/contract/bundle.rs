//! Facts that live elsewhere: what a collector in the cluster, or in another database, saw, signed by it; and what a person answers
//! for. Both come in as envelopes and are kept as they came.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::envelope::{Envelope, EnvelopeError};
use super::keyring::{Keyring, May};
use super::need::Need;

/// What was seen elsewhere.
pub const BUNDLE: &str = "application/vnd.aegis.evidence-bundle.v1+json";
/// What a person answers for.
pub const ATTESTATION: &str = "application/vnd.aegis.attestation.v1+json";

/// What a collector saw at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The change that it is about.
    pub change: String,
    /// The environment that it is about.
    pub environment: String,
    /// Where it was seen, as `cluster/namespace`.
    pub source: String,
    /// When.
    pub at: Timestamp,
    /// What.
    pub facts: Vec<Seen>,
}

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// Which need.
    pub need: Need,
    /// Whether it held; none when it could not be seen.
    pub holds: Option<bool>,
    /// In a person's words.
    pub detail: String,
}

/// What a person answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attestation {
    /// The change.
    pub change: String,
    /// The environment.
    pub environment: String,
    /// What holds.
    pub need: Need,
    /// Until when they answer for it.
    pub until: Timestamp,
    /// Why they know.
    pub reason: String,
}

/// Why a bundle or an attestation says nothing.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The envelope or a signature.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// What it says.
    #[error("{what} says nothing here: {why}")]
    DoesNotFit {
        /// The file.
        what: String,
        /// Why.
        why: String,
    },
}

/// Opens a bundle: by somebody who may observe, about this change and environment, not from the future, and seen after the door was
/// shut (`since`), where that is known. With the signer's name.
pub fn open_bundle(
    envelope: &Envelope,
    keyring: &Keyring,
    change: &str,
    since: Option<Timestamp>,
    now: Timestamp,
    what: &str,
) -> Result<(Bundle, String), BundleError> {
    let (payload, signers) = envelope.open(BUNDLE, keyring, what)?;
    let refuse = |why: String| BundleError::DoesNotFit {
        what: what.to_owned(),
        why,
    };
    let by = who_may(&signers, keyring, May::Observe).map_err(refuse)?;
    let bundle: Bundle =
        serde_json::from_slice(&payload).map_err(|error| refuse(error.to_string()))?;
    about(&bundle.change, &bundle.environment, keyring, change).map_err(refuse)?;
    if now.duration_since(bundle.at).as_secs() < -60 {
        return Err(refuse(format!(
            "it was seen at {}, which is in the future",
            bundle.at
        )));
    }
    if let Some(since) = since.filter(|since| bundle.at < *since) {
        return Err(refuse(format!(
            "it was seen at {}, before the door was shut ({since}): collect it again",
            bundle.at
        )));
    }
    if now.duration_since(bundle.at) > keyring.bundle_age() {
        return Err(refuse(format!(
            "it was seen at {}, and may be {} s old",
            bundle.at,
            keyring.bundle_age().as_secs()
        )));
    }
    Ok((bundle, by))
}

/// Opens an attestation: by somebody who may attest, about this change and environment, not over. With the signer's name.
pub fn open_attestation(
    envelope: &Envelope,
    keyring: &Keyring,
    change: &str,
    now: Timestamp,
    what: &str,
) -> Result<(Attestation, String), BundleError> {
    let (payload, signers) = envelope.open(ATTESTATION, keyring, what)?;
    let refuse = |why: String| BundleError::DoesNotFit {
        what: what.to_owned(),
        why,
    };
    let by = who_may(&signers, keyring, May::Attest).map_err(refuse)?;
    let attestation: Attestation =
        serde_json::from_slice(&payload).map_err(|error| refuse(error.to_string()))?;
    about(
        &attestation.change,
        &attestation.environment,
        keyring,
        change,
    )
    .map_err(refuse)?;
    if attestation.until <= now {
        return Err(refuse(format!("it ended at {}", attestation.until)));
    }
    if attestation.reason.trim().is_empty() {
        return Err(refuse("it has no reason".to_owned()));
    }
    Ok((attestation, by))
}

fn who_may(signers: &[String], keyring: &Keyring, what: May) -> Result<String, String> {
    signers
        .iter()
        .find(|name| keyring.may(name, what))
        .cloned()
        .ok_or_else(|| {
            format!(
                "{} may not sign it (approvers.toml, `may`)",
                signers.join(", ")
            )
        })
}

fn about(change: &str, environment: &str, keyring: &Keyring, wanted: &str) -> Result<(), String> {
    if change != wanted {
        return Err(format!("it is about {change}, not about {wanted}"));
    }
    if environment != keyring.environment() {
        return Err(format!(
            "it is about {environment}, and this is {}",
            keyring.environment()
        ));
    }
    Ok(())
}
