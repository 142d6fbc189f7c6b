//! Cancellation of an execution, with its cause.
//!
//! Invariants: the first cause stands, except that a lost lease replaces every other: what is not ours any more cannot be
//! handed back. Cancelling is a request; only the handler's return stops an execution.
//!
//! Never: abort a handler. Its blocking parts would go on while the task is believed to have stopped.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use aegis_model::CancelCause;
use tokio_util::sync::CancellationToken;

/// Why an execution was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// The worker drains and its time is over: save a checkpoint and return, the task is handed back uncharged.
    Drain,
    /// The worker lost its eligibility: nothing can be saved any more.
    LeaseLost,
    /// Somebody asked for the task's end.
    Requested,
    /// The task's total deadline has passed.
    Deadline,
    /// This attempt took longer than start-to-close.
    StartToClose,
}

impl CancelReason {
    /// The word used in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::LeaseLost => "lease_lost",
            Self::Requested => "requested",
            Self::Deadline => "deadline",
            Self::StartToClose => "start_to_close",
        }
    }
}

impl From<CancelCause> for CancelReason {
    fn from(cause: CancelCause) -> Self {
        match cause {
            CancelCause::Requested => Self::Requested,
            CancelCause::Deadline => Self::Deadline,
            CancelCause::StartToClose => Self::StartToClose,
        }
    }
}

/// The runtime's side: one per execution.
#[derive(Debug, Default)]
pub(crate) struct Canceller {
    token: CancellationToken,
    reason: Mutex<Option<(CancelReason, Instant)>>,
}

impl Canceller {
    /// Asks to stop. True when nobody had asked before.
    pub(crate) fn cancel(&self, reason: CancelReason) -> bool {
        let first = {
            let mut stored = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *stored {
                None => {
                    *stored = Some((reason, Instant::now()));
                    true
                }
                Some((standing, _)) => {
                    if reason == CancelReason::LeaseLost {
                        *standing = reason;
                    }
                    false
                }
            }
        };
        self.token.cancel();
        first
    }

    pub(crate) fn reason(&self) -> Option<CancelReason> {
        self.since().map(|(reason, _)| reason)
    }

    /// Why, and when it was asked first.
    pub(crate) fn since(&self) -> Option<(CancelReason, Instant)> {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// The handler's side.
    pub(crate) fn view(&self) -> Cancellation<'_> {
        Cancellation { canceller: self }
    }
}

/// The handler's side of a cancellation: look, or wait for it.
///
/// ```no_run
/// # async fn example(ctx: aegis_worker::TaskContext) -> Result<(), aegis_worker::TaskError> {
/// tokio::select! {
///     reason = ctx.cancelled().wait() => Err(ctx.stop(reason)),
///     () = tokio::time::sleep(std::time::Duration::from_secs(60)) => Ok(()),
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Cancellation<'a> {
    canceller: &'a Canceller,
}

impl Cancellation<'_> {
    /// Was this execution asked to stop?
    pub fn is_cancelled(&self) -> bool {
        self.canceller.token.is_cancelled()
    }

    /// Why; `None` while nobody has asked.
    pub fn reason(&self) -> Option<CancelReason> {
        self.canceller.reason()
    }

    /// Returns when this execution is asked to stop.
    pub async fn wait(self) -> CancelReason {
        self.canceller.token.cancelled().await;
        // The reason is stored before the token fires.
        self.canceller.reason().unwrap_or(CancelReason::Requested)
    }

    /// A token to hand to code that knows nothing of Aegis.
    pub fn token(&self) -> CancellationToken {
        self.canceller.token.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stands_but_a_lost_lease_replaces_it() {
        let canceller = Canceller::default();
        assert!(canceller.cancel(CancelReason::Drain));
        assert!(!canceller.cancel(CancelReason::Requested));
        assert_eq!(canceller.reason(), Some(CancelReason::Drain));
        assert!(!canceller.cancel(CancelReason::LeaseLost));
        assert_eq!(canceller.reason(), Some(CancelReason::LeaseLost));
        assert!(canceller.view().is_cancelled());
    }
}
