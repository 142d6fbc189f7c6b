//! Tests of aegis-migrate, in one binary.

mod change;
mod folder;
mod set;
