//! `new`, and a folder that makes no sense.

use aegis_testkit::process_slot;

use super::folder::Folder;

#[tokio::test]
async fn process_new_makes_a_folder_that_can_be_read() {
    let _slot = process_slot();
    let folder = Folder::new();
    let ran = folder.run(None, &["new", "drop; table"]).await;
    assert!(ran.code == 2 && !folder.dir().exists(), "{ran:?}");
    let ran = folder.run(None, &["lint"]).await;
    assert!(
        ran.code == 2
            && ran
                .stderr
                .contains("`aegis migrate new NAME` makes the first change"),
        "{ran:?}"
    );
    let made = folder
        .json(None, &["new", "split-name", "--schema", "app"])
        .await;
    let id = made["id"].as_str().unwrap();
    assert!(id.ends_with("_split_name"), "{id}");
    let change = aegis_migrate::change::load(&folder.dir().join(id)).unwrap();
    assert_eq!(change.schema, "app");
    // As it was made it does nothing, and a line of the lock is for ever.
    let ran = folder.run(None, &["lint"]).await;
    assert!(
        ran.code == 0 && ran.stdout.contains("there is no statement to judge"),
        "{ran:?}"
    );
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
    assert!(
        ran.stderr
            .contains("expand.sql:1: [empty-file] it has no statement, so expand would do nothing"),
        "{ran:?}"
    );
    for url in ["", " "] {
        let ran = folder.run(Some(url), &["status"]).await;
        assert!(
            ran.code == 2
                && ran
                    .stderr
                    .contains("the database URL is empty; write postgresql://"),
            "{ran:?}"
        );
    }
    // The second takes the schema of the first, and another version even in the same minute.
    let second = folder.json(None, &["new", "next"]).await;
    let second = second["id"].as_str().unwrap();
    let set = aegis_migrate::set::Set::read(&folder.dir()).unwrap();
    assert_eq!(set.changes.len(), 2);
    assert_eq!(set.changes[&second.parse().unwrap()].schema, "app");
    let ran = folder.run(None, &["new", "drop; table"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(
        ran.stderr
            .contains("is no id of a change; write YYYYMMDDThhmm_words"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn process_a_folder_that_makes_no_sense_is_told_whole() {
    let _slot = process_slot();
    let folder = Folder::new();
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(
        ran.stderr.contains("migrations: the folder cannot be read"),
        "{ran:?}"
    );
    folder.change("20261129T1030_a", "SELECT 1;\n");
    folder.change("20261129T1030_b", "SELECT 1;\n");
    folder.write("20261129T1031_c/change.toml", "format = 1\nid = 7\n");
    folder.write(
        "20261129T1032_d/change.toml",
        b"format = 1\nid = \"\xff\"\n",
    );
    let ran = folder.run(None, &["seal"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
    for told in [
        "migrations/20261129T1030_b: the version 20261129T1030 is that of 20261129T1030_a too",
        "migrations/20261129T1031_c/change.toml:2: `id`: invalid type: integer `7`, expected a string",
        "migrations/20261129T1032_d/change.toml:2: it is not UTF-8",
    ] {
        assert!(ran.stderr.contains(told), "{told}\n{ran:?}");
    }
}
