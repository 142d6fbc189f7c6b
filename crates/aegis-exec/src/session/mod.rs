//! The conversation with one handler, from its start until nothing of it is left.
//!
//! Invariants: an attempt is over only when its processes are; a write of the handler goes through its task's context, so it
//! is guarded; a call outside is allowed only by a reply whose dispatch is durable; the first fault stands.
//!
//! Never: drop a conversation whose handler still runs without ending the handler (closing the orders does it).

mod flow;
mod operation;
mod start;
mod turn;
mod words;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use aegis_protocol::limits::{LINE_BYTES_MAX, REQUESTS_MAX};
use aegis_protocol::{Cancel, FromHandler, Hello, Start, ToHandler, VERSIONS, agreed};
use aegis_worker::{CancelReason, EngineStop, TaskContext, TaskError};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::time::Instant;

use crate::end::{Facts, Verdict, decide};
use crate::fault::Fault;
use crate::frame::{Order, Report};
use crate::link::{Link, Orders, about};
use crate::options::ExecOptions;
use crate::program::Program;

use flow::{Ended, Place, Replies};
use start::start_message;
use turn::Turns;
use words::{cause, cut, word, write_log};

/// Lines of standard error that an attempt's error shows.
const STDERR_SHOWN: usize = 20;
/// How long a supervisor may take to end everything when it is told to. Its own bound is shorter.
const END_WITHIN: Duration = Duration::from_secs(45);

/// Where the conversation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was said yet.
    Hello,
    /// It works.
    Running,
    /// It has said its last message, or its faults were enough.
    Over,
}

struct Conversation<'a> {
    ctx: &'a TaskContext<Value>,
    options: &'a ExecOptions,
    orders: Orders,
    phase: Phase,
    start: Option<Box<Start>>,
    last_id: Option<u64>,
    turns: Turns,
    flows: FuturesUnordered<BoxFuture<'static, Ended>>,
    protocols: Protocols,
    facts: Facts,
    stderr: VecDeque<String>,
    /// When patience ends, and with what.
    patience: Option<(Instant, Patience)>,
}

/// What a conversation waits for with a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Patience {
    /// Else it is a fault.
    Fault(Fault),
    /// Else it is ended; what it said counts.
    Exit,
    /// Else the supervisor is taken for dead.
    Supervisor,
}

/// In which protocols what is known was written.
#[derive(Debug, Default)]
struct Protocols {
    steps: HashMap<Place, i32>,
    operations: HashMap<Place, i32>,
}

/// One attempt.
pub(crate) async fn run(
    program: &Program,
    options: &ExecOptions,
    ctx: TaskContext<Value>,
    input: Value,
) -> Result<Value, TaskError> {
    let known = ctx.known().await?;
    let protocols = Protocols {
        steps: known
            .steps
            .iter()
            .map(|step| (Place::new(&step.name, &step.key), step.stored.protocol))
            .collect(),
        operations: known
            .operations
            .iter()
            .map(|one| (Place::new(&one.name, &one.key), one.protocol))
            .collect(),
    };
    let start = start_message(&ctx, known, input);
    let link = Link::start(program, options, ctx.eligible_for(), &about(&ctx));
    let mut link = link.map_err(|error| {
        let fault = Fault::NotStarted(error.to_string());
        TaskError::retryable(fault.code(), fault.to_string())
    })?;
    let mut conversation = Conversation {
        ctx: &ctx,
        options,
        orders: link.orders.clone(),
        phase: Phase::Hello,
        start: Some(Box::new(start)),
        last_id: None,
        turns: Turns::default(),
        flows: FuturesUnordered::new(),
        protocols,
        facts: Facts::default(),
        stderr: VecDeque::new(),
        patience: None,
    };
    let heard = conversation.hold(&mut link).await;
    let mut facts = conversation.finish();
    link.close(heard).await;
    facts.cancelled = ctx.cancelled().reason();
    match decide(facts) {
        Verdict::Result(value) => Ok(value),
        Verdict::Error(error) => Err(error),
        Verdict::Stopped(reason) => Err(ctx.stop(reason)),
    }
}

impl Conversation<'_> {
    /// Until everything of the handler has ended. False: its supervisor did not say so.
    async fn hold(&mut self, link: &mut Link) -> bool {
        let hello = ToHandler::Hello(Hello {
            versions: VERSIONS.to_vec(),
            line_bytes_max: LINE_BYTES_MAX,
        });
        self.say(&hello);
        self.be_patient(
            self.options.hello_within,
            Patience::Fault(Fault::NoHello(self.options.hello_within)),
        );
        let ctx = self.ctx.clone();
        let cancelled = ctx.cancelled();
        let mut asked_to_stop = false;
        let mut beat = tokio::time::interval(beat_every(ctx.eligible_for()));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let until = self.patience.as_ref().map(|(until, _)| *until);
            tokio::select! {
                biased;
                report = link.next() => match report {
                    Some(Report::Ended(ended)) => {
                        self.facts.ended = Some(ended);
                        return true;
                    }
                    Some(report) => self.hear(report),
                    None => {
                        self.fault(Fault::SupervisorGone);
                        return false;
                    }
                },
                reason = cancelled.wait(), if !asked_to_stop => {
                    asked_to_stop = true;
                    self.cancel(reason);
                }
                Some(ended) = self.flows.next() => self.flow_ended(ended),
                _ = beat.tick() => self.orders.alive(ctx.eligible_for()),
                () = sleep_until(until), if until.is_some() => {
                    if !self.patience_is_over() {
                        return false;
                    }
                }
            }
        }
    }

    fn hear(&mut self, report: Report) {
        match report {
            Report::Started(pid) => tracing::debug!(pid, "a handler has started"),
            Report::NotStarted(why) => self.fault(Fault::NotStarted(why)),
            Report::Line(line) => self.line(&line),
            Report::Partial(rest) => {
                let shown = String::from_utf8_lossy(&rest[..rest.len().min(200)]);
                self.fault(Fault::HalfLine(shown.escape_debug().to_string()));
            }
            Report::TooLong => self.fault(Fault::LongLine(self.options.line_bytes_max)),
            Report::OutputClosed => self.expect_exit(Fault::OutputClosed),
            Report::InputClosed => self.expect_exit(Fault::InputClosed),
            Report::InputBlocked => self.fault(Fault::InputUnread(self.options.read_within)),
            Report::Stderr(line) => {
                let line = String::from_utf8_lossy(&line).into_owned();
                tracing::info!(target: "aegis_exec::stderr", "{line}");
                if self.stderr.len() == STDERR_SHOWN {
                    self.stderr.pop_front();
                }
                self.stderr.push_back(cut(line, 500));
            }
            Report::Dropped(count) => {
                tracing::warn!(
                    count,
                    "lines of a handler's standard error were dropped: there were too many"
                );
            }
            Report::Ended(ended) => self.facts.ended = Some(ended),
        }
    }

    fn line(&mut self, line: &[u8]) {
        // After a fault nothing counts any more.
        if self.facts.fault.is_some() {
            return;
        }
        let message = match FromHandler::parse(line) {
            Ok(message) => message,
            Err(bad) => return self.fault(Fault::BadLine(bad)),
        };
        match (self.phase, message) {
            (Phase::Hello, FromHandler::Hello(hello)) => match agreed(VERSIONS, hello.version) {
                Ok(_) => self.begin(),
                Err(error) => self.fault(Fault::Version(error)),
            },
            (_, FromHandler::Log(log)) if self.phase != Phase::Hello => {
                write_log(log.level, log.message);
            }
            (Phase::Hello, other) => self.out_of_turn(&other, "before its hello"),
            (Phase::Running, FromHandler::Hello(_)) => {
                self.fault(out_of_turn("hello", "twice"));
            }
            (Phase::Running | Phase::Over, FromHandler::Progress(_)) => {
                self.ctx.progress();
            }
            (Phase::Running, message) if message.is_end() => self.ended(message),
            (Phase::Running, message) => self.request(message),
            (Phase::Over, other) => self.out_of_turn(&other, "after its last message"),
        }
    }

    fn begin(&mut self) {
        self.phase = Phase::Running;
        self.patience = None;
        if let Some(start) = self.start.take() {
            let mut start = start;
            start.valid_for_ms = millis(self.ctx.eligible_for());
            self.say(&ToHandler::Start(start));
        }
        // It was asked to stop while it started.
        if let Some(reason) = self.ctx.cancelled().reason() {
            self.say_cancel(reason);
            self.be_patient(self.options.kill_after, Patience::Exit);
        }
    }

    fn ended(&mut self, message: FromHandler) {
        self.phase = Phase::Over;
        self.facts.last = Some(message);
        self.be_patient(self.options.exit_within, Patience::Exit);
    }

    fn request(&mut self, message: FromHandler) {
        let Some(id) = message.request_id() else {
            return;
        };
        if self.last_id.is_some_and(|last| id <= last) {
            let last = self.last_id.unwrap_or_default();
            let why = format!("with the id {id}, which is not above its last one, {last}");
            return self.out_of_turn(&message, &why);
        }
        self.last_id = Some(id);
        if self.flows.len() >= REQUESTS_MAX {
            return self.fault(Fault::TooManyRequests(REQUESTS_MAX));
        }
        let replies = Replies::new(self.orders.clone(), self.ctx.clone());
        match message {
            FromHandler::Step(step) => {
                let protocol = self
                    .protocols
                    .steps
                    .get(&Place::new(&step.name, &step.key))
                    .copied();
                let saved = self.turns.step(&step);
                self.flows
                    .push(Box::pin(flow::step(replies, step, saved, protocol)));
            }
            FromHandler::Checkpoint(checkpoint) => {
                self.flows
                    .push(Box::pin(flow::checkpoint(replies, checkpoint)));
            }
            FromHandler::Operation(operation) => {
                let place = Place::new(&operation.name, &operation.key);
                let protocol = self.protocols.operations.get(&place).copied();
                let desk = self.turns.operation(&place);
                self.flows.push(Box::pin(operation::perform(
                    replies, operation, desk, protocol,
                )));
            }
            other => {
                let said = word(&other);
                match self.turns.take(other) {
                    Ok(None) => {}
                    Ok(Some(answer)) => replies.send(id, answer),
                    Err(why) => self.fault(out_of_turn(said, why)),
                }
            }
        }
    }

    fn flow_ended(&mut self, ended: Ended) {
        if let Some(stop) = ended.raised {
            self.raised(stop);
        }
        self.turns.close(ended.place, ended.unsent);
    }

    /// The engine says that the execution is over: the handler was told so in the reply.
    fn raised(&mut self, stop: EngineStop) {
        if self.facts.raised.is_none() {
            self.facts.raised = Some(stop);
            if self.phase == Phase::Running {
                self.be_patient(self.options.exit_within, Patience::Exit);
            }
        }
    }

    fn cancel(&mut self, reason: CancelReason) {
        if reason == CancelReason::LeaseLost {
            // Whatever it does from now on nobody accepts.
            return self.kill();
        }
        if self.phase == Phase::Running {
            self.say_cancel(reason);
        }
        self.orders.send(Order::Terminate);
        self.be_patient(self.options.kill_after, Patience::Exit);
    }

    fn say_cancel(&mut self, reason: CancelReason) {
        self.say(&ToHandler::Cancel(Cancel {
            cause: cause(reason),
            kill_after_ms: millis(self.options.kill_after),
        }));
    }

    fn expect_exit(&mut self, fault: Fault) {
        // A process that ends closes these, too: its end follows at once.
        if self.phase != Phase::Over && self.facts.raised.is_none() && self.facts.fault.is_none() {
            self.be_patient(self.options.exit_within, Patience::Fault(fault));
        }
    }

    fn out_of_turn(&mut self, message: &FromHandler, why: &str) {
        self.fault(out_of_turn(word(message), why));
    }

    /// The first one stands, and ends it.
    fn fault(&mut self, fault: Fault) {
        if self.facts.fault.is_none() {
            self.facts.fault = Some(fault);
        }
        self.phase = Phase::Over;
        self.kill();
    }

    fn kill(&mut self) {
        self.phase = Phase::Over;
        self.orders.send(Order::Kill);
        self.patience = Some((Instant::now() + END_WITHIN, Patience::Supervisor));
    }

    /// Whichever comes first.
    fn be_patient(&mut self, how_long: Duration, then: Patience) {
        let until = Instant::now() + how_long;
        if self
            .patience
            .as_ref()
            .is_none_or(|(before, _)| until < *before)
        {
            self.patience = Some((until, then));
        }
    }

    /// False: the supervisor is taken for dead.
    fn patience_is_over(&mut self) -> bool {
        match self.patience.take() {
            Some((_, Patience::Fault(fault))) => self.fault(fault),
            Some((_, Patience::Exit)) => {
                tracing::warn!("a handler did not exit in time and is ended");
                self.kill();
            }
            Some((_, Patience::Supervisor)) => {
                self.facts.fault.get_or_insert(Fault::SupervisorGone);
                return false;
            }
            None => {}
        }
        true
    }

    fn say(&self, message: &ToHandler) {
        flow::say(&self.orders, message);
    }

    /// What the verdict needs. Requests that wait for the handler are dropped; writes that are under way go on by themselves.
    fn finish(mut self) -> Facts {
        self.facts.stderr = self.stderr.into();
        self.facts
    }
}

fn out_of_turn(said: &'static str, why: impl Into<String>) -> Fault {
    Fault::OutOfTurn {
        said,
        why: why.into(),
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Often enough that one late beat costs nothing, seldom enough that it costs nothing.
fn beat_every(eligible_for: Duration) -> Duration {
    (eligible_for / 20).clamp(Duration::from_millis(10), Duration::from_millis(500))
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
