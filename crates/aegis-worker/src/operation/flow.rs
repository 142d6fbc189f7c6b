//! How an operation is performed: look into the ledger, dispatch by a commit, call, settle by a commit.
//!
//! Invariants: the call leaves only after an applied dispatch and only while the worker believes to be eligible; what the
//! ledger has answered is handed out, never asked again; a blind operation is dispatched once.
//!
//! Never: guess. What nobody knows becomes `unknown`, and a person decides.

use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use aegis_model::limits::duration_ms;
use aegis_model::operation::{NextStep, next_step};
use aegis_model::{Class, ErrorCode, OperationState, Resolution};
use aegis_store::guarded::LedgerEntry;
use aegis_telemetry::Role;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::first_use;
use crate::execution::{Execution, Used};
use crate::metrics::Answered;
use crate::operation::builder::{Plan, ProbeFn};
use crate::operation::call::{CallError, FencingToken, OperationCall, OperationError, Probe};
use crate::operation::fingerprint::{fingerprint, shown};
use crate::operation::id::operation_id;
use crate::operation::verbs::{DispatchVerb, Go, SettleVerb, WithdrawVerb};
use crate::parts::Ledger;
use crate::points::{Cut, Subject};
use crate::poison::Poison;
use crate::protocols::Part;
use crate::self_fence::{boot_ns, to_ns};
use crate::task_error::{EngineStop, TaskError};
use crate::traced::new_span;
use crate::writer::Pause;

/// Times that the ledger is looked into again after it refused a dispatch.
const LOOKS_MAX: usize = 3;

/// One use of an operation.
struct Flow<'a> {
    execution: &'a Arc<Execution>,
    plan: Plan,
    id: String,
    fingerprint: Vec<u8>,
}

/// What the ledger says that has to be done.
enum Turn {
    Dispatch {
        /// No request of before can be on its way: it never left, or it is known that it did not happen.
        clean: bool,
        dispatches: i32,
        /// When the downstream may have forgotten the key of an earlier request, on the boot-time clock.
        forgets_ns: Option<i64>,
    },
    Probe {
        dispatches: i32,
    },
    Answer(Box<LedgerEntry>),
}

/// Performs an operation, or answers from the ledger.
pub(crate) async fn perform<T, F, Fut>(
    execution: &Arc<Execution>,
    plan: Plan,
    probe: Option<ProbeFn<'_, T>>,
    call: F,
) -> Result<T, OperationError>
where
    T: Serialize + DeserializeOwned + Send,
    F: Fn(OperationCall) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, CallError>> + Send,
{
    first_use(execution, Used::Operation, &plan.name, &plan.key)?;
    let flow = Flow {
        id: operation_id(
            execution.claim.held.task,
            &plan.name,
            &plan.key,
            plan.version,
        ),
        fingerprint: fingerprint(&plan.name, plan.class, &plan.request),
        execution,
        plan,
    };
    for _ in 0..LOOKS_MAX {
        let (sending, probed) = match flow.turn().await? {
            Turn::Answer(entry) => return flow.answer(&entry),
            Turn::Dispatch {
                clean,
                dispatches,
                forgets_ns,
            } => (
                Sending {
                    clean,
                    dispatches,
                    forgets_ns,
                },
                false,
            ),
            Turn::Probe { dispatches } => match flow.probe(probe.as_ref(), dispatches).await? {
                Some(value) => return Ok(value),
                None => (
                    Sending {
                        clean: true,
                        dispatches,
                        forgets_ns: None,
                    },
                    true,
                ),
            },
        };
        if let Some(value) = flow.dispatch(sending, probed, &call).await? {
            return Ok(value);
        }
        flow.reload().await?;
    }
    Err(TaskError::retryable(
        "operation_refused",
        format!(
            "the ledger refused to dispatch operation {} {LOOKS_MAX} times",
            flow.id
        ),
    )
    .into())
}

/// What is known while an operation is dispatched, perhaps several times.
struct Sending {
    /// Could no request of before, or of this loop, still arrive?
    clean: bool,
    dispatches: i32,
    forgets_ns: Option<i64>,
}

impl Flow<'_> {
    /// Whose turn it is, by the ledger.
    async fn turn(&self) -> Result<Turn, OperationError> {
        let parts = self.execution.parts().await?;
        let (entry, age) = {
            let ledger = parts.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            (
                ledger.entries.get(&self.id).cloned(),
                ledger.read_at.elapsed(),
            )
        };
        let Some(entry) = entry else {
            self.execution.not_while_settling()?;
            self.execution.may_begin()?;
            return Ok(Turn::Dispatch {
                clean: true,
                dispatches: 0,
                forgets_ns: None,
            });
        };
        if entry.fingerprint != self.fingerprint {
            return Err(self.other_request(&entry).into());
        }
        let dispatches = entry.dispatches;
        let left = |ms: Option<i64>| {
            ms.map(|ms| ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
        };
        match next_step(
            entry.state,
            entry.class,
            entry.resolution,
            left(entry.quiet_left_ms),
            left(entry.key_left_ms),
        ) {
            NextStep::Answer => Ok(Turn::Answer(Box::new(entry))),
            NextStep::Dispatch => {
                self.execution.not_while_settling()?;
                self.execution.may_begin()?;
                Ok(Turn::Dispatch {
                    clean: true,
                    dispatches,
                    forgets_ns: None,
                })
            }
            NextStep::Repeat => {
                self.execution.may_begin()?;
                let forgets_ns = left(entry.key_left_ms)
                    .map(|ms| boot_ns().saturating_add(ms.saturating_mul(1_000_000)));
                Ok(Turn::Dispatch {
                    clean: false,
                    dispatches,
                    forgets_ns,
                })
            }
            NextStep::Probe => {
                self.execution.may_begin()?;
                Ok(Turn::Probe { dispatches })
            }
            NextStep::WaitQuiet { left_ms } => {
                Err(self.quiet(Duration::from_millis(left_ms.unsigned_abs())))
            }
            NextStep::Doubt => Err(self.doubt(match (entry.state, entry.class) {
                (OperationState::Dispatched, Class::Idempotent) => {
                    "the downstream may have forgotten its key"
                }
                _ => "nobody knows whether it happened",
            })),
        }
    }

    /// Asks the downstream. `None`: it did not happen.
    async fn probe<T>(
        &self,
        probe: Option<&ProbeFn<'_, T>>,
        dispatches: i32,
    ) -> Result<Option<T>, OperationError>
    where
        T: Serialize,
    {
        let Some(probe) = probe else {
            return Err(self.doubt("it is queryable, and its handler has no probe"));
        };
        self.at(Cut::BeforeProbe).await;
        let asked =
            tokio::time::timeout(self.plan.timeout, probe(self.call(dispatches, None))).await;
        self.at(Cut::Probed).await;
        match asked {
            Ok(Ok(Probe::Happened(value))) => {
                self.settle_value(&value, Some("the probe found that it happened"))
                    .await?;
                Ok(Some(value))
            }
            Ok(Ok(Probe::DidNotHappen)) => Ok(None),
            Ok(Ok(Probe::CannotTell)) => Err(self.doubt("its probe cannot tell")),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(TaskError::retryable(
                "probe_timeout",
                format!(
                    "the probe of operation {} did not answer within {} ms",
                    self.id,
                    self.plan.timeout.as_millis()
                ),
            )
            .into()),
        }
    }

    /// Dispatches and calls, several times where the class allows it. `None`: the ledger refused, look again.
    async fn dispatch<T, F, Fut>(
        &self,
        sending: Sending,
        probed: bool,
        call: &F,
    ) -> Result<Option<T>, OperationError>
    where
        T: Serialize,
        F: Fn(OperationCall) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, CallError>> + Send,
    {
        let Sending {
            mut clean,
            mut dispatches,
            mut forgets_ns,
        } = sending;
        let mut pause = Pause::new();
        let mut message = String::new();
        for round in 0..=self.plan.repeats {
            if round > 0 {
                let cancelled = self.execution.canceller.token();
                tokio::select! {
                    () = cancelled.cancelled() => self.execution.may_begin()?,
                    () = pause.wait() => {}
                }
            }
            self.at(Cut::Before).await;
            let asked_ns = boot_ns();
            // Anew for each call: the ledger counts timeout and quiet period from the dispatch.
            match self
                .execution
                .write(self.dispatch_verb(probed, dispatches))
                .await?
            {
                Go::Refused => return Ok(None),
                Go::Yes { dispatches: now } => dispatches = now,
            }
            self.execution.shared.counters.dispatched.add(1);
            self.execution.metrics().dispatched(self.plan.class);
            if forgets_ns.is_none() {
                forgets_ns = self
                    .key_valid()
                    .map(|valid| asked_ns.saturating_add(to_ns(valid)));
            }
            self.at(Cut::Dispatched).await;
            // A worker can be slow here: what was true when the dispatch was applied is asked again before the call leaves.
            if !self.execution.incarnation.fence.is_eligible() || self.execution.is_taken() {
                return Err(self.execution.lose().into());
            }
            // A first request finds a fresh key whenever it arrives; a repeat must find the one of before.
            if !clean && forgets_ns.is_some_and(|forgets_ns| boot_ns() >= forgets_ns) {
                return Err(self.doubt("the downstream may have forgotten its key"));
            }
            let left_at = Instant::now();
            let (span, began) = (new_span(), SystemTime::now());
            let calling = call(self.call(dispatches, Some(span)));
            let called = tokio::time::timeout(self.plan.timeout, calling).await;
            self.at(Cut::Ran).await;
            let answered = Answered::of(&called);
            self.execution.metrics().answered(self.plan.class, answered);
            self.tell_call(span, began, dispatches, answered);
            match called {
                Ok(Ok(value)) => {
                    self.settle_value(&value, None).await?;
                    return Ok(Some(value));
                }
                // An earlier call that left without an answer may have happened, whatever became of this one.
                Ok(Err(CallError::TurnedAway { message: why, .. })) if !clean => {
                    message = why;
                    self.doubtful(left_at, &message)?;
                }
                Ok(Err(
                    CallError::Failed { message, detail }
                    | CallError::TurnedAway { message, detail },
                )) => {
                    self.settle(false, &detail, Some(&message)).await?;
                    return Err(OperationError::Failed {
                        operation: self.id.clone(),
                        message,
                        detail,
                    });
                }
                Ok(Err(CallError::NotApplied { message: why })) => {
                    message = why;
                    if clean {
                        self.withdraw(&message).await?;
                    }
                }
                Ok(Err(CallError::Doubtful { message: why })) => {
                    message = why;
                    self.doubtful(left_at, &message)?;
                    clean = false;
                }
                Err(_) => {
                    message = format!("no answer within {} ms", self.plan.timeout.as_millis());
                    self.doubtful(left_at, &message)?;
                    clean = false;
                }
            }
        }
        let code = if clean {
            "operation_not_applied"
        } else {
            "operation_doubtful"
        };
        Err(TaskError::retryable(
            code,
            format!(
                "operation {} after {} tries: {message}",
                self.id,
                self.plan.repeats + 1
            ),
        )
        .into())
    }

    fn tell_call(&self, span: u64, began: SystemTime, dispatches: i32, answered: Answered) {
        let fields = || {
            vec![
                ("aegis.operation", self.id.as_str().into()),
                ("aegis.operation.name", self.plan.name.as_str().into()),
                ("aegis.operation.class", self.plan.class.word().into()),
                ("aegis.operation.dispatches", i64::from(dispatches).into()),
                ("aegis.operation.answer", answered.word().into()),
            ]
        };
        let error = (answered != Answered::Succeeded).then(|| answered.word().to_owned());
        self.execution
            .tell("aegis.call", Role::Client, Some(span), began, fields, error);
    }

    /// What a lost answer means for this class: repeated, quiet, or a person.
    fn doubtful(&self, left_at: Instant, message: &str) -> Result<(), OperationError> {
        tracing::warn!(task = %self.execution.claim.held.task, operation = %self.id, message, "the answer of an operation was lost");
        match self.plan.class {
            Class::Idempotent | Class::Fenced => Ok(()),
            Class::Queryable => {
                let rest = self.plan.timeout.saturating_sub(left_at.elapsed());
                Err(self.quiet(rest + self.plan.quiet))
            }
            Class::Blind => Err(self.doubt(message)),
        }
    }

    async fn settle_value<T: Serialize>(
        &self,
        value: &T,
        note: Option<&str>,
    ) -> Result<(), TaskError> {
        match serde_json::to_value(value) {
            Ok(value) => self.settle(true, &value, note).await,
            Err(error) => {
                // It has happened: that stands, even when what came back cannot be kept.
                let note = format!("its result could not be encoded: {error}");
                self.settle(true, &Value::Null, Some(&note)).await?;
                Err(error.into())
            }
        }
    }

    async fn settle(
        &self,
        succeeded: bool,
        result: &Value,
        note: Option<&str>,
    ) -> Result<(), TaskError> {
        self.execution
            .write(SettleVerb {
                id: self.id.clone(),
                succeeded,
                protocol: self.protocol(),
                result: result.to_string().into_bytes(),
                note: note.map(str::to_owned),
            })
            .await?;
        self.execution.note_settled(&self.id);
        self.at(Cut::Stored).await;
        Ok(())
    }

    /// The downstream said for sure that nothing was applied, and nothing of before is open: the dispatch is taken back.
    async fn withdraw(&self, message: &str) -> Result<(), TaskError> {
        self.execution
            .write(WithdrawVerb {
                id: self.id.clone(),
                protocol: self.protocol(),
                note: message.to_owned(),
            })
            .await?;
        self.execution.note_settled(&self.id);
        Ok(())
    }

    /// The stored answer.
    fn answer<T: DeserializeOwned>(&self, entry: &LedgerEntry) -> Result<T, OperationError> {
        let operation = self.id.clone();
        match (entry.state, entry.resolution) {
            (OperationState::Failed, _) => {
                return Err(OperationError::Failed {
                    operation,
                    message: entry.note.clone().unwrap_or_default(),
                    detail: entry
                        .result
                        .as_deref()
                        .and_then(|bytes| serde_json::from_slice(bytes).ok())
                        .unwrap_or_default(),
                });
            }
            (_, Some(Resolution::Compensated)) => {
                return Err(OperationError::Compensated { operation });
            }
            (_, Some(Resolution::GiveUp)) => return Err(OperationError::GivenUp { operation }),
            _ => {}
        }
        let bytes = entry.result.as_deref().unwrap_or(b"null");
        self.execution
            .kind
            .protocols
            .decode(Part::Operation, entry.protocol, bytes)
            .map_err(|error| {
                TaskError::retryable("operation_result_invalid", format!("{operation}: {error}"))
                    .into()
            })
    }

    async fn at(&self, cut: Cut) {
        let subject = || Subject::Operation {
            name: self.plan.name.clone(),
            key: self.plan.key.clone(),
        };
        self.execution.at(cut, subject).await;
    }

    async fn reload(&self) -> Result<(), TaskError> {
        let execution = self.execution;
        let task = execution.claim.held.task;
        let mut pause = Pause::new();
        let entries = loop {
            match execution.shared.store.ledger(task).await {
                Ok(entries) => break entries,
                Err(error) => execution.try_again(error, &mut pause).await?,
            }
        };
        let parts = execution.parts().await?;
        *parts.ledger.lock().unwrap_or_else(PoisonError::into_inner) = Ledger::of(entries);
        Ok(())
    }

    /// How long after its first dispatch the key is surely known to a request that leaves: the request may be under way for
    /// as long as its timeout.
    fn key_valid(&self) -> Option<Duration> {
        self.plan.key_retention.map(|retention| {
            retention
                .saturating_sub(self.plan.margin)
                .saturating_sub(self.plan.timeout)
        })
    }

    fn dispatch_verb(&self, probed: bool, before: i32) -> DispatchVerb {
        let ms = duration_ms;
        DispatchVerb {
            id: self.id.clone(),
            name: self.plan.name.clone(),
            key: self.plan.key.clone(),
            class: self.plan.class,
            protocol: self.protocol(),
            timeout_ms: ms(self.plan.timeout).max(1),
            quiet_ms: ms(self.plan.quiet),
            key_valid_ms: self.key_valid().map(ms),
            fingerprint: self.fingerprint.clone(),
            request: self.plan.request.to_string().into_bytes(),
            release: self.execution.shared.options.release.clone(),
            probed,
            before,
        }
    }

    fn call(&self, dispatches: i32, span: Option<u64>) -> OperationCall {
        OperationCall {
            id: self.id.clone(),
            task: self.execution.claim.held.task,
            fencing_token: FencingToken::of(&self.execution.claim.held),
            dispatches,
            trace: self.execution.traced.context(span),
        }
    }

    fn protocol(&self) -> i32 {
        self.execution.kind.protocols.range().writes()
    }

    fn quiet(&self, after: Duration) -> OperationError {
        self.execution.poison(Poison::Quiet { after });
        EngineStop::QuietPeriod {
            operation: self.id.clone(),
            after,
        }
        .into()
    }

    fn doubt(&self, note: &str) -> OperationError {
        self.execution.poison(Poison::Unknown {
            operations: vec![self.id.clone()],
            note: format!("{}: {note}", self.id),
        });
        EngineStop::EffectUnknown {
            operation: self.id.clone(),
        }
        .into()
    }

    fn other_request(&self, entry: &LedgerEntry) -> TaskError {
        TaskError::terminal(
            ErrorCode::FINGERPRINT.as_str(),
            format!(
                "operation {} stands in the ledger with fingerprint {} ({}), and this attempt's request has {} ({}); a request must not change between attempts: use another key, or raise the operation's version",
                self.id,
                shown(&entry.fingerprint),
                entry.class.word(),
                shown(&self.fingerprint),
                self.plan.class.word(),
            ),
        )
    }
}
