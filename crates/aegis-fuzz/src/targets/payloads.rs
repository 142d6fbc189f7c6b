//! What bundles, attestations and approvals say, behind a signature that is valid: the bytes that only somebody with a key can send.

use std::sync::LazyLock;

use aegis_migrate::contract::approval::{self, Wanted};
use aegis_migrate::contract::bundle::{ATTESTATION, BUNDLE, open_attestation, open_bundle};
use aegis_migrate::contract::envelope::{Envelope, Signer};
use aegis_migrate::contract::keyring::Keyring;
use jiff::Timestamp;

use crate::holds::{same, says};

/// Made for this target; nothing else knows them.
const ANN: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINGiI2neBYOBbkY4htln+0FRMFsXoloNNp9cj/jj5Dr1
-----END PRIVATE KEY-----
";
const BOB: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJuY6Wc5VTxqm9vOafTFvo3gh6/Uu9cbxFq/JVD4aI8i
-----END PRIVATE KEY-----
";
const KEYRING: &str = r#"
format = 1
environment = "prod"
approvals = 1
bundle_max_age_s = 600
[[person]]
name = "ann"
may = ["observe"]
key = """
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAgZoaK5nDfm3BPSLTjexNxZmjlQey159d9FFeSv9JZsM=
-----END PUBLIC KEY-----
"""
[[person]]
name = "bob"
may = ["approve", "attest"]
key = """
-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAqozAbLkpu8heGoJPPtQRhVGfk2Sspg1XE9KmBLrG4z8=
-----END PUBLIC KEY-----
"""
"#;
/// 1970-01-01T01:00:00Z.
const NOW_S: i64 = 3600;

struct House {
    keyring: Keyring,
    ann: Signer,
    bob: Signer,
    now: Timestamp,
}

static HOUSE: LazyLock<Option<House>> = LazyLock::new(|| {
    Some(House {
        keyring: Keyring::read(KEYRING, "approvers.toml").ok()?,
        ann: Signer::from_pem("ann", ANN, "ann.pem").ok()?,
        bob: Signer::from_pem("bob", BOB, "bob.pem").ok()?,
        now: Timestamp::from_second(NOW_S).ok()?,
    })
});

/// The same bytes as each of the three documents, each signed by who may and by who may not.
pub(super) fn payloads(bytes: &[u8]) {
    let Some(house) = &*HOUSE else {
        panic!("the target's own keyring or keys are not read");
    };
    bundle(house, bytes);
    attestation(house, bytes);
    approval(house, bytes);
}

fn bundle(house: &House, bytes: &[u8]) {
    let open = |envelope: &Envelope| {
        open_bundle(
            envelope,
            &house.keyring,
            "a",
            None,
            house.now,
            "bundle.json",
        )
    };
    match open(&house.ann.sign(BUNDLE, bytes)) {
        Ok((bundle, by)) => {
            assert_eq!((by.as_str(), bundle.change.as_str()), ("ann", "a"));
            assert_eq!(bundle.environment, "prod");
            assert!(
                house.now.duration_since(bundle.at).as_secs() >= -60,
                "{bundle:?}"
            );
            let said = serde_json::to_vec(&bundle).unwrap_or_default();
            let again = open(&house.ann.sign(BUNDLE, &said));
            same(&Some(bundle), &again.ok().map(|again| again.0));
        }
        Err(error) => says(&error, bytes),
    }
    for (who, kind) in [(&house.bob, BUNDLE), (&house.ann, ATTESTATION)] {
        assert!(
            open(&who.sign(kind, bytes)).is_err(),
            "of somebody who may not, or another kind"
        );
    }
}

fn attestation(house: &House, bytes: &[u8]) {
    let open = |envelope: &Envelope| {
        open_attestation(envelope, &house.keyring, "a", house.now, "attestation.json")
    };
    match open(&house.bob.sign(ATTESTATION, bytes)) {
        Ok((attestation, by)) => {
            assert_eq!((by.as_str(), attestation.change.as_str()), ("bob", "a"));
            assert_eq!(attestation.environment, "prod");
            assert!(attestation.until > house.now, "{attestation:?}");
            assert!(!attestation.reason.trim().is_empty(), "{attestation:?}");
            let said = serde_json::to_vec(&attestation).unwrap_or_default();
            let again = open(&house.bob.sign(ATTESTATION, &said));
            same(&Some(attestation), &again.ok().map(|again| again.0));
        }
        Err(error) => says(&error, bytes),
    }
    for (who, kind) in [(&house.ann, ATTESTATION), (&house.bob, BUNDLE)] {
        assert!(
            open(&who.sign(kind, bytes)).is_err(),
            "of somebody who may not, or another kind"
        );
    }
}

fn approval(house: &House, bytes: &[u8]) {
    let wanted = Wanted {
        lock_line: "a",
        ledger: "b",
        attempt: 1,
        closed_at: Timestamp::UNIX_EPOCH,
        now: house.now,
    };
    let judge = |envelope: Envelope| {
        approval::judge(
            &[("approval.json".to_owned(), envelope)],
            &house.keyring,
            &wanted,
        )
    };
    match judge(house.bob.sign(approval::TYPE, bytes)) {
        Ok(approved) => assert_eq!(approved.by, ["bob"], "{approved:?}"),
        Err(error) => says(&error, bytes),
    }
    for (who, kind) in [(&house.ann, approval::TYPE), (&house.bob, BUNDLE)] {
        assert!(
            judge(who.sign(kind, bytes)).is_err(),
            "of somebody who may not, or another kind"
        );
    }
}
