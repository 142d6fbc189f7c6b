//! `run` and `status` where each schema of a database is a tenant.

use aegis_testkit::{TestDb, process_slot};
use serde_json::Value;

use super::folder::Folder;
use crate::support::{Ran, command, run};

pub(super) const USERS: &str = "20261128T0900_users";
pub(super) const MORE: &str = "20261129T1030_more";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.change(
        USERS,
        "CREATE TABLE users (id bigint PRIMARY KEY, name text);\n",
    );
    folder.write(
        "targets.toml",
        "format = 1\nparallel = 2\nstop = \"never\"\n[[query]]\nname = \"tenant\"\nurl_env = \"TENANTS\"\n\
         schemas = \"SELECT name FROM control.tenants ORDER BY name\"\n",
    );
    folder
}

async fn tenants() -> TestDb {
    let db = TestDb::empty().await;
    db.admin
        .batch_execute(
            "CREATE SCHEMA control; CREATE TABLE control.tenants (name text); INSERT INTO control.tenants VALUES ('t_1'), ('t_2'), ('t 3');
             CREATE SCHEMA t_1; CREATE SCHEMA t_2; CREATE SCHEMA \"t 3\"; CREATE TABLE t_2.users (id int)",
        )
        .await
        .unwrap();
    db
}

pub(super) async fn on(db: &TestDb, folder: &Folder, words: &[&str]) -> (Ran, Vec<Value>) {
    let mut all = vec!["migrate"];
    all.extend(words);
    all.extend(["--output", "json"]);
    let mut command = command(None, &all);
    command.current_dir(folder.path()).env("TENANTS", db.url());
    let ran = run(command).await;
    let lines = ran.stdout.lines();
    let lines = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    (ran, lines)
}

/// Outcome and exit code of each target of a run.
fn results(lines: &[Value]) -> Vec<(String, String, Option<i64>)> {
    let targets = lines.last().unwrap()["targets"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    targets
        .iter()
        .map(|one| {
            (
                text(&one["target"]),
                text(&one["outcome"]),
                one["exit_code"].as_i64(),
            )
        })
        .collect()
}

fn expected(outcomes: [(&str, Option<i64>); 3]) -> Vec<(String, String, Option<i64>)> {
    let names = ["tenant/t 3", "tenant/t_1", "tenant/t_2"];
    let of = |(name, (outcome, code)): (&str, (&str, Option<i64>))| {
        (name.to_owned(), outcome.to_owned(), code)
    };
    names.into_iter().zip(outcomes).map(of).collect()
}

#[tokio::test]
async fn process_mg_12_each_schema_of_a_database_has_its_own_books_result_and_structure() {
    let _slot = process_slot();
    let (folder, db) = (folder(), tenants().await);
    folder.json(None, &["seal"]).await;
    let (ran, lines) = on(&db, &folder, &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 20, "{ran:?}");
    let done = expected([("applied", None), ("applied", None), ("failed", Some(20))]);
    assert_eq!(results(&lines), done);
    // Made where the target is, with books beside it, and nowhere else.
    let row = db
        .admin
        .query_one(
            "SELECT to_regclass('t_1.users') IS NOT NULL AND to_regclass('\"t 3\".users') IS NOT NULL,
                 (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'aegis_migrate_of_%'),
                 (SELECT count(*) FROM pg_namespace WHERE nspname IN ('app', 'aegis_migrate')),
                 (SELECT count(*) FROM aegis_migrate_of_t_1.phase), (SELECT count(*) FROM aegis_migrate_of_t_2.phase)",
            &[],
        )
        .await
        .unwrap();
    let found: (bool, i64, i64, i64, i64) =
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
    assert_eq!(found, (true, 3, 0, 1, 0));
    let (ran, lines) = on(&db, &folder, &["status"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let documents = match lines.as_slice() {
        [Value::Array(all)] => all.clone(),
        all => all.to_vec(),
    };
    let states: Vec<(&str, &str)> = documents
        .iter()
        .map(|one| {
            (
                one["target"].as_str().unwrap(),
                one["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            ("tenant/t 3", "applied"),
            ("tenant/t_1", "applied"),
            ("tenant/t_2", "partly")
        ]
    );

    db.admin
        .batch_execute("DROP TABLE t_2.users")
        .await
        .unwrap();
    folder.write(
        &format!("{MORE}/change.toml"),
        format!(
            "format = 1\nid = \"{MORE}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n[migrate]\nsql = \"migrate.sql\"\n"
        ),
    );
    folder.write(
        &format!("{MORE}/expand.sql"),
        "CREATE TABLE more (id int);\n",
    );
    folder.write(
        &format!("{MORE}/migrate.sql"),
        "CREATE INDEX CONCURRENTLY users_name ON users (name);\n",
    );
    folder.json(None, &["seal"]).await;
    for phase in ["expand", "migrate"] {
        let (ran, lines) = on(&db, &folder, &["run", "--phase", phase]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let all = results(&lines);
        assert!(
            all.iter().all(|(_, outcome, _)| outcome == "applied"),
            "{all:?}"
        );
    }
    let valid: i64 = db
        .admin
        .query_one(
            "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname = 'users_name' AND i.indisvalid",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(valid, 3);
}

#[tokio::test]
async fn process_what_means_one_schema_is_refused_for_many_and_a_missing_one_is_told() {
    let _slot = process_slot();
    let (folder, db) = (folder(), tenants().await);
    db.admin
        .batch_execute("DROP TABLE t_2.users; DROP SCHEMA t_2")
        .await
        .unwrap();
    folder.json(None, &["seal"]).await;
    let (ran, lines) = on(&db, &folder, &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 21, "{ran:?}");
    let done = expected([("applied", None), ("applied", None), ("failed", Some(21))]);
    assert_eq!(results(&lines), done);
    assert!(
        ran.stderr
            .contains("the schema t_2 is not in this database"),
        "{ran:?}"
    );

    folder.change(
        MORE,
        "ALTER TABLE app.users ALTER name SET STATISTICS 10;\n",
    );
    folder.json(None, &["seal"]).await;
    let (ran, _) = on(&db, &folder, &["run", "--phase", "expand"]).await;
    assert_eq!(ran.code, 2, "{ran:?}");
    for word in ["expand.sql:1: it names app.users", "without a schema"] {
        assert!(ran.stderr.contains(word), "{ran:?}");
    }

    // One that is another target's ledger, of this tool's own making: nothing is touched.
    let own = "INSERT INTO control.tenants VALUES ('aegis_migrate_of_t_1')";
    db.admin.batch_execute(own).await.unwrap();
    let (ran, lines) = on(&db, &folder, &["status"]).await;
    assert_eq!((ran.code, lines.len()), (2, 0), "{ran:?}");
    let says = "targets.toml:7: the query of `tenant` names the schema aegis_migrate_of_t_1, which belongs to a ledger of this tool";
    assert!(ran.stderr.contains(says), "{ran:?}");
}
