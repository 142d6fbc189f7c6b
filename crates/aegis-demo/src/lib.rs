//! What `aegis demo` is made of: the orders, a payment service that misbehaves by a seed, the judgement over
//! what was recorded, and the voice that tells the story.
//!
//! Invariants: the payment service knows nothing of the engine, and `verify` trusts neither the workers nor the
//! demo, only the service's record and the database. Nothing here ends a process or prints on its own account:
//! the binary does.

pub mod acts;
pub mod handler;
pub mod hold;
pub mod orders;
pub mod payments;
pub mod run;
pub mod story;
pub mod verify;
