//! `aegis migrate` as a person or a pipeline meets it.

mod folder;
mod sealing;
mod writing;
