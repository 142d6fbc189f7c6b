//! Why a verb of the contract ends early, with the exit codes of the design.

use super::approval::ApprovalError;
use super::attempt::AttemptError;
use super::bundle::BundleError;
use super::door::DoorError;
use super::envelope::EnvelopeError;
use super::fact::Block;
use super::gate::GateError;
use super::keyring::KeyringError;
use super::ready::Lack;
use crate::ledger::LedgerError;
use crate::run::RunError;
use crate::run::lost::{is_lost_below, whole_of};

/// Why nothing was changed, or nothing more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The change has none.
    #[error("{0} has no [contract] in this folder; write it, and `aegis migrate seal`")]
    None(String),
    /// What is not shown.
    #[error(
        "the contract of {change} is blocked, and nothing was dropped\n{}",
        told(blocks)
    )]
    Blocked {
        /// The change.
        change: String,
        /// What blocks.
        blocks: Vec<Block>,
    },
    /// What is in the way of closing.
    #[error(
        "the door of {change} stays open: what its contract needs later is not there\n{}",
        lacking(lacks)
    )]
    NotReady {
        /// The change.
        change: String,
        /// What is lacking.
        lacks: Vec<Lack>,
    },
    /// Something of another kind that would not be safe.
    #[error("{0}")]
    Unsafe(String),
    /// The keyring.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// The approval.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A bundle or an attestation.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A key or an envelope.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The attempt.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    /// The runner.
    #[error(transparent)]
    Run(#[from] RunError),
}

fn told(blocks: &[Block]) -> String {
    let lines: Vec<_> = blocks
        .iter()
        .map(|block| format!("  {}: {}\n    {}", block.need, block.why, block.way_out))
        .collect();
    lines.join("\n")
}

fn lacking(lacks: &[Lack]) -> String {
    let lines: Vec<_> = lacks
        .iter()
        .map(|lack| format!("  {}: {}\n    {}", lack.what, lack.said(), lack.way_out))
        .collect();
    lines.join("\n")
}

impl ContractError {
    /// With everything below it, each said once; a lost connection as the runner tells it.
    pub fn whole(&self) -> String {
        whole_of(self)
    }

    /// The exit code of the design page.
    pub fn exit_code(&self) -> u8 {
        match self {
            lost if is_lost_below(lost) => 17,
            Self::None(_)
            | Self::Keyring(_)
            | Self::Envelope(EnvelopeError::Key { .. })
            | Self::Attempt(AttemptError::Door(DoorError::NoSuchRole(_))) => 2,
            Self::Attempt(AttemptError::NotClosed { .. }) => 21,
            Self::Attempt(
                AttemptError::Database(_)
                | AttemptError::Unreadable(_)
                | AttemptError::Door(DoorError::Database(_)),
            ) => 20,
            Self::Run(error) => error.exit_code(),
            Self::Blocked { .. }
            | Self::NotReady { .. }
            | Self::Unsafe(_)
            | Self::Approval(_)
            | Self::Bundle(_)
            | Self::Envelope(_)
            | Self::Attempt(_) => 18,
        }
    }
}

impl From<tokio_postgres::Error> for ContractError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Run(error.into())
    }
}

impl From<LedgerError> for ContractError {
    fn from(error: LedgerError) -> Self {
        Self::Run(error.into())
    }
}

impl From<GateError> for ContractError {
    fn from(error: GateError) -> Self {
        match error {
            GateError::Evidence(why) => Self::Unsafe(why),
            GateError::Database(error) => error.into(),
        }
    }
}
