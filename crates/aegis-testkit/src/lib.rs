//! Placeholder head, replaced with the crate's first line.
