//! The payment service of the demo: a stranger to the engine, on loopback, in a process of its own.
//!
//! It offers one effect of each class and misbehaves by a seed: it loses answers, loses requests, answers late,
//! fails before and after applying, forgets keys after its published retention, and refuses old fencing tokens.
//!
//! | request | effect | class | what the service does about a repeat |
//! | --- | --- | --- | --- |
//! | `POST /reservations` | reserve | fenced | refuses an older token of the task; answers a known operation with its first result |
//! | `POST /charges`, `POST /charges/short` | charge | idempotent | answers a known key with its first result, for the published retention |
//! | `POST /payouts` | payout | queryable | nothing: applies it again. `GET /payouts/{operation}` tells what happened |
//! | `POST /notifications` | notify | blind | nothing: applies it again, and cannot be asked |
//!
//! `GET /policy` publishes what callers may rely on; `GET /healthz` answers 200.
//!
//! Invariants: an effect stands in the record before anybody is answered; the caller that hangs up changes
//! nothing about what is applied; what goes wrong depends on (seed, effect, order, how many calls before) and
//! never on a clock. Must never break a promise that it published, except with `doubles`, which exists so that the
//! verifier is seen to find it.

mod behaviour;
mod http;
mod ledger;
mod process;
pub mod record;
mod server;
mod token;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

pub use behaviour::{Behaviour, Faults, Shares};
pub use http::{
    HEADER_IDEMPOTENCY_KEY, HEADER_OPERATION, HEADER_TASK, HEADER_TOKEN, MAX_BODY_BYTES, Policy,
    ProbeAnswer, Retention,
};
pub use process::{Ready, run_process};
pub use server::{ServeError, Served, serve};
pub use token::{BadToken, FencingToken};

/// The four effects, each of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Goods are set aside: `fenced`.
    Reserve,
    /// The card is charged: `idempotent`.
    Charge,
    /// The merchant is paid: `queryable`.
    Payout,
    /// The customer is told: `blind`.
    Notify,
}

impl Effect {
    /// All, in the order in which a task uses them.
    pub const ALL: [Self; 4] = [Self::Reserve, Self::Charge, Self::Payout, Self::Notify];

    /// The word in the record and in the names of operations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Charge => "charge",
            Self::Payout => "payout",
            Self::Notify => "notify",
        }
    }

    /// The class that the service publishes for it.
    pub fn class(self) -> EffectClass {
        match self {
            Self::Reserve => EffectClass::Fenced,
            Self::Charge => EffectClass::Idempotent,
            Self::Payout => EffectClass::Queryable,
            Self::Notify => EffectClass::Blind,
        }
    }
}

/// How an effect can be recovered after a lost answer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Repeated with the same key.
    Idempotent,
    /// Repeated with a token that is not older.
    Fenced,
    /// Asked about, then perhaps repeated.
    Queryable,
    /// Never repeated.
    Blind,
}

impl EffectClass {
    /// The word in the record, the ledger and the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idempotent => "idempotent",
            Self::Fenced => "fenced",
            Self::Queryable => "queryable",
            Self::Blind => "blind",
        }
    }
}

/// How the service is started.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The record file; must not exist yet: a record belongs to one run.
    pub record: PathBuf,
    /// The run that the record belongs to; the verifier compares it with the database's.
    pub run: String,
    /// What decides who suffers.
    pub seed: u64,
    /// Breaks the promise of `charge`: a few are applied twice.
    pub doubles: bool,
    /// How often what goes wrong.
    pub faults: Faults,
    /// How long `/charges` remembers a key.
    pub retention: Duration,
    /// How long `/charges/short` remembers a key.
    pub short_retention: Duration,
    /// How late a late effect is applied and answered; must be below `max_request_life`.
    pub late_by: Duration,
    /// After this no request that was sent can still be applied.
    pub max_request_life: Duration,
}

impl ServiceOptions {
    /// The figures of the demo.
    pub fn new(record: PathBuf, run: impl Into<String>, seed: u64) -> Self {
        Self {
            record,
            run: run.into(),
            seed,
            doubles: false,
            faults: Faults::demo(),
            retention: Duration::from_mins(10),
            short_retention: Duration::from_secs(3),
            late_by: Duration::from_millis(1300),
            max_request_life: Duration::from_millis(1500),
        }
    }
}
