//! The engine on PostgreSQL: schema, statements, fenced writes. The only crate that knows the engine's tables.
//!
//! Start at [`Store`]. What a worker writes goes through [`guarded`], whose statements all include
//! `sql/include/guard.sql`; what a client submits through [`submit`]; what an operator overrides through [`overrides`].
//!
//! Invariants: the database decides (time, eligibility, ownership, uniqueness); a call that was sent is never dropped
//! half-way, its waiter is; a commit is checked.
//!
//! Never: hold a transaction while a task runs; build SQL from strings.

pub mod change;
pub mod claim;
pub mod config;
pub mod doctor;
pub mod error;
pub mod filter;
pub mod generated;
pub mod guarded;
mod heads;
pub mod install;
pub mod lane_check;
pub mod lanes;
pub mod life;
pub mod listen;
pub mod maintain;
pub mod observe;
pub mod overrides;
pub mod session;
pub mod store;
pub mod submit;
pub mod survey;
mod task_input;
mod tls;
pub mod transaction;
pub mod view;
pub mod worker;

pub use claim::{AcquireRequest, Acquired, Claim, Cursor, KindCapacity};
pub use config::Config;
pub use error::StoreError;
pub use lanes::Lane;
pub use store::Store;
pub use submit::{NewTask, RetryPolicy, Submitted};
