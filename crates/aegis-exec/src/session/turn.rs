//! Whose turn it is in each step and operation: what a handler may say about which one, and who hears it.
//!
//! Invariant: a handler settles only what it was allowed to call and has not settled yet, and answers only a probe that it was
//! asked for. Anything else is a fault, never a guess.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aegis_protocol::{Answer, FromHandler, Probed, SaveStep, Settle, StepRequest};
use tokio::sync::{mpsc, oneshot};

use super::flow::{At, Place};

/// What a handler says within an operation.
#[derive(Debug)]
pub(super) enum Said {
    Settle(Settle),
    Probed(Probed),
}

/// The operation's side of its turns.
pub(super) struct Desk {
    pub(super) said: mpsc::UnboundedReceiver<Said>,
    pub(super) allowed: Arc<Allowed>,
}

/// What the handler may say now.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    settle: AtomicBool,
    probed: AtomicBool,
    used: AtomicBool,
}

impl Allowed {
    /// Was the handler told to call or to probe?
    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::SeqCst)
    }

    /// The handler was told to call.
    pub(super) fn allow_settle(&self) {
        self.used.store(true, Ordering::SeqCst);
        self.settle.store(true, Ordering::SeqCst);
    }

    /// The handler was told to probe.
    pub(super) fn allow_probed(&self) {
        self.used.store(true, Ordering::SeqCst);
        self.probed.store(true, Ordering::SeqCst);
    }
}

struct Open {
    to: mpsc::UnboundedSender<Said>,
    allowed: Arc<Allowed>,
}

/// What a flow left for a handler that was still calling when it ended.
struct Left {
    answer: Answer,
    allowed: Arc<Allowed>,
}

/// All steps and operations of a conversation.
#[derive(Default)]
pub(super) struct Turns {
    steps: HashMap<Place, oneshot::Sender<SaveStep>>,
    operations: HashMap<Place, Open>,
    left: HashMap<Place, Left>,
}

impl Turns {
    /// A step is asked for. One that is open already keeps its turn: the context refuses the second use.
    pub(super) fn step(&mut self, step: &StepRequest) -> oneshot::Receiver<SaveStep> {
        let (to, saved) = oneshot::channel();
        self.steps
            .entry(Place::new(&step.name, &step.key))
            .or_insert(to);
        saved
    }

    /// An operation is asked for; see [`Turns::step`].
    pub(super) fn operation(&mut self, place: &Place) -> Desk {
        let (to, said) = mpsc::unbounded_channel();
        let allowed = Arc::new(Allowed::default());
        let open = Open {
            to,
            allowed: Arc::clone(&allowed),
        };
        self.operations.entry(place.clone()).or_insert(open);
        Desk { said, allowed }
    }

    /// Passes a message on to whom it is for. `Ok(Some(…))` is the answer to one that came late.
    pub(super) fn take(&mut self, message: FromHandler) -> Result<Option<Answer>, String> {
        match message {
            FromHandler::SaveStep(saved) => {
                let place = Place::new(&saved.name, &saved.key);
                let step = self.steps.remove(&place);
                let sent = step.map(|step| step.send(saved));
                match sent {
                    Some(Ok(())) => Ok(None),
                    _ => Err("for a step that was not answered `run`".to_owned()),
                }
            }
            FromHandler::Settle(settle) => {
                let place = Place::new(&settle.name, &settle.key);
                self.pass(&place, Said::Settle(settle))
            }
            FromHandler::Probed(probed) => {
                let place = Place::new(&probed.name, &probed.key);
                self.pass(&place, Said::Probed(probed))
            }
            _ => Err("where it says nothing".to_owned()),
        }
    }

    fn pass(&self, place: &Place, said: Said) -> Result<Option<Answer>, String> {
        let (is_settle, why) = match &said {
            Said::Settle(_) => (true, "for an operation that was not answered `call`"),
            Said::Probed(_) => (false, "for an operation that was not answered `probe`"),
        };
        let taken = |allowed: &Allowed| {
            let which = if is_settle {
                &allowed.settle
            } else {
                &allowed.probed
            };
            which.swap(false, Ordering::SeqCst)
        };
        if let Some(open) = self.operations.get(place) {
            if taken(&open.allowed) {
                // A flow that is just ending answers it with its outcome.
                open.to.send(said).ok();
                return Ok(None);
            }
        } else if let Some(left) = self.left.get(place)
            && taken(&left.allowed)
        {
            return Ok(Some(left.answer.clone()));
        }
        Err(why.to_owned())
    }

    /// A flow has ended.
    pub(super) fn close(&mut self, at: At, unsent: Option<Answer>) {
        match at {
            // A second use that was refused does not close the first: its channel is another one, and still open.
            At::Step(place) => {
                if self
                    .steps
                    .get(&place)
                    .is_some_and(oneshot::Sender::is_closed)
                {
                    self.steps.remove(&place);
                }
            }
            At::Operation(place) => {
                if let Some(open) = self.operations.get(&place)
                    && open.to.is_closed()
                    && let Some(open) = self.operations.remove(&place)
                    && let Some(answer) = unsent
                {
                    self.left.insert(
                        place,
                        Left {
                            answer,
                            allowed: open.allowed,
                        },
                    );
                }
            }
            At::Nowhere => {}
        }
    }
}
