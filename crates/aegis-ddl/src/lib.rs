//! SQL as statements with a small representation of our own (the parser never shows), and the class of each: where it may run.
//!
//! Invariants: no I/O; every byte of a file belongs to a statement, to whitespace or to a comment, or the file is an error; what is
//! not known is of the worst class.

mod class;
pub mod fix;
pub mod form;
mod judge;
mod lock;
mod name;
mod read;
mod report;
pub mod rules;
mod statement;
mod touch;

pub use class::{Class, Phase};
pub use form::Form;
pub use judge::{
    Compatible, Context, SMALL_BYTES, SourceFile, judge, judge_in_order, volatile_call,
};
pub use lock::{Lock, LockMode};
pub use name::QualifiedName;
pub use read::read;
pub use report::{Finding, Level, Report, UnusedOverride, Verdict};
pub use statement::{Script, Statement, SyntaxError};
pub use touch::ObjectRef;
