//! `lint` from the command line.

use aegis_testkit::process_slot;

use super::folder::Folder;

#[tokio::test]
async fn process_lint_prints_an_object_for_each_statement_and_ends_with_3_for_findings() {
    let _slot = process_slot();
    let folder = Folder::new();
    folder.change(
        "20261129T1030_a",
        "ALTER TABLE users ADD COLUMN age int;\nALTER TABLE users DROP COLUMN name;\n",
    );
    let ran = folder.run(None, &["lint", "--format", "json"]).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let judged: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let drop = judged
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["line"] == 2);
    let drop = drop.unwrap();
    assert_eq!(
        (
            drop["class"].as_str(),
            drop["passes"].as_bool(),
            drop["lock"].as_str()
        ),
        (Some("D"), Some(false), Some("ACCESS EXCLUSIVE")),
        "{drop}"
    );
    assert!(!drop["rules"].as_array().unwrap().is_empty());

    let ran = folder.run(None, &["lint"]).await;
    assert!(
        ran.code == 3
            && ran
                .stdout
                .contains("expand.sql:2: class D, may not run here")
            && ran.stdout.contains("instead: ")
            && !ran.stdout.contains('\u{1b}'),
        "{ran:?}"
    );
    let ran = folder.run(None, &["--color", "always", "lint"]).await;
    assert!(ran.stdout.contains("\u{1b}[1;31mclass D"), "{ran:?}");
    let ran = folder.run(None, &["lint", "--format", "sarif"]).await;
    let log: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, log["version"].as_str()), (3, Some("2.1.0")));

    folder.write("../plain/a.sql", "CREATE TABLE a (id bigint);\n");
    let ran = folder.run(None, &["lint", "plain"]).await;
    assert!(
        ran.code == 0
            && ran
                .stderr
                .contains("plain: read as plain: in the order of their names"),
        "{ran:?}"
    );
    let ran = folder
        .run(None, &["lint", "plain", "--tool", "dbmat"])
        .await;
    assert!(
        ran.code == 2 && ran.stderr.contains("`dbmat` is none of sqlx, "),
        "{ran:?}"
    );
    folder.write("../plain/a.sql", "CREATE TABL a (id bigint);\n");
    let ran = folder.run(None, &["lint", "plain/a.sql"]).await;
    assert!(
        ran.code == 3
            && ran.stdout.contains("[unreadable] column 1: ")
            && ran.stdout.contains("    CREATE TABL a")
            && ran.stdout.contains('^'),
        "{ran:?}"
    );
    folder.change(
        "20261129T1030_a",
        &format!("SELECT {}1;\n", "(".repeat(10_000)),
    );
    let ran = folder.run(None, &["lint", "--format", "json"]).await;
    assert!(
        ran.code == 3 && ran.stdout.contains("\"rule\":\"unreadable\""),
        "{ran:?}"
    );
}

#[tokio::test]
async fn process_lint_explains_its_rules_and_refuses_what_it_cannot_take() {
    let _slot = process_slot();
    let folder = Folder::new();
    let ran = folder.run(None, &["lint", "--explain", "add-column"]).await;
    assert!(ran.code == 0 && ran.stdout.contains("instead"), "{ran:?}");
    for (words, said) in [
        (
            vec!["lint", "--explain", "add-colum"],
            "there is no rule add-colum; near: ",
        ),
        (vec!["lint", "nowhere"], "there is no such folder or file"),
        (
            vec!["lint", "--catalog", "nowhere.json"],
            "the catalog nowhere.json cannot be read",
        ),
        (
            vec!["lint", "--server-version", "13"],
            "13 is not in 14..=19",
        ),
    ] {
        let ran = folder.run(None, &words).await;
        assert!(
            ran.code == 2 && ran.stderr.contains(said),
            "{words:?}: {ran:?}"
        );
    }
}

#[tokio::test]
async fn process_lint_fix_edits_changes_tells_the_rest_and_takes_no_other_folder() {
    let _slot = process_slot();
    let folder = Folder::new();
    let sql = "CREATE INDEX by_age ON users (age);\nUPDATE users SET age = 1;\n";
    folder.change("20261129T1030_a", sql);
    let ran = folder.run(None, &["lint", "--fix"]).await;
    assert!(
        ran.code == 3
            && ran.stderr.contains("edited ")
            && ran.stderr.contains("expand.sql:1: [dml-bulk]"),
        "{ran:?}"
    );
    assert_eq!(
        folder.read("20261129T1030_a/migrate.sql"),
        "CREATE INDEX CONCURRENTLY by_age ON users (age);\n"
    );
    folder.write(
        "20261129T1030_a/expand.sql",
        "UPDATE users SET age = 1 WHERE id = 1;\n",
    );
    let ran = folder.run(None, &["lint", "--fix"]).await;
    assert!(
        ran.code == 0 && ran.stderr.contains("nothing to edit"),
        "{ran:?}"
    );
    folder.write("../plain/a.sql", "CREATE INDEX by_age ON users (age);\n");
    let ran = folder.run(None, &["lint", "--fix", "plain"]).await;
    assert!(
        ran.code == 2 && ran.stderr.contains("--fix edits nothing else"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn process_lint_fix_of_what_is_no_sql_edits_the_other_changes_and_ends_as_lint_does() {
    let _slot = process_slot();
    let folder = Folder::new();
    let broken = "CREATE INDEX by_name ON users (name);\nSELEC 1;\n";
    folder.change("20261129T1030_a", broken);
    folder.change("20261129T1031_b", "CREATE INDEX by_age ON users (age);\n");
    let ran = folder.run(None, &["lint", "--fix"]).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.stderr.contains("not mended: ")
            && ran.stderr.contains("20261129T1030_a/expand.sql:2: ")
            && ran.stderr.contains("nothing in this change was edited"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("[unreadable] column 1: "), "{ran:?}");
    assert_eq!(folder.read("20261129T1030_a/expand.sql"), broken);
    assert_eq!(
        folder.read("20261129T1031_b/migrate.sql"),
        "CREATE INDEX CONCURRENTLY by_age ON users (age);\n"
    );
    let one = "migrations/20261129T1030_a";
    let ran = folder.run(None, &["lint", "--fix", one]).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let root = folder
        .run(None, &["lint", "--fix", "--dir", "nowhere"])
        .await;
    assert_eq!(root.code, 2, "{root:?}");
}
