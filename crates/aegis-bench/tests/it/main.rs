//! The measuring program as a person meets it: whole runs of a few hundred jobs, and what it refuses.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod peers;
