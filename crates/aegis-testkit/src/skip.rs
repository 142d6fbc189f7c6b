//! How a test says that it could not run here. CI greps for the word and decides whether that
//! is allowed.

use std::io::Write as _;

/// Prints `SKIPPED name: reason`, past the test harness's capture. The caller returns then.
///
/// # Examples
///
/// ```
/// # let is_root = false;
/// if !is_root {
///     aegis_testkit::skipped("a_full_tmpfs_is_told", "mounting needs root");
///     return;
/// }
/// ```
pub fn skipped(name: &str, reason: &str) {
    // Not `eprintln`: the harness would show it for failing tests only. A closed stderr has no
    // reader to miss it.
    writeln!(std::io::stderr().lock(), "SKIPPED {name}: {reason}").ok();
}
