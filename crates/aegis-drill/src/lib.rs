//! Chaos: real worker processes against a real PostgreSQL and an oracle of effects, while things break by a seeded schedule;
//! and a checker that counts what was lost, doubled or wrongly accepted.
//!
//! | part | room |
//! | --- | --- |
//! | what breaks, and when | [`fault`] |
//! | the supervisor | [`run`] |
//! | clocks that are moved | [`faketime`] |
//! | processes, ended by their own handle | [`child`] |
//! | workers, and a frozen one that reports too late | [`worker`], [`zombie`] |
//! | the proxy before PostgreSQL that cuts at a statement's frames | [`proxy`] |
//! | the oracle of effects, in its own process with a synced file | [`oracle`] |
//! | what each process saw | [`history`] |
//! | what the database saw, by triggers of the drill's own | [`facts`] |
//! | what a promotion lost | [`tail`] |
//! | the judgement, pure | [`check`] |
//! | the report, and the page made of it | [`report`], [`page`] |
//!
//! Invariants: a fault that is not made is listed by name; a run is void unless each of its "sometimes" happened; only
//! processes that the drill started are ever signalled.
//!
//! Never: a database that somebody uses; trust in the engine's own counts where the oracle or a trigger can say it.

pub mod check;
pub mod child;
pub mod error;
pub mod facts;
pub mod faketime;
pub mod fault;
pub mod history;
pub mod oracle;
pub mod page;
pub mod proxy;
pub mod report;
pub mod run;
pub mod tail;
pub mod worker;
pub mod zombie;

pub use error::DrillError;
