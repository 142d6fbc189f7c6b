//! The engine's own schema, installed: the changes that aegis-store carries, run by the runner of aegis-migrate, with a ledger of
//! their own (schema `aegis_ledger`) beside that of any application in the same database.
//!
//! Start at [`install`]. The number of a schema, which programs compare themselves with, is how many lines of the lock are done
//! without a gap; it is written to `aegis.schema_version` in a transaction that the ledger fences.
//!
//! Never: a statement about tasks. They are aegis-store's.

mod error;
mod install;
mod old;
mod set;

pub use error::SchemaError;
pub use install::{Installed, install, install_set};
pub use set::{fingerprint, set};
