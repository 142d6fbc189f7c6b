//! One module a noun.

pub(crate) mod completion;
pub(crate) mod db;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod drill;
pub(crate) mod find;
pub(crate) mod lane;
pub(crate) mod migrate;
pub(crate) mod operation;
pub(crate) mod task;
pub(crate) mod version;
pub(crate) mod worker;
