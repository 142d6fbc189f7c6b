//! Tests of aegis-migrate, in one binary.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod adopt;
mod change;
mod contract;
mod dev;
mod editions;
mod fix;
mod folder;
mod foreign;
mod lint;
mod lint_sets;
mod lint_told;
mod lint_tools;
mod proxy;
mod rates;
mod run;
mod run_abandon;
mod run_aside;
mod run_builds;
mod run_cuts;
mod run_history;
mod run_keys;
mod run_leftovers;
mod run_locks;
mod run_lost;
mod run_mutex;
mod run_opaque;
mod run_places;
mod run_refused;
mod run_repair;
mod run_rows;
mod run_sessions;
mod run_switch;
mod set;
mod standing;
mod structure;
mod sync;
mod sync_edited;
