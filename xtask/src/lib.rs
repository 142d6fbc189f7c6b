//! Checks and generators of this repository, as a library so that tests can call them.
//!
//! Invariant: a check changes nothing; a generator writes only files that say `@generated` in their head, and blocks of
//! pages that stand between two marks.

pub mod docs;
pub mod facts;
pub mod report;
pub mod sql;
pub mod tidy;

use std::path::{Path, PathBuf};

/// The root of the repository, from where this crate was built.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}
