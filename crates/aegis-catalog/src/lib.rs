//! What a database holds, as values: read in one snapshot, compared as structures, never as text that a setting changes.
//!
//! [`read`] asks a live server; [`Catalog`] is the answer and the file of `aegis migrate snapshot`; [`Catalog::structure`] is the
//! part of it that can be right or wrong, with a fingerprint and a comparison that speaks people's words.

mod catalog;
mod error;
mod model;
mod name;
mod read;
mod scope;
mod structure;

pub use catalog::{Catalog, FORMAT};
pub use error::Error;
pub use model::*;
pub use name::{Name, quote, shown};
pub use read::{LOCK_TIMEOUT_MS, OLDEST, read, read_index, read_within};
pub use scope::Scope;
pub use structure::{
    Delta, Difference, Fold, Key, Kind, MODEL, NotCompared, Severity, Shape, Structure, What,
};
