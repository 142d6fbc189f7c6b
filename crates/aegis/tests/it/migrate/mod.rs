//! `aegis migrate` as a person or a pipeline meets it.

mod contracting;
mod developing;
mod folder;
mod killing;
mod linting;
mod moving;
mod planning;
mod repairing;
mod running;
mod sealing;
mod taking_over;
mod verifying;
mod writing;
