//! The `aegis` binary.

fn main() {}
