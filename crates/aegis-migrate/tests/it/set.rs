//! A folder of changes with its lock.

use aegis_migrate::change::{ChangeId, Files, PhaseOf};
use aegis_migrate::lock::LockFile;
use aegis_migrate::seal::prepare;
use aegis_migrate::set::Set;
use aegis_migrate::squash;

use crate::folder::{Folder, SPLIT_ID};

/// A lock of all that is there.
fn sealed(folder: &Folder) -> Folder {
    let set = folder.set().unwrap();
    let mut lock = LockFile::default();
    for at in set.unsealed() {
        let sha256 = set.changes[&at.id].sha256(at.phase).unwrap();
        lock.append(at, sha256);
    }
    folder.clone().with("migrations.lock", lock.text())
}

#[test]
fn a_change_is_sealed_phase_by_phase_and_contracts_come_last() {
    let folder = Folder::split().and_small("20261130T0900_after");
    let set = folder.set().unwrap();
    let order: Vec<String> = set.unsealed().iter().map(ToString::to_string).collect();
    assert_eq!(
        order,
        [
            "20261129T1030_split_name:expand",
            "20261129T1030_split_name:migrate",
            "20261130T0900_after:expand",
            "20261129T1030_split_name:contract",
        ]
    );
    let set = sealed(&folder).set().unwrap();
    set.sealed().unwrap();
    assert_eq!(set.unsealed(), []);
    assert_eq!(set.lines().count(), 4);
}

#[test]
fn edited_history_is_refused_with_the_line_of_the_lock_and_the_files() {
    let folder = sealed(&Folder::split());
    let name = format!("{SPLIT_ID}/expand.sql");
    let edited = folder.clone().with(&name, "SELECT 2;\n").set().unwrap();
    let refused = edited.sealed().unwrap_err();
    assert_eq!(refused.exit_code(), 11);
    let told = refused.to_string();
    assert!(
        told.starts_with("migrations/migrations.lock:3: 20261129T1030_split_name:expand was edited after it was sealed (migrations/20261129T1030_split_name/change.toml, migrations/20261129T1030_split_name/expand.sql); put the files back"),
        "{told}"
    );
    assert_eq!(refused.all().len(), 1, "{told}");
}

#[test]
fn a_sealed_change_that_is_missing_is_refused() {
    let folder = sealed(&Folder::small("20261129T1030_a").and_small("20261129T1031_b"))
        .without("20261129T1030_a/change.toml")
        .without("20261129T1030_a/expand.sql");
    let refused = folder.set().unwrap().sealed().unwrap_err();
    assert_eq!(refused.exit_code(), 11);
    let told = refused.to_string();
    assert!(
        told.contains(
            "migrations.lock:3: 20261129T1030_a:expand is sealed, and its folder is missing"
        ),
        "{told}"
    );
}

#[test]
fn two_changes_of_one_version_are_refused() {
    let folder = Folder::small("20261129T1030_a").and_small("20261129T1030_b");
    let told = folder.set().unwrap_err().to_string();
    assert!(
        told.contains(
            "20261129T1030_b: the version 20261129T1030 is that of 20261129T1030_a too; rename"
        ),
        "{told}"
    );
}

#[test]
fn what_stands_beside_changes_and_looks_as_if_it_should_run_is_told() {
    let told = Folder::small("20261129T1030_a")
        .with("V1__init.sql", "SELECT 1;")
        .with("old/change.toml", "")
        .with("notes/README.md", "")
        .set()
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("migrations/V1__init.sql: an SQL file outside of a change would never run"),
        "{told}"
    );
    assert!(
        told.contains("migrations/old: `old` is no id of a change"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 2, "{told}");
}

#[test]
fn a_requirement_has_to_be_there_and_older() {
    let with = |at: &str| {
        Folder::small("20261129T1030_a")
            .and_small("20261129T1031_b")
            .edited(
                "20261129T1030_a/change.toml",
                "[expand]",
                &format!("requires = [\"{at}\"]\n[expand]"),
            )
            .set()
    };
    for (at, told) in [
        (
            "20261129T1031_b:expand",
            "20261129T1031_b:expand is younger than 20261129T1030_a",
        ),
        (
            "20261129T1029_c:expand",
            "there is no change 20261129T1029_c",
        ),
        ("20261129T1031_b:migrate", "20261129T1031_b has no migrate"),
    ] {
        let refused = with(at).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
}

#[test]
fn a_folder_that_is_not_there_or_no_folder_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("nowhere");
    let told = Set::read(&missing).unwrap_err().to_string();
    assert!(
        told.contains("nowhere: the folder cannot be read"),
        "{told}"
    );
    let file = place.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let told = Set::read(&file).unwrap_err().to_string();
    assert!(
        told.contains("this is no folder; name the folder with migrations.lock by --dir"),
        "{told}"
    );
}

#[test]
fn a_folder_on_the_disk_is_read_as_one_that_is_built_in() {
    let place = tempfile::tempdir().unwrap();
    let id = "20261129T1030_a";
    let folder = Folder::small(id);
    std::fs::create_dir(place.path().join(id)).unwrap();
    for name in folder.files().names() {
        std::fs::write(place.path().join(name), folder.files().get(name).unwrap()).unwrap();
    }
    std::fs::create_dir(place.path().join(".git")).unwrap();
    let read = Set::read(place.path()).unwrap();
    let built_in = folder.set().unwrap();
    for (id, change) in &read.changes {
        for phase in aegis_migrate::change::Phase::ALL {
            assert_eq!(change.sha256(phase), built_in.changes[id].sha256(phase));
        }
    }
    let alone = aegis_migrate::change::load(&place.path().join(id)).unwrap();
    assert_eq!(alone.id.as_str(), id);
    assert_eq!(Files::read(place.path()).unwrap().names().count(), 2);
}

#[test]
fn sealing_appends_and_moves_nothing() {
    let folder = sealed(&Folder::split());
    let before = folder.set().unwrap().lock;
    let more = folder.and_small("20261130T0900_after").set().unwrap();
    let seal = prepare(&more, &[]).unwrap();
    assert!(seal.lock.text().starts_with(before.text()));
    assert_eq!(
        seal.added
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["20261130T0900_after:expand"]
    );
    assert_eq!(seal.edited, []);
    let mut again = more.clone();
    again.lock = seal.lock;
    assert!(prepare(&again, &[]).unwrap().is_nothing());
}

#[test]
fn an_edited_line_is_sealed_again_only_when_it_is_named() {
    let name = format!("{SPLIT_ID}/expand.sql");
    let set = sealed(&Folder::split())
        .with(&name, "SELECT 2;\n")
        .set()
        .unwrap();
    assert_eq!(prepare(&set, &[]).unwrap_err().exit_code(), 11);
    let at: PhaseOf = format!("{SPLIT_ID}:expand").parse().unwrap();
    let seal = prepare(&set, std::slice::from_ref(&at)).unwrap();
    assert_eq!((seal.edited, seal.added), (vec![at.clone()], vec![]));
    let line = seal.lock.line(&at).unwrap();
    assert_eq!(line.sha256, set.changes[&at.id].sha256(at.phase).unwrap());
    assert_eq!(line.line, set.lock.line(&at).unwrap().line);
    // Another one that was edited too stays a mistake.
    let name = format!("{SPLIT_ID}/contract.sql");
    let two = sealed(&Folder::split())
        .with(&name, "SELECT 2;\n")
        .with(&format!("{SPLIT_ID}/expand.sql"), "SELECT 2;\n")
        .set()
        .unwrap();
    let told = prepare(&two, std::slice::from_ref(&at))
        .unwrap_err()
        .to_string();
    assert!(
        told.contains(":contract was edited") && !told.contains(":expand was edited"),
        "{told}"
    );
    let never: PhaseOf = "20261130T0900_after:expand".parse().unwrap();
    let told = prepare(&set, &[never]).unwrap_err().to_string();
    assert!(
        told.contains("20261130T0900_after:expand is not sealed; leave out --edited"),
        "{told}"
    );
}

#[test]
fn old_changes_become_one_and_their_lines_stay_known() {
    let place = tempfile::tempdir().unwrap();
    let folder = sealed(
        &Folder::small("20261129T1030_a")
            .and_small("20261129T1031_b")
            .and_small("20261129T1032_c")
            .edited(
                "20261129T1032_c/change.toml",
                "[expand]",
                "requires = [\"20261129T1031_b:expand\"]\n[expand]",
            ),
    );
    for name in folder.files().names() {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, folder.files().get(name).unwrap()).unwrap();
    }
    let before = Set::read(place.path()).unwrap();
    let squash = squash::prepare(&before, &"20261129T1031_b".parse().unwrap()).unwrap();
    let tried = squash.set(&before).unwrap();
    squash.write(place.path()).unwrap();
    let after = Set::read(place.path()).unwrap();
    assert_eq!(after.lock, tried.lock);
    after.sealed().unwrap();
    assert_eq!(after.unsealed(), []);
    let ids: Vec<&str> = after.changes.keys().map(ChangeId::as_str).collect();
    assert_eq!(ids, ["20261129T1031_squashed", "20261129T1032_c"]);
    let b: PhaseOf = "20261129T1031_b:expand".parse().unwrap();
    let baseline = after.squash_of(&b).unwrap();
    let line = baseline.squashed.as_ref().unwrap().line(&b).unwrap();
    assert_eq!(line.sha256, before.lock.line(&b).unwrap().sha256);
    let text = &baseline.file("expand.sql").unwrap().text;
    assert!(text.contains("-- from 20261129T1030_a/expand.sql\nCREATE TABLE t1030 (id bigint);\n\n-- from 20261129T1031_b/expand.sql"), "{text}");
}

#[test]
fn what_cannot_be_squashed_is_told() {
    let refused = |folder: &Folder, through: &str| {
        squash::prepare(&folder.set().unwrap(), &through.parse().unwrap())
            .unwrap_err()
            .to_string()
    };
    let three = Folder::split()
        .and_small("20261128T1030_a")
        .and_small("20261130T0900_b");
    let told = refused(&sealed(&three), SPLIT_ID);
    assert!(
        told.contains(
            "20261129T1030_split_name:contract comes after 20261130T0900_b:expand, which would stay"
        ),
        "{told}"
    );
    assert!(
        refused(&three, SPLIT_ID).contains("20261129T1030_split_name:migrate is not sealed"),
        "{told}"
    );
    let told = refused(&sealed(&three), "20261128T1030_a");
    assert!(
        told.contains("20261128T1030_a is the first change"),
        "{told}"
    );
    let told = refused(&sealed(&three), "20261128T1030_z");
    assert!(
        told.contains("there is no change 20261128T1030_z"),
        "{told}"
    );
    let told = refused(&sealed(&three), "20261130T0900_b");
    assert!(
        told.contains("has another schema or run_as than 20261128T1030_a"),
        "{told}"
    );
}
