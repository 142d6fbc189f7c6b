//! The guarded writes of an operation, as the writer sends them.

use aegis_model::Class;
use aegis_store::Store;
use aegis_store::guarded::{Dispatch, Dispatched, OperationResult};

use crate::writer::{Position, Sent, Verb};

/// The dispatch commit.
pub(crate) struct DispatchVerb {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) class: Class,
    pub(crate) protocol: i32,
    pub(crate) timeout_ms: i64,
    pub(crate) quiet_ms: i64,
    pub(crate) key_valid_ms: Option<i64>,
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) request: Vec<u8>,
    pub(crate) release: String,
    pub(crate) probed: bool,
    /// How often it was dispatched before, as far as is known.
    pub(crate) before: i32,
}

/// What the dispatch commit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Go {
    /// The call may leave.
    Yes { dispatches: i32 },
    /// The ledger refuses: look into it.
    Refused,
}

impl Verb for DispatchVerb {
    type Out = Go;

    fn word(&self) -> &'static str {
        "dispatch"
    }

    fn operation(&self) -> Option<&str> {
        Some(&self.id)
    }

    async fn send(&self, store: &Store, at: Position) -> Sent<Go> {
        let dispatch = Dispatch {
            held: at.held,
            lane: at.lane,
            operation: self.id.clone(),
            name: self.name.clone(),
            key: self.key.clone(),
            class: self.class,
            protocol: self.protocol,
            timeout_ms: self.timeout_ms,
            quiet_ms: self.quiet_ms,
            key_valid_ms: self.key_valid_ms,
            fingerprint: self.fingerprint.clone(),
            request: Some(self.request.clone()),
            release: self.release.clone(),
            probed: self.probed,
        };
        Ok(store
            .dispatch(dispatch)
            .await?
            .map(|dispatched| match dispatched {
                Dispatched::Go { saved, dispatches } => (Some(saved), Go::Yes { dispatches }),
                Dispatched::Refused => (None, Go::Refused),
            }))
    }

    /// A refused dispatch does not move the rev, so an applied one went.
    fn read_back(&self) -> Go {
        Go::Yes {
            dispatches: self.before + 1,
        }
    }

    fn protocol(&self) -> i32 {
        self.protocol
    }
}

/// The result.
pub(crate) struct SettleVerb {
    pub(crate) id: String,
    pub(crate) succeeded: bool,
    pub(crate) protocol: i32,
    pub(crate) result: Vec<u8>,
    pub(crate) note: Option<String>,
}

impl Verb for SettleVerb {
    type Out = ();

    fn word(&self) -> &'static str {
        "settle"
    }

    fn operation(&self) -> Option<&str> {
        Some(&self.id)
    }

    async fn send(&self, store: &Store, at: Position) -> Sent<()> {
        let result = OperationResult {
            held: at.held,
            lane: at.lane,
            operation: self.id.clone(),
            succeeded: self.succeeded,
            protocol: self.protocol,
            result: Some(self.result.clone()),
            note: self.note.clone(),
        };
        Ok(store.settle(result).await?.map(|saved| (Some(saved), ())))
    }

    fn read_back(&self) {}

    fn protocol(&self) -> i32 {
        self.protocol
    }
}

/// The dispatch is taken back: for sure nothing was applied.
pub(crate) struct WithdrawVerb {
    pub(crate) id: String,
    pub(crate) protocol: i32,
    pub(crate) note: String,
}

impl Verb for WithdrawVerb {
    type Out = ();

    fn word(&self) -> &'static str {
        "withdraw"
    }

    fn operation(&self) -> Option<&str> {
        Some(&self.id)
    }

    async fn send(&self, store: &Store, at: Position) -> Sent<()> {
        let saved = store
            .withdraw(at.held, at.lane, self.id.clone(), self.note.clone())
            .await?;
        Ok(saved.map(|saved| (Some(saved), ())))
    }

    fn read_back(&self) {}

    fn protocol(&self) -> i32 {
        self.protocol
    }
}
