//! The approval of a contract: signed, for one line of the lock, one ledger, one environment, in time, by enough people other than
//! the author, and once: for one attempt.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::envelope::{Envelope, EnvelopeError};
use super::keyring::{Keyring, May};

/// The kind of document.
pub const TYPE: &str = "application/vnd.aegis.contract-approval.v1+json";

/// What people sign. All who approve sign the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The line of `migrations.lock`: `id phase sha256`.
    pub lock_line: String,
    /// The ledger of the target that it is for.
    pub ledger: String,
    /// The environment that it is for.
    pub environment: String,
    /// The attempt that it is for: a door that was opened again voids what was signed for it.
    pub attempt: i32,
    /// When the door of that attempt was shut, which nobody knows before.
    pub closed_at: Timestamp,
    /// From then on it counts no more.
    pub not_after: Timestamp,
    /// Who wrote the change, and so cannot approve it.
    pub author: String,
    /// Who is asked to approve.
    pub approvers: Vec<String>,
}

/// An approval that counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approved {
    /// SHA-256 of what was signed, in hex: it is used up by one contract.
    pub digest: String,
    /// Who signed.
    pub by: Vec<String>,
    /// What they signed.
    pub approval: Approval,
}

/// What an approval must be for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The line of the lock that is about to run.
    pub lock_line: &'a str,
    /// The ledger of this target.
    pub ledger: &'a str,
    /// The attempt that is under way.
    pub attempt: i32,
    /// When its door was shut.
    pub closed_at: Timestamp,
    /// The time of the target.
    pub now: Timestamp,
}

/// Why an approval does not count.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The envelope or a signature.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// There is none.
    #[error(
        "no approval of this contract was handed in; `--approval FILE` names one, and `aegis migrate contract approve` makes it"
    )]
    None,
    /// It is for something else, too late, or by too few.
    #[error("{what} does not approve this contract: {why}")]
    DoesNotCount {
        /// The file.
        what: String,
        /// Why, with both sides.
        why: String,
    },
}

impl Approval {
    /// The bytes that are signed.
    pub fn payload(&self) -> Result<Vec<u8>, ApprovalError> {
        serde_json::to_vec(self).map_err(|error| ApprovalError::DoesNotCount {
            what: "the approval".to_owned(),
            why: error.to_string(),
        })
    }
}

/// Signatures that were counted, and those that count for nothing.
#[derive(Debug, Clone)]
pub struct Signed {
    /// What was signed, and by whom with right. Perhaps not by enough.
    pub approved: Approved,
    /// Whose signature counts for nothing, and why.
    pub without_right: Vec<String>,
}

/// Judges the envelopes that people handed in: their signatures are counted together when they are over the same bytes.
pub fn judge(
    envelopes: &[(String, Envelope)],
    keyring: &Keyring,
    wanted: &Wanted<'_>,
) -> Result<Approved, ApprovalError> {
    let signed = signed(envelopes, keyring, wanted)?;
    let by = signed.approved.by.len();
    if by >= keyring.approvals() {
        return Ok(signed.approved);
    }
    let mut why = format!("{by} of {} needed signed", keyring.approvals());
    for reason in signed.without_right {
        why.push_str("; ");
        why.push_str(&reason);
    }
    Err(ApprovalError::DoesNotCount {
        what: envelopes
            .first()
            .map_or("the approval", |(what, _)| what.as_str())
            .to_owned(),
        why,
    })
}

/// Who has signed, for somebody who still collects signatures.
pub fn signed(
    envelopes: &[(String, Envelope)],
    keyring: &Keyring,
    wanted: &Wanted<'_>,
) -> Result<Signed, ApprovalError> {
    let refuse = |what: &str, why: String| ApprovalError::DoesNotCount {
        what: what.to_owned(),
        why,
    };
    let mut first: Option<(Vec<u8>, Approval)> = None;
    let mut by = BTreeSet::new();
    let mut without_right = BTreeSet::new();
    for (what, envelope) in envelopes {
        let (payload, signers) = envelope.open(TYPE, keyring, what)?;
        let approval: Approval =
            serde_json::from_slice(&payload).map_err(|error| refuse(what, error.to_string()))?;
        fits(&approval, keyring, wanted).map_err(|why| refuse(what, why))?;
        if let Some((bytes, _)) = &first
            && *bytes != payload
        {
            return Err(refuse(
                what,
                "it is not the same document that the others signed; let all sign one file"
                    .to_owned(),
            ));
        }
        for name in signers {
            if name == approval.author {
                without_right.insert(format!("{name} is the author"));
            } else if !keyring.may(&name, May::Approve) {
                without_right.insert(format!("{name} may not approve"));
            } else if !approval.approvers.contains(&name) {
                without_right.insert(format!("{name} is not among those who were asked"));
            } else {
                by.insert(name);
            }
        }
        first.get_or_insert((payload, approval));
    }
    let (payload, approval) = first.ok_or(ApprovalError::None)?;
    Ok(Signed {
        approved: Approved {
            digest: hex(&Sha256::digest(&payload)),
            by: by.into_iter().collect(),
            approval,
        },
        without_right: without_right.into_iter().collect(),
    })
}

fn fits(approval: &Approval, keyring: &Keyring, wanted: &Wanted<'_>) -> Result<(), String> {
    if approval.lock_line != wanted.lock_line {
        return Err(format!(
            "it is for the line `{}`, and `{}` is about to run",
            approval.lock_line, wanted.lock_line
        ));
    }
    if approval.ledger != wanted.ledger {
        return Err(format!(
            "it is for ledger {}, and this is ledger {}",
            approval.ledger, wanted.ledger
        ));
    }
    if approval.environment != keyring.environment() {
        return Err(format!(
            "it is for environment {}, and this is {}",
            approval.environment,
            keyring.environment()
        ));
    }
    if (approval.attempt, approval.closed_at) != (wanted.attempt, wanted.closed_at) {
        return Err(format!(
            "it is for attempt {} (closed at {}), and attempt {} (closed at {}) is under way; what was signed for another one is void",
            approval.attempt, approval.closed_at, wanted.attempt, wanted.closed_at
        ));
    }
    if approval.not_after <= wanted.now {
        return Err(format!("it ended at {}", approval.not_after));
    }
    if approval.author.trim().is_empty() {
        return Err("it names no author, so nobody could be excluded".to_owned());
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}
