//! The changes that this binary brings, as a set.

use aegis_migrate::change::{Files, Problems, sha256};
use aegis_migrate::ledger::{LedgerName, script};
use aegis_migrate::lock::LOCK_FILE;
use aegis_migrate::set::Set;
use aegis_store::install::{FILES, FOLDER};

/// The engine's changes with their lock.
///
/// # Errors
/// [`Problems`] when this binary was built of files that are no valid set, which its tests refuse.
pub fn set() -> Result<Set, Problems> {
    Set::of(Files::embedded(FOLDER, FILES.iter().copied()))
}

/// Changes with every line of the lock and with the ledger's tables: a name for a template of both.
pub fn fingerprint() -> String {
    let lock = FILES.iter().filter(|(name, _)| *name == LOCK_FILE);
    let mut bytes: Vec<u8> = lock.flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    bytes.extend_from_slice(script(LedgerName::Engine).as_bytes());
    sha256(&bytes)
}
