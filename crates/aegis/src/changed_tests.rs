//! Words and files of a command line, changed by the thousand: what reads them ends, and refuses in words.
//!
//! For tests only. The targets of libraries stand in aegis-fuzz; what only the binary reads stands here, with the same changes.

use std::path::Path;

use aegis_fuzz::change::{Numbers, changed};

/// Gives each of these, then changed ones; one seed belongs to the suite, `AEGIS_FUZZ_CASES=100000` makes so many.
pub(crate) fn each(known: &[&str], one: impl Fn(&[u8])) {
    for text in known {
        one(text.as_bytes());
    }
    let cases = std::env::var("AEGIS_FUZZ_CASES");
    let cases = cases.map_or(2000, |text| text.parse::<usize>().unwrap());
    let mut numbers = Numbers::new(20_261_130);
    for _ in 0..cases {
        let bytes = known[numbers.below(known.len())].as_bytes();
        let other = known[numbers.below(known.len())].as_bytes();
        one(&changed(bytes, other, &mut numbers));
    }
}

/// A file with these bytes.
pub(crate) fn file(folder: &Path, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join("aegis.toml");
    std::fs::write(&path, bytes).unwrap();
    path
}
