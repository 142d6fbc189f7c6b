//! Placeholder head, replaced with the crate's first line.

pub mod generated;
pub mod session;
