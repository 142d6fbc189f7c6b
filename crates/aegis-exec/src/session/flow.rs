//! One request and its replies: a future that runs beside the conversation.

use std::sync::{Mutex, PoisonError};

use aegis_protocol::{Answer, Checkpoint, Reply, SaveStep, StepRequest, ToHandler};
use aegis_worker::{EngineStop, TaskContext, TaskError};
use serde_json::Value;
use tokio::sync::oneshot;

use super::millis;
use crate::frame::Order;
use crate::link::Orders;

/// The name and key of a step or operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    name: String,
    key: String,
}

impl Place {
    pub(super) fn new(name: &str, key: &str) -> Self {
        Self {
            name: name.to_owned(),
            key: key.to_owned(),
        }
    }
}

/// What the place of an ended flow was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum At {
    Step(Place),
    Operation(Place),
    Nowhere,
}

/// How a flow ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) place: At,
    /// What the engine raised in it.
    pub(super) raised: Option<EngineStop>,
    /// An answer that no request waits for yet: its handler still calls.
    pub(super) unsent: Option<Answer>,
}

/// Answers requests.
#[derive(Clone)]
pub(super) struct Replies {
    orders: Orders,
    pub(super) ctx: TaskContext<Value>,
}

impl Replies {
    pub(super) fn new(orders: Orders, ctx: TaskContext<Value>) -> Self {
        Self { orders, ctx }
    }

    pub(super) fn send(&self, id: u64, answer: Answer) {
        say(
            &self.orders,
            &ToHandler::Reply(Reply {
                id,
                answer,
                valid_for_ms: millis(self.ctx.eligible_for()),
            }),
        );
    }
}

pub(super) fn say(orders: &Orders, message: &ToHandler) {
    match message.to_line() {
        Ok(line) => orders.send(Order::Line(line)),
        Err(error) => tracing::error!(error = %error, "a message to a handler cannot be encoded"),
    }
}

/// Asks the store for a step; when it is not done, has it done and saves it.
pub(super) async fn step(
    replies: Replies,
    request: StepRequest,
    saved: oneshot::Receiver<SaveStep>,
    protocol: Option<i32>,
) -> Ended {
    let asking = Mutex::new(request.id);
    let ctx = replies.ctx.clone();
    let run = || async {
        replies.send(request.id, Answer::Run);
        let Ok(saved) = saved.await else {
            // The conversation is over, and with it this future.
            return std::future::pending().await;
        };
        *asking.lock().unwrap_or_else(PoisonError::into_inner) = saved.id;
        Ok(saved.value)
    };
    let done = ctx
        .step::<Value, _, _>(&request.name, &request.key, run)
        .await;
    let id = *asking.lock().unwrap_or_else(PoisonError::into_inner);
    let (answer, raised) = match done {
        Ok(value) if id == request.id => {
            let protocol = protocol.unwrap_or_else(|| ctx.protocol_range().writes());
            (Answer::Known { protocol, value }, None)
        }
        Ok(_) => (Answer::Saved, None),
        Err(error) => refused(error),
    };
    replies.send(id, answer);
    Ended {
        place: At::Step(Place::new(&request.name, &request.key)),
        raised,
        unsent: None,
    }
}

/// Saves a checkpoint.
pub(super) async fn checkpoint(replies: Replies, request: Checkpoint) -> Ended {
    let (answer, raised) = match replies.ctx.save_checkpoint(&request.value).await {
        Ok(()) => (Answer::Saved, None),
        Err(error) => refused(error),
    };
    replies.send(request.id, answer);
    Ended {
        place: At::Nowhere,
        raised,
        unsent: None,
    }
}

/// A request that was not done, as an answer; and whether the execution is over.
pub(super) fn refused(error: TaskError) -> (Answer, Option<EngineStop>) {
    let (code, retryable) = match &error {
        TaskError::Retryable { code, .. } => (code.as_str(), true),
        TaskError::Terminal { code, .. } => (code.as_str(), false),
        TaskError::Engine(EngineStop::LeaseLost) => ("lease_lost", true),
        TaskError::Engine(EngineStop::EffectUnknown { .. }) => ("effect_unknown", false),
        TaskError::Engine(EngineStop::QuietPeriod { .. }) => ("quiet_period", true),
        TaskError::Engine(EngineStop::Cancelled { .. }) => ("cancelled", true),
        TaskError::Engine(EngineStop::SettlingOnly) => ("settling_only", false),
        _ => ("engine", true),
    };
    let code = code.to_owned();
    let message = match &error {
        TaskError::Retryable { message, .. } | TaskError::Terminal { message, .. } => {
            message.clone()
        }
        other => other.to_string(),
    };
    let raised = match error {
        TaskError::Engine(stop) => Some(stop),
        _ => None,
    };
    let over = raised.is_some();
    let answer = Answer::Error {
        code,
        message,
        retryable,
        over,
    };
    (answer, raised)
}
