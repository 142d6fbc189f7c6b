//! What the service remembers and decides: which call takes place, which is answered from memory, which is refused.
//!
//! Invariants: one lock covers the decision, the line in the record and the memory, so two calls of one operation
//! never both take place unless their class has no defence; nothing takes place whose line could not be written;
//! after the end of the record nothing takes place. Must never wait while it holds the lock.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::behaviour::{draw, receipt};
use super::record::{Call, Event, Refusal, Writer};
use super::{Behaviour, Effect, EffectClass, FencingToken, ProbeAnswer, ServiceOptions};

/// The most operations that are remembered; beyond it new ones are refused, so that memory stays bounded.
const MAX_OPERATIONS: usize = 200_000;

/// What a caller asks for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) effect: Effect,
    pub(super) operation_id: String,
    pub(super) task: String,
    pub(super) reference: String,
    pub(super) token: Option<FencingToken>,
    pub(super) request_sha256: String,
    pub(super) amount: Option<String>,
    pub(super) currency: Option<String>,
    /// How long this route remembers a key; `None` when it keeps none.
    pub(super) retention: Option<Duration>,
    /// When it arrived.
    pub(super) arrived: Instant,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// It took place now.
    Applied(Value),
    /// It took place before; this was the first answer.
    Replayed(Value),
    /// A newer token of the task is known.
    Stale(FencingToken),
    /// The operation is known with another request.
    KeyReused,
    /// The request has outlived the published life, perhaps because this machine was busy: it is dropped.
    TooOld,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub(super) enum LedgerError {
    #[error("the record cannot be written, so nothing takes place; look at the disk")]
    Record(#[source] io::Error),
    #[error("the service remembers {MAX_OPERATIONS} operations and takes no more; start a new one")]
    Full,
    #[error("the service is stopping and its record is closed; nothing takes place any more")]
    Closed,
}

#[derive(Debug)]
struct Known {
    request_sha256: String,
    seq: u64,
    result: Value,
    applied_at: Instant,
    times: u32,
}

#[derive(Debug)]
struct State {
    writer: Writer,
    closed: bool,
    calls: HashMap<(Effect, String), u32>,
    known: HashMap<String, Known>,
    newest: HashMap<String, FencingToken>,
    /// Order by operation, of what was only asked for too: a probe draws by order, as every run has the same.
    references: HashMap<String, String>,
    probes: HashMap<String, u32>,
}

/// The service's memory and its record.
#[derive(Debug)]
pub(super) struct Ledger {
    options: ServiceOptions,
    state: Mutex<State>,
}

impl Ledger {
    /// Creates the record and writes its first line.
    pub(super) fn open(options: ServiceOptions) -> io::Result<Self> {
        let mut writer = Writer::create(&options.record)?;
        writer.append(Event::Opened {
            run: options.run.clone(),
            seed: options.seed,
            doubles: options.doubles,
        })?;
        let state = State {
            writer,
            closed: false,
            calls: HashMap::new(),
            known: HashMap::new(),
            newest: HashMap::new(),
            references: HashMap::new(),
            probes: HashMap::new(),
        };
        Ok(Self {
            options,
            state: Mutex::new(state),
        })
    }

    pub(super) fn options(&self) -> &ServiceOptions {
        &self.options
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one insertion after the line stands, so a poisoned state is still a true one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>, LedgerError> {
        let state = self.state();
        if state.closed {
            return Err(LedgerError::Closed);
        }
        Ok(state)
    }

    /// Counts a call and draws what happens to it. What gets lost or fails before it is applied is recorded here.
    pub(super) fn arrive(&self, asked: &Asked) -> Result<(Call, Behaviour), LedgerError> {
        let mut state = self.open_state()?;
        if state.references.len() >= MAX_OPERATIONS
            && !state.references.contains_key(&asked.operation_id)
        {
            return Err(LedgerError::Full);
        }
        let nth = {
            let nth = state
                .calls
                .entry((asked.effect, asked.reference.clone()))
                .or_insert(0);
            *nth = nth.saturating_add(1);
            *nth
        };
        state
            .references
            .entry(asked.operation_id.clone())
            .or_insert_with(|| asked.reference.clone());
        let call = Call {
            effect: asked.effect,
            class: asked.effect.class(),
            operation_id: asked.operation_id.clone(),
            task: asked.task.clone(),
            reference: asked.reference.clone(),
            fencing_token: asked.token,
            request_sha256: asked.request_sha256.clone(),
            call: nth,
        };
        let behaviour =
            self.options
                .faults
                .behaviour(self.options.seed, asked.effect, &asked.reference, nth);
        if matches!(behaviour, Behaviour::LostRequest | Behaviour::ErrorBefore) {
            state
                .writer
                .append(Event::Dropped {
                    call: call.clone(),
                    behaviour,
                })
                .map_err(LedgerError::Record)?;
        }
        Ok((call, behaviour))
    }

    /// Decides a call at the moment when it reaches the effect, which for a late one is not when it arrived.
    pub(super) fn decide(
        &self,
        asked: &Asked,
        call: Call,
        behaviour: Behaviour,
    ) -> Result<Outcome, LedgerError> {
        let mut guard = self.open_state()?;
        let state = &mut *guard;
        let class = asked.effect.class();
        // The promise that callers rely on when they repeat.
        if asked.arrived.elapsed() >= self.options.max_request_life {
            let behaviour = Behaviour::LostRequest;
            state
                .writer
                .append(Event::Dropped { call, behaviour })
                .map_err(LedgerError::Record)?;
            return Ok(Outcome::TooOld);
        }
        if let (EffectClass::Fenced, Some(token)) = (class, asked.token) {
            let newest = *state.newest.get(&asked.task).unwrap_or(&token);
            if token < newest {
                let reason = Refusal::StaleToken;
                state
                    .writer
                    .append(Event::Refused {
                        call,
                        reason,
                        newest: Some(newest),
                    })
                    .map_err(LedgerError::Record)?;
                return Ok(Outcome::Stale(newest));
            }
            state.newest.insert(asked.task.clone(), token);
        }
        let remembers = match class {
            EffectClass::Fenced => true,
            EffectClass::Idempotent => self.remembers(asked, state.known.get(&asked.operation_id)),
            EffectClass::Queryable | EffectClass::Blind => false,
        };
        if let (true, Some(known)) = (remembers, state.known.get(&asked.operation_id)) {
            if known.request_sha256 != asked.request_sha256 {
                let reason = Refusal::KeyReused;
                state
                    .writer
                    .append(Event::Refused {
                        call,
                        reason,
                        newest: None,
                    })
                    .map_err(LedgerError::Record)?;
                return Ok(Outcome::KeyReused);
            }
            let (of_seq, result) = (known.seq, known.result.clone());
            state
                .writer
                .append(Event::Replayed {
                    call,
                    of_seq,
                    behaviour,
                })
                .map_err(LedgerError::Record)?;
            return Ok(Outcome::Replayed(result));
        }
        let mut result = self.apply(state, asked, call.clone(), behaviour)?;
        if self.breaks_its_promise(asked, state.known.get(&asked.operation_id)) {
            result = self.apply(state, asked, call, behaviour)?;
        }
        Ok(Outcome::Applied(result))
    }

    fn apply(
        &self,
        state: &mut State,
        asked: &Asked,
        call: Call,
        behaviour: Behaviour,
    ) -> Result<Value, LedgerError> {
        let effect = asked.effect;
        let times = state
            .known
            .get(&asked.operation_id)
            .map_or(0, |known| known.times)
            + 1;
        let (prefix, outcome) = match effect {
            Effect::Reserve => ("RSV", "reserved"),
            Effect::Charge => ("CHG", "charged"),
            Effect::Payout => ("PAY", "paid"),
            Effect::Notify => ("MSG", "sent"),
        };
        // By order and not by operation id, so that two runs of one seed give the same receipts.
        let seed = self.options.seed.to_string();
        let receipt = receipt(
            prefix,
            &[&seed, effect.name(), &asked.reference, &times.to_string()],
        );
        let result =
            json!({ "outcome": outcome, "receipt": receipt, "operation_id": asked.operation_id });
        let event = Event::Applied {
            call,
            receipt,
            amount: asked.amount.clone(),
            currency: asked.currency.clone(),
            behaviour,
        };
        let seq = state.writer.append(event).map_err(LedgerError::Record)?;
        state.known.insert(
            asked.operation_id.clone(),
            Known {
                request_sha256: asked.request_sha256.clone(),
                seq,
                result: result.clone(),
                applied_at: Instant::now(),
                times,
            },
        );
        Ok(result)
    }

    fn remembers(&self, asked: &Asked, known: Option<&Known>) -> bool {
        known.is_some_and(|known| {
            let kept = asked
                .retention
                .is_some_and(|retention| known.applied_at.elapsed() < retention);
            let forgets = draw(
                self.options.seed,
                "forgets",
                asked.effect.name(),
                &asked.reference,
                1,
            ) < u64::from(self.options.faults.forgets);
            kept || !forgets
        })
    }

    fn breaks_its_promise(&self, asked: &Asked, known: Option<&Known>) -> bool {
        self.options.doubles
            && asked.effect == Effect::Charge
            && known.is_some_and(|known| known.times == 1)
            && draw(
                self.options.seed,
                "doubles",
                asked.effect.name(),
                &asked.reference,
                1,
            ) < u64::from(self.options.faults.doubled)
    }

    /// What is known of an operation; a drawn share of the questions is answered "cannot tell".
    pub(super) fn probe(
        &self,
        operation_id: &str,
    ) -> Result<(ProbeAnswer, Option<Value>), LedgerError> {
        let mut state = self.open_state()?;
        let nth = {
            // Not remembered beyond the bound: a question must not fill the memory.
            let full = state.probes.len() >= MAX_OPERATIONS;
            let counted = state.probes.get(operation_id).copied().unwrap_or(0) + 1;
            if !full || counted > 1 {
                state.probes.insert(operation_id.to_owned(), counted);
            }
            counted
        };
        let reference = state
            .references
            .get(operation_id)
            .map_or(operation_id, String::as_str);
        let silent = draw(
            self.options.seed,
            "probe",
            Effect::Payout.name(),
            reference,
            nth,
        ) < u64::from(self.options.faults.cannot_tell);
        let found = state
            .known
            .get(operation_id)
            .map(|known| known.result.clone());
        let (answer, result) = match (silent, found) {
            (true, _) => (ProbeAnswer::CannotTell, None),
            (false, Some(result)) => (ProbeAnswer::Happened, Some(result)),
            (false, None) => (ProbeAnswer::DidNotHappen, None),
        };
        state
            .writer
            .append(Event::Probed {
                operation_id: operation_id.to_owned(),
                answer,
            })
            .map_err(LedgerError::Record)?;
        Ok((answer, result))
    }

    /// Writes the last line; returns how many lines the record has.
    pub(super) fn close(&self) -> io::Result<u64> {
        let mut state = self.state();
        if !state.closed {
            state.writer.append(Event::Closed {})?;
            state.closed = true;
        }
        Ok(state.writer.lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payments::record::read_so_far;

    #[test]
    fn nothing_takes_place_after_the_published_life_of_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record.jsonl");
        let options = ServiceOptions::new(record.clone(), "run", 1);
        let life = options.max_request_life;
        let ledger = Ledger::open(options).unwrap();
        let asked = |age: Duration| Asked {
            effect: Effect::Payout,
            operation_id: format!("op-{}", age.as_millis()),
            task: "t".into(),
            reference: format!("O-{}", age.as_millis()),
            token: None,
            request_sha256: "00".into(),
            amount: None,
            currency: None,
            retention: None,
            arrived: Instant::now().checked_sub(age).unwrap(),
        };
        let decide = |asked: Asked| {
            let (call, _) = ledger.arrive(&asked).unwrap();
            ledger.decide(&asked, call, Behaviour::Good).unwrap()
        };
        assert!(matches!(decide(asked(Duration::ZERO)), Outcome::Applied(_)));
        assert_eq!(decide(asked(life)), Outcome::TooOld);
        let applied = read_so_far(&record)
            .unwrap()
            .iter()
            .filter(|line| matches!(line.event, Event::Applied { .. }))
            .count();
        assert_eq!(applied, 1);
    }
}
