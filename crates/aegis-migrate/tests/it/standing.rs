//! Where a database stands beside a folder.

use aegis_migrate::change::{Phase, PhaseOf};
use aegis_migrate::lock::LockFile;
use aegis_migrate::set::Set;
use aegis_migrate::squash;
use aegis_migrate::standing::{Recorded, State, standing};

use crate::folder::{Folder, SPLIT_ID};

fn sealed(folder: &Folder) -> Set {
    let mut set = folder.set().unwrap();
    let mut lock = LockFile::default();
    for at in set.unsealed() {
        let sha256 = set.changes[&at.id].sha256(at.phase).unwrap();
        lock.append(at, sha256);
    }
    set.lock = lock;
    set
}

fn at(text: &str) -> PhaseOf {
    text.parse().unwrap()
}

/// A ledger in which these phases are whole, with the hashes of the lock.
fn ledger(set: &Set, whole: &[&str]) -> Vec<Recorded> {
    let row = |text: &&str| Recorded {
        at: at(text),
        sha256: set.lock.line(&at(text)).unwrap().sha256.clone(),
        whole: true,
        steps_done: 1,
        open: None,
    };
    whole.iter().map(row).collect()
}

const A: &str = "20261128T1030_a";
const B: &str = "20261130T0900_b";

#[test]
fn the_version_is_the_last_line_without_a_gap() {
    let set = sealed(&Folder::split().and_small(A).and_small(B));
    let all = [
        "20261128T1030_a:expand",
        "20261129T1030_split_name:expand",
        "20261130T0900_b:expand",
    ];
    let mut rows = ledger(&set, &all);
    assert_eq!(
        standing(&set, &rows).version(),
        2,
        "split_name:migrate is a gap before b"
    );
    assert_eq!(standing(&set, &[]).version(), 0);
    rows[1].whole = false;
    rows[1].open = Some("step 2 failed".to_owned());
    let stands = standing(&set, &rows);
    assert_eq!(stands.version(), 1);
    assert_eq!(
        stands.of(&at("20261129T1030_split_name:expand")),
        Some(&State::Partly {
            steps_done: 1,
            open: Some("step 2 failed".to_owned())
        })
    );
}

#[test]
fn an_older_folder_beside_a_newer_database_is_ahead_and_an_unfinished_one_is_not() {
    let newer = sealed(&Folder::small(A).and_small(B));
    let older = sealed(&Folder::small(A));
    let rows = ledger(
        &newer,
        &["20261128T1030_a:expand", "20261130T0900_b:expand"],
    );
    let stands = standing(&older, &rows);
    assert!(stands.is_ahead());
    assert_eq!(stands.unknown, [at("20261130T0900_b:expand")]);
    assert!(!standing(&newer, &rows).is_ahead());
    assert!(
        !standing(&older, &rows[1..]).is_ahead(),
        "its own line is open"
    );
    // A contract that waits for its approval does not make it less so.
    let split = sealed(&Folder::split());
    let mut before = ledger(
        &split,
        &[
            "20261129T1030_split_name:expand",
            "20261129T1030_split_name:migrate",
        ],
    );
    before.extend(rows);
    assert!(standing(&split, &before).is_ahead());
}

#[test]
fn a_folder_is_behind_only_when_all_that_it_has_came_first() {
    let (first, other, third) = (A, "20261129T0900_o", B);
    let lines = [first, other, third].map(|id| format!("{id}:expand"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let whole = sealed(&Folder::small(first).and_small(other).and_small(third));
    let rows = ledger(&whole, &lines);
    let gap = sealed(&Folder::small(first).and_small(third));
    let stands = standing(&gap, &rows);
    assert_eq!(stands.split(), Some(&(at(lines[1]), at(lines[2]))));
    assert!(!stands.is_ahead());
    // Merged in later with an older id: the folder of before is behind, and nothing more.
    let merged = ledger(&whole, &[lines[0], lines[2], lines[1]]);
    let stands = standing(&gap, &merged);
    assert_eq!((stands.split(), stands.is_ahead()), (None, true));
}

#[test]
fn another_hash_is_edited_history() {
    let set = sealed(&Folder::small(A));
    let mut rows = ledger(&set, &["20261128T1030_a:expand"]);
    rows[0].sha256 = "0".repeat(64);
    let stands = standing(&set, &rows);
    assert_eq!(stands.edited().count(), 1);
    assert_eq!((stands.version(), stands.is_ahead()), (0, false));
}

#[test]
fn a_line_that_was_merged_in_before_one_that_is_applied_is_out_of_order() {
    let set = sealed(&Folder::small(A).and_small(B));
    let stands = standing(&set, &ledger(&set, &["20261130T0900_b:expand"]));
    let found: Vec<String> = stands
        .out_of_order(Phase::Expand)
        .iter()
        .map(|line| line.line.at.to_string())
        .collect();
    assert_eq!(found, ["20261128T1030_a:expand"]);
    assert!(standing(&set, &[]).out_of_order(Phase::Expand).is_empty());
    assert!(
        standing(&set, &ledger(&set, &["20261128T1030_a:expand"]))
            .out_of_order(Phase::Expand)
            .is_empty()
    );
}

#[test]
fn mg_33_an_expand_that_needs_an_unfinished_backfill_is_told_with_the_command() {
    let toml = format!("{B}/change.toml");
    let set = sealed(&Folder::split().and_small(B).edited(
        &toml,
        "[expand]",
        &format!("requires = [\"{SPLIT_ID}:migrate\"]\n[expand]"),
    ));
    let expanded = ledger(&set, &["20261129T1030_split_name:expand"]);
    let told: Vec<String> = standing(&set, &expanded)
        .missing(Phase::Expand)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "20261130T0900_b:expand needs 20261129T1030_split_name:migrate, which is not applied: aegis migrate run --phase migrate"
        ]
    );
    let done = ledger(
        &set,
        &[
            "20261129T1030_split_name:expand",
            "20261129T1030_split_name:migrate",
        ],
    );
    assert_eq!(standing(&set, &done).missing(Phase::Expand).count(), 0);
}

#[test]
fn a_phase_needs_the_phases_before_it_and_not_what_its_own_run_applies_first() {
    let toml = format!("{B}/change.toml");
    let set = sealed(&Folder::split().and_small(A).and_small(B).edited(
        &toml,
        "[expand]",
        &format!("requires = [\"{A}:expand\"]\n[expand]"),
    ));
    let stands = standing(&set, &[]);
    assert_eq!(
        stands.missing(Phase::Expand).count(),
        0,
        "the run applies a before b"
    );
    let told: Vec<String> = stands
        .missing(Phase::Migrate)
        .map(|one| one.command.clone())
        .collect();
    assert_eq!(told, ["aegis migrate run --phase expand"]);
    let told: Vec<String> = stands
        .missing(Phase::Contract)
        .map(|one| one.needs.to_string())
        .collect();
    assert_eq!(
        told,
        [
            "20261129T1030_split_name:expand",
            "20261129T1030_split_name:migrate"
        ]
    );
}

#[test]
fn a_squash_counts_where_every_line_that_it_replaced_does() {
    let before = sealed(&Folder::small(A).and_small(SPLIT_ID).and_small(B));
    let squash = squash::prepare(&before, &SPLIT_ID.parse().unwrap()).unwrap();
    let after = squash.set(&before).unwrap();
    let line = at("20261129T1030_squashed:expand");
    let both = ["20261128T1030_a:expand", "20261129T1030_split_name:expand"];
    let stands = standing(&after, &ledger(&before, &both));
    assert_eq!(stands.of(&line), Some(&State::Squashed));
    assert_eq!((stands.version(), stands.unknown.len()), (1, 0));
    let behind = standing(&after, &ledger(&before, &both[..1]));
    assert_eq!(behind.of(&line), Some(&State::Pending));
    assert_eq!(behind.unknown, [], "an old line is known");
}
