//! The corpora as ordinary tests, and thousands of changed ones.
//!
//! One seed belongs to the suite. `AEGIS_FUZZ_CASES=100000` makes so many changes of each, from `AEGIS_FUZZ_SEED` (the time where
//! there is none); a failure names the target and leaves the bytes as a file, which belongs into the corpus.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use aegis_fuzz::change::{Numbers, changed};
use aegis_fuzz::{TARGETS, Target, target};

/// Changes of a target in the suite.
const CASES: usize = 2000;

fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name)
}

/// In the order of their names.
fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Gives the target these bytes; a failure leaves them as a file.
fn give(target: &Target, bytes: &[u8], from: &str) {
    if catch_unwind(|| (target.one)(bytes)).is_err() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}", target.name));
        std::fs::write(&path, bytes).unwrap();
        panic!(
            "{} breaks on {from}; its bytes are {}",
            target.name,
            path.display()
        );
    }
}

fn many(target: &Target) {
    let known = corpus(target);
    assert!(
        known.len() >= 2,
        "{} has no corpus to speak of",
        target.name
    );
    for (path, bytes) in &known {
        give(target, bytes, &path.display().to_string());
    }
    let cases = setting("AEGIS_FUZZ_CASES").map_or(CASES, |cases| usize::try_from(cases).unwrap());
    let seed = setting("AEGIS_FUZZ_SEED").unwrap_or_else(|| match setting("AEGIS_FUZZ_CASES") {
        None => 20_261_130,
        Some(_) => std::time::UNIX_EPOCH.elapsed().unwrap().as_secs(),
    });
    let mut numbers = Numbers::new(seed);
    for case in 0..cases {
        let one = &known[numbers.below(known.len())].1;
        let other = &known[numbers.below(known.len())].1;
        let bytes = changed(one, other, &mut numbers);
        give(target, &bytes, &format!("change {case} of seed {seed}"));
    }
}

macro_rules! targets {
    ($($test:ident $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            many(target($name).unwrap());
        })*

        #[test]
        fn each_target_has_a_test_and_each_folder_a_target() {
            let tested = BTreeSet::from([$($name),*]);
            let names: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tested, names);
            let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap();
            let folders: BTreeSet<_> = folders
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            assert_eq!(folders, names.iter().map(ToString::to_string).collect());
        }
    };
}

targets! {
    approvals "approvals", catalog "catalog", change_file "change", checkpoint "checkpoint", config_url "config-url",
    fencing_token "fencing-token", foreign "foreign", frames "frames", handler_line "handler-line", history "history", input "input",
    keyring "keyring", lock "lock", oracle_record "oracle-record", orders "orders", payloads "payloads", payments_record "payments-record",
    report "report", sealed "sealed", server_startup "server-startup", sql "sql", targets_file "targets", words "words",
}

/// A target that breaks is noticed, and its bytes are kept.
#[test]
fn bytes_that_break_a_target_are_kept() {
    let broken = Target {
        name: "broken",
        one: |bytes| assert!(!bytes.contains(&b'x'), "seen"),
    };
    give(&broken, b"fine", "a test");
    let said = catch_unwind(|| give(&broken, b"an x", "a test")).unwrap_err();
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.contains("broken breaks on a test"), "{said}");
    let path = said.rsplit_once("are ").unwrap().1;
    assert_eq!(std::fs::read(path).unwrap(), b"an x");
}
