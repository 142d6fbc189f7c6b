//! What somebody may put in the way: odd files, odd names, odd URLs. Each is told, nothing is half done, no password is printed.

use std::os::unix::fs::symlink;

use aegis_testkit::{TestDb, process_slot};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::folder::Folder;
use crate::support::{Ran, command, run};

const A: &str = "20261129T1030_a";
const SECRET: &str = "hunter2";

/// What it is called, what is told, and how it comes there.
type Odd<'a> = (&'a str, &'a str, &'a dyn Fn(&Folder));

fn folder() -> Folder {
    let folder = Folder::new();
    folder.change(A, "CREATE TABLE one (id int);\n");
    folder
}

#[tokio::test]
async fn process_a_file_that_is_none_and_a_name_that_is_none_are_told() {
    let _slot = process_slot();
    let sql = format!("{A}/expand.sql");
    let kinds: [Odd<'_>; 10] = [
        ("a pipe", "it is no regular file", &|folder| {
            std::fs::remove_file(folder.dir().join(&sql)).unwrap();
            mkfifo(&folder.dir().join(&sql), Mode::S_IRWXU).unwrap();
        }),
        ("a device", "it is no regular file", &|folder| {
            std::fs::remove_file(folder.dir().join(&sql)).unwrap();
            symlink("/dev/zero", folder.dir().join(&sql)).unwrap();
        }),
        ("a link to itself", "it cannot be read", &|folder| {
            std::fs::remove_file(folder.dir().join(&sql)).unwrap();
            symlink("expand.sql", folder.dir().join(&sql)).unwrap();
        }),
        ("a link to nothing", "it cannot be read", &|folder| {
            symlink("nowhere", folder.dir().join(A).join("more.sql")).unwrap();
        }),
        ("17 MiB", "it is larger than 16777216 bytes", &|folder| {
            folder.write(&sql, vec![b' '; 17 * 1024 * 1024]);
        }),
        ("0 bytes", "`expand.sql` is empty", &|folder| {
            folder.write(&sql, "");
        }),
        ("an empty change.toml", "change.toml", &|folder| {
            folder.write(&format!("{A}/change.toml"), "");
        }),
        ("capitals", "20261129T1031_Bad", &|folder| {
            folder.change("20261129T1031_Bad", "SELECT 1;\n");
        }),
        ("a space", "20261129T1031_b d", &|folder| {
            folder.change("20261129T1031_b d", "SELECT 1;\n");
        }),
        ("another script", "20261129T1031_große", &|folder| {
            folder.change("20261129T1031_große", "SELECT 1;\n");
        }),
    ];
    for (kind, told, makes) in kinds {
        let folder = folder();
        makes(&folder);
        for words in [&["seal"][..], &["new", "other"]] {
            let ran = folder.run(None, words).await;
            if words[0] == "new" {
                // It reads no change, and is in nobody's way.
                assert_eq!(ran.code, 0, "{kind} {ran:?}");
                continue;
            }
            assert_eq!(ran.code, 2, "{kind} {ran:?}");
            assert!(ran.stderr.contains(told), "{kind} {ran:?}");
            assert!(!folder.dir().join("migrations.lock").exists(), "{kind}");
        }
    }
}

fn silent(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains(SECRET), "{ran:?}");
    }
}

#[tokio::test]
async fn process_a_url_that_makes_no_sense_is_told_without_its_password() {
    let _slot = process_slot();
    let folder = folder();
    folder.write(
        "targets.toml",
        "format = 1\n[[target]]\nname = \"one\"\nurl_env = \"ONE\"\n",
    );
    for url in [
        format!("postgresql://u:{SECRET}@h:port/db"),
        format!("postgresql://u:{SECRET}@127.0.0.1:1/db?sslmode=sometimes"),
        format!("postgresql://u:{SECRET}@127.0.0.1:1/db"),
        format!("postgresql://127.0.0.1:1/db?password={SECRET}&user=u"),
        format!("postgresql://u:{SECRET}@/%zz"),
        format!("mysql://u:{SECRET}@h/db"),
        format!("host=127.0.0.1 port=1 user=u password={SECRET} dbname=d"),
        format!("u:{SECRET}"),
    ] {
        for given in [true, false] {
            let words = ["migrate", "status", "--output", "json"];
            let mut command = command(given.then_some(&*url), &words);
            command.current_dir(folder.path()).env("ONE", &url);
            let ran = run(command).await;
            assert!([2, 5, 17].contains(&ran.code), "{url} {ran:?}");
            assert!(
                ran.stderr.starts_with("error") || ran.stderr.starts_with("one: error"),
                "{url} {ran:?}"
            );
            silent(&ran);
        }
    }
}

#[tokio::test]
async fn process_neither_output_nor_ledger_has_a_password_and_the_surroundings_change_no_session() {
    let _slot = process_slot();
    let (folder, db) = (folder(), TestDb::empty().await);
    db.admin.batch_execute("CREATE SCHEMA app").await.unwrap();
    folder.json(None, &["seal"]).await;
    let (head, rest) = db
        .url()
        .split_once('@')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let user = head
        .rsplit('/')
        .next()
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    let url = format!("postgresql://{user}:{SECRET}@{rest}");
    // As libpq would take them.
    let surroundings = [
        (
            "PGOPTIONS",
            "-c default_transaction_read_only=on -c search_path=evil",
        ),
        ("PGSERVICE", "nowhere"),
        ("PGPASSFILE", "/nonexistent"),
        ("PGHOST", "127.0.0.9"),
        ("PGDATABASE", "nowhere"),
    ];
    let do_it = async |words: &[&str]| {
        let all = [&["migrate"][..], words, &["--output", "json"]].concat();
        let mut command = command(Some(&url), &all);
        command.current_dir(folder.path()).envs(surroundings);
        let ran = run(command).await;
        silent(&ran);
        ran
    };
    let ran = do_it(&["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in [
        &["status"][..],
        &["verify"],
        &["check", "--at-least", &format!("{A}:expand")],
    ] {
        let ran = do_it(words).await;
        assert_eq!(ran.code, 0, "{words:?} {ran:?}");
    }
    // A file that is gone since it was sealed: history, with nothing made.
    folder.change("20261129T1031_b", "CREATE TABLE two (id int);\n");
    folder.json(None, &["seal"]).await;
    std::fs::remove_file(folder.dir().join("20261129T1031_b/expand.sql")).unwrap();
    let ran = do_it(&["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    std::fs::remove_dir_all(folder.dir().join("20261129T1031_b")).unwrap();
    let ran = do_it(&["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 11, "{ran:?}");
    let row = db
        .admin
        .query_one(
            "SELECT to_regclass('app.one') IS NOT NULL, to_regclass('app.two') IS NULL,
                 string_agg(query_to_xml(format('SELECT * FROM aegis_migrate.%I', c.relname), false, false, '')::text, '')
             FROM pg_class c WHERE c.relnamespace = 'aegis_migrate'::regnamespace AND c.relkind = 'r'",
            &[],
        )
        .await
        .unwrap();
    assert!(row.get::<_, bool>(0) && row.get::<_, bool>(1));
    let books: String = row.get(2);
    assert!(books.contains(A) && !books.contains(SECRET));
}
