//! The engine's schema on real servers: installed by the runner, taken over from the installer of before, beside an application.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod beside;
mod install;
mod judged;
mod old;
mod support;
