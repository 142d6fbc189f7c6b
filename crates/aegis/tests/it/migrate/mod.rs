//! `aegis migrate` as a person or a pipeline meets it.

mod accepting;
mod as_task;
mod building;
mod contracting;
mod contracting_edited;
mod developing;
mod flooring;
mod folder;
mod hostile;
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
