//! The binary as a person or a script meets it: exit codes, what is printed where, and the whole demo.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod completion;
mod config;
mod database;
mod demo;
mod dev;
mod doctor;
mod drill;
mod exit_codes;
mod first_handler;
mod help;
mod holder;
mod lane;
mod lane_check;
mod migrate;
mod operation;
mod operations;
mod output;
mod programs;
mod support;
mod task;
mod task_change;
mod task_show;
mod task_stream;
mod verify;
mod watching;
mod worker;
mod workers;
