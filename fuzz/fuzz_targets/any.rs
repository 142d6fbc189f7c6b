//! libFuzzer over the target that `AEGIS_FUZZ_TARGET` names: one binary, so that it is linked once.

#![no_main]

use std::sync::LazyLock;

use aegis_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("AEGIS_FUZZ_TARGET").unwrap_or_default();
    match aegis_fuzz::target(&name) {
        Some(target) => *target,
        None => panic!("AEGIS_FUZZ_TARGET is none of the folders in crates/aegis-fuzz/corpus: {name:?}"),
    }
});

fuzz_target!(|bytes: &[u8]| (TARGET.one)(bytes));
