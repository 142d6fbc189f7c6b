//! Checks and generators of this repository, as a library so that tests can call them.
//!
//! Invariant: a check changes nothing; a generator writes only files that say `@generated` in their head.

pub mod sql;

use std::path::{Path, PathBuf};

/// Writes a line to standard output. A closed pipe (`| head`) is nobody's error here.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stdout().lock(), $($argument)*).ok();
    }};
}

/// The root of the repository, from where this crate was built.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}
