//! `cargo xtask`: the generators and the checks as a whole, the SQL ones against a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod docs;
mod sql_check;
mod sql_functions;
mod tidy;

/// What the generator made from the fixture, compiled here as it would be in a store.
#[path = "../fixtures/store/src/generated/mod.rs"]
#[expect(unreachable_pub, reason = "made for a library")]
mod generated;

/// What generated functions call, from the store; the file alone, since the rest of that crate
/// must not need to compile for the generator to be tested.
#[path = "../../../crates/aegis-store/src/session.rs"]
#[expect(
    unreachable_pub,
    dead_code,
    reason = "made for a library, which copies too"
)]
mod session;

use std::path::PathBuf;
use std::sync::LazyLock;

use aegis_devpg::{Options, Server};

/// One server for this binary; it ends with the process.
static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start(&Options::for_tests()).unwrap());

fn server_url(database: &str) -> String {
    SERVER.url(SERVER.superuser(), database)
}

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store")
}
