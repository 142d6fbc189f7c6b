//! `aegis migrate` as a person or a pipeline meets it.

mod as_task;
mod contracting;
mod developing;
mod flooring;
mod folder;
mod killing;
mod linting;
mod moving;
mod planning;
mod repairing;
mod running;
mod sealing;
mod split_name;
mod taking_over;
mod tenant_verbs;
mod tenants;
mod unlocking;
mod verifying;
mod writing;
