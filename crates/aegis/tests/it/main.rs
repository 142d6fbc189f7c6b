//! The binary as a person or a script meets it: exit codes, what is printed where, and the whole demo.

mod database;
mod demo;
mod holder;
mod operation;
mod support;
mod task;
mod verify;
mod worker;
