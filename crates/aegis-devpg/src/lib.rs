//! A private PostgreSQL for `aegis dev`, tests and drills, from the binaries on the machine.
//!
//! What it promises:
//!
//! - The server ends when its parent ends, however that happens (return, panic, SIGKILL during
//!   initdb, start or run): a small POSIX shell watchdog in a process group of its own holds the
//!   read end of a pipe whose only write end is the parent's, and acts at its end.
//! - Never as root: the whole of it runs as an ordinary user, see [`Server::run_as`].
//! - Reached through a socket in a folder that only that user (and root) can enter.
//! - [`Data::Temporary`] leaves nothing behind; [`Data::Kept`] is never taken from a running
//!   server, never overwritten, and a folder that holds something else is refused.
//!
//! It must never delete or signal what it did not make or start, and never touch the network
//! unless [`Options::fetch`] is set.

mod binaries;
mod error;
mod fetch;
mod folder;
mod options;
mod pidfile;
mod probe;
mod server;
mod unpack;
mod url;
mod user;
mod watchdog;

pub use binaries::{LOWEST_MAJOR, find_binaries};
pub use error::Error;
pub use fetch::{fetch_binaries, fetch_binaries_of};
pub use folder::{DevFolder, default_dev_folder, remove_data};
pub use options::{Data, Durability, Options};
pub use probe::Binaries;
pub use server::Server;
