//! Folders of other tools, as they are on a disk.

use std::path::Path;

use aegis_migrate::adopt::write_change;
use aegis_migrate::foreign::{Tool, detect, read};

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    place
}

fn order(path: &Path, tool: Tool) -> Vec<String> {
    let files = read(path, tool).unwrap().into_iter();
    files
        .map(|file| {
            let version = file
                .version
                .map_or_else(|| "-".to_owned(), |version| version.to_string());
            format!("{version} {}", file.description)
        })
        .collect()
}

fn refused(path: &Path, tool: Tool) -> String {
    read(path, tool).unwrap_err().to_string()
}

#[test]
fn each_tools_folder_is_known_and_read_in_its_order() {
    let sqlx = folder(&[
        ("10_ten.up.sql", "SELECT 10;"),
        ("10_ten.down.sql", "DROP TABLE x;"),
        ("9_nine.sql", "SELECT 9;"),
    ]);
    assert_eq!(detect(sqlx.path()).unwrap(), Some(Tool::Sqlx));
    assert_eq!(order(sqlx.path(), Tool::Sqlx), ["9 nine", "10 ten"]);

    let goose = folder(&[
        (
            "00002_b.sql",
            "-- +goose Up\nSELECT 2;\n-- +goose Down\nDROP TABLE b;\n",
        ),
        ("00001_a.sql", "-- +goose Up\nSELECT 1;\n"),
    ]);
    assert_eq!(detect(goose.path()).unwrap(), Some(Tool::Goose));
    assert_eq!(order(goose.path(), Tool::Goose), ["1 a", "2 b"]);
    let files = read(goose.path(), Tool::Goose).unwrap();
    assert_eq!(files[1].text, "\nSELECT 2;\n");

    let flyway = folder(&[
        ("V1_10__b.sql", "SELECT 2;"),
        ("sub/V1_9__a.sql", "SELECT 1;"),
        ("R__view.sql", "SELECT 3;"),
        ("U1_9__a.sql", "DROP TABLE a;"),
    ]);
    assert_eq!(detect(flyway.path()).unwrap(), Some(Tool::Flyway));
    assert_eq!(
        order(flyway.path(), Tool::Flyway),
        ["1.9 a", "1.10 b", "- view"]
    );

    let refinery = folder(&[
        ("V1__a.sql", "SELECT 1;"),
        ("U7__c.sql", "SELECT 7;"),
        ("V2__b.sql", "SELECT 2;"),
    ]);
    assert_eq!(
        order(refinery.path(), Tool::Refinery),
        ["1 a", "2 b", "7 c"]
    );

    let rails = folder(&[
        ("db/structure.sql", "SELECT 1;"),
        ("db/migrate/20260101_a.rb", "class A; end"),
    ]);
    assert_eq!(detect(rails.path()).unwrap(), Some(Tool::Rails));
    assert_eq!(order(rails.path(), Tool::Rails), ["- structure"]);

    let plain = folder(&[
        ("b.sql", "SELECT 2;"),
        ("a.sql", "SELECT 1;"),
        ("a.down.sql", "x"),
    ]);
    assert_eq!(detect(plain.path()).unwrap(), None);
    assert_eq!(order(plain.path(), Tool::Plain), ["- a", "- b"]);
    assert_eq!(
        detect(&plain.path().join("a.sql")).unwrap(),
        Some(Tool::Plain)
    );
}

#[test]
fn what_a_tool_would_not_run_or_nobody_can_read_is_told() {
    let twice = folder(&[("1_a.sql", "SELECT 1;"), ("01_b.sql", "SELECT 1;")]);
    let told = refused(twice.path(), Tool::Sqlx);
    assert!(
        told.contains("the version 1 is that of") && told.contains("too; rename the one"),
        "{told}"
    );

    let hole = folder(&[("V1__a.sql", "SELECT 1;"), ("V3__c.sql", "SELECT 3;")]);
    let told = refused(hole.path(), Tool::Refinery);
    assert!(
        told.contains(
            "V3__c.sql: versions between 1 and 3 are missing; put the missing files back"
        ),
        "{told}"
    );
    assert_eq!(read(hole.path(), Tool::Flyway).unwrap().len(), 2);

    let go = folder(&[
        ("00001_a.go", "package a"),
        ("00002_b.sql", "-- +goose Up\nSELECT 1;"),
    ]);
    let told = refused(go.path(), Tool::Goose);
    assert!(
        told.contains("00001_a.go: a migration written in Go; only SQL can be read"),
        "{told}"
    );

    let strange = folder(&[("V1__a.sql", "SELECT 1;"), ("init.sql", "SELECT 1;")]);
    let told = refused(strange.path(), Tool::Flyway);
    assert!(
        told.contains("init.sql: flyway has no files of such a name"),
        "{told}"
    );

    let placeholder = folder(&[("V1__a.sql", "SELECT 1;\nGRANT ALL ON a TO ${role};")]);
    let files = read(placeholder.path(), Tool::Flyway).unwrap();
    let root = placeholder.path().join("migrations");
    let now = jiff::Timestamp::UNIX_EPOCH;
    let told = write_change(&root, Tool::Flyway, "public", &files, now).unwrap_err();
    assert!(
        told.to_string().contains(
            "V1__a.sql:2: ${role} is filled when it runs; it was read as placeholder_role; write its value into the file"
        ),
        "{told}"
    );
    assert!(!root.exists());

    let empty = folder(&[("README.md", "x")]);
    let told = refused(empty.path(), Tool::Sqlx);
    assert!(told.contains("no file of sqlx in it"), "{told}");
    let told = refused(&empty.path().join("nowhere"), Tool::Sqlx);
    assert!(told.contains("nowhere: it cannot be read"), "{told}");
}

#[test]
fn bytes_that_are_not_utf_8_are_told_with_their_line() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("1_a.sql"), b"SELECT 1;\nSELECT '\xff';\n").unwrap();
    let told = refused(place.path(), Tool::Sqlx);
    assert!(told.contains("1_a.sql:2: it is not UTF-8"), "{told}");
}
