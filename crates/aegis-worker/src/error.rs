//! Why a worker could not be built or started.

use std::net::SocketAddr;

use aegis_model::ErrorCode;
use aegis_store::StoreError;

/// An error of building or starting a worker.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The drain would be cut short by SIGKILL.
    #[error(
        "the drain budgets ({stop_acquiring_s} s to stop acquiring + {drain_s} s drain + {cancel_and_save_s} s cancel and save + {exit_margin_s} s exit margin = {total_s} s) exceed the grace period of {grace_s} s; shorten a budget, or raise terminationGracePeriodSeconds to at least {total_s}"
    )]
    Budgets {
        /// In seconds.
        stop_acquiring_s: f64,
        /// In seconds.
        drain_s: f64,
        /// In seconds.
        cancel_and_save_s: f64,
        /// In seconds.
        exit_margin_s: f64,
        /// In seconds.
        total_s: f64,
        /// In seconds.
        grace_s: f64,
    },
    /// No handler was given.
    #[error("the worker has no handler; add one with `.handler(…)`")]
    NoHandler,
    /// Two handlers for one (queue, kind).
    #[error("kind `{kind}` has two handlers for queue `{queue}`; keep one")]
    TwoHandlers {
        /// The kind.
        kind: String,
        /// The queue.
        queue: String,
    },
    /// A setting outside of its bounds.
    #[error("{name} is {found}; use {bounds}")]
    Setting {
        /// The setting, with its unit.
        name: &'static str,
        /// As given.
        found: String,
        /// What is possible.
        bounds: &'static str,
    },
    /// The address for health and metrics cannot be had.
    #[error(
        "the worker cannot listen on {address} for health and metrics; give another address, port 0 for a free one, or none"
    )]
    Listen {
        /// As given.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The renewal thread or the signal handlers could not be made.
    #[error("the worker could not start its {what}")]
    Start {
        /// Which part.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database refused the registration.
    #[error("the worker could not be registered")]
    Register {
        /// Why.
        #[source]
        source: StoreError,
    },
}

impl WorkerError {
    /// The stable code, where the error has one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Budgets { .. } => Some(ErrorCode::BUDGETS),
            Self::Register { source } => source.code(),
            _ => None,
        }
    }

    /// The process's exit code for it: 2 for what a person has to configure, 5 for the database.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Register { .. } => 5,
            _ => 2,
        }
    }
}
