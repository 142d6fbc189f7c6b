//! `abandon`: an expand that nobody used goes as it came, and nothing else does.

use std::time::Duration;

use aegis_migrate::abandon::abandon;
use aegis_migrate::change::Phase;
use aegis_migrate::repair::RepairError;
use aegis_migrate::set::Set;
use aegis_migrate::structure::{Sealed, verify};
use aegis_testkit::TestDb;

use crate::folder::Folder;
use crate::run::{ID, change, held, ladder, ran, sealed, set, used};

const BOUND: Duration = Duration::from_secs(20);

async fn taken_back(db: &TestDb, set: &Set, rows_may_go: bool) -> Result<Vec<String>, RepairError> {
    let mut mine = held(db, BOUND).await.unwrap();
    let id = ID.parse().unwrap();
    let done = abandon(&mut mine, set, &id, &ladder(), rows_may_go, "a wrong turn").await;
    mine.release().await;
    done
}

async fn there(db: &TestDb) -> (i64, i64, i64) {
    let row = db
        .admin
        .query_one(
            "SELECT (SELECT count(*) FROM information_schema.columns WHERE table_schema = 'app' AND column_name = 'a'),
                 (SELECT count(*) FROM aegis_migrate.step), (SELECT count(*) FROM aegis_migrate.phase)",
            &[],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn what_an_expand_made_is_taken_back_and_can_be_made_again() {
    let db = used().await;
    let set = set(
        "ALTER TABLE users ADD COLUMN a int;\nCREATE TABLE app.t (x int);\nCREATE INDEX i ON app.t (x);",
        None,
    );
    ran(&db, &set, Phase::Expand).await.unwrap();
    assert_eq!(there(&db).await, (1, 3, 1));
    let statements = taken_back(&db, &set, false).await.unwrap();
    assert_eq!(statements.len(), 3, "{statements:?}");
    assert_eq!(there(&db).await, (0, 0, 0));
    let sealed = Sealed::Unknown {
        why: "a test".to_owned(),
    };
    let report = verify(&db.admin, &["app".to_owned()], sealed)
        .await
        .unwrap();
    assert!(!report.steps.is_wrong(), "{report:?}");
    let rows: i64 = db
        .admin
        .query_one("SELECT count(*) FROM app.users", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(rows, 1, "what was there before stays");
    assert_eq!(ran(&db, &set, Phase::Expand).await.unwrap().applied, 3);
}

#[tokio::test]
async fn rows_that_would_be_lost_stop_it_until_they_are_given_up() {
    let db = used().await;
    let set = set("ALTER TABLE users ADD COLUMN a int DEFAULT 7;", None);
    ran(&db, &set, Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET a = 8")
        .await
        .unwrap();
    let error = taken_back(&db, &set, false).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    assert!(error.to_string().contains("--force-loss"), "{error}");
    assert_eq!(there(&db).await, (1, 1, 1));
    // Its default is nothing that anybody has written.
    db.admin
        .batch_execute("UPDATE app.users SET a = 7")
        .await
        .unwrap();
    taken_back(&db, &set, false).await.unwrap();
    ran(&db, &set, Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET a = 8")
        .await
        .unwrap();
    taken_back(&db, &set, true).await.unwrap();
    assert_eq!(there(&db).await, (0, 0, 0));
}

#[tokio::test]
async fn what_others_rest_on_or_nobody_can_take_back_stays() {
    let db = used().await;
    let rests = set(
        "ALTER TABLE users ADD COLUMN a int;",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    ran(&db, &rests, Phase::Expand).await.unwrap();
    ran(&db, &rests, Phase::Migrate).await.unwrap();
    let error = taken_back(&db, &rests, true).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");

    let other = used().await;
    let first = change(
        Folder::default(),
        ID,
        "ALTER TABLE users ADD COLUMN a int;",
        None,
    );
    ran(&other, &sealed(&first), Phase::Expand).await.unwrap();
    let both = sealed(&change(
        first,
        "20261130T0900_two",
        "CREATE INDEX i ON app.users (a);",
        None,
    ));
    ran(&other, &both, Phase::Expand).await.unwrap();
    let error = taken_back(&other, &both, true).await.unwrap_err();
    assert!(error.to_string().contains("came later"), "{error}");
    assert_eq!(there(&other).await.0, 1, "nothing was dropped");

    let dml = used().await;
    let writes = set("INSERT INTO app.users (id, name) VALUES (5, 'x');", None);
    ran(&dml, &writes, Phase::Expand).await.unwrap();
    let error = taken_back(&dml, &writes, true).await.unwrap_err();
    assert!(error.to_string().contains("no way back"), "{error}");
}

#[tokio::test]
async fn the_generated_trigger_goes_too_unless_a_program_was_seen_with_the_new_side() {
    let db = used().await;
    let folder = change(
        Folder::default(),
        ID,
        "ALTER TABLE users ADD COLUMN first_name text;",
        None,
    );
    let toml = format!("{ID}/change.toml");
    let sync = "[expand]\nsql = \"expand.sql\"\n";
    let set = sealed(&folder.edited(
        &toml,
        sync,
        &format!(
            "[sync]\ntable = \"users\"\nold = [\"name\"]\nnew = [\"first_name\"]\n[sync.forward]\nfirst_name = \"name\"\n\
             [sync.backward]\nname = \"first_name\"\n{sync}"
        ),
    ));
    ran(&db, &set, Phase::Expand).await.unwrap();
    let triggers = async || -> i64 {
        let sql = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'app.users'::regclass AND NOT tgisinternal";
        db.admin.query_one(sql, &[]).await.unwrap().get(0)
    };
    assert!(triggers().await > 0);
    // Only the old program writes; what the trigger has made of it would be lost.
    db.admin
        .batch_execute("UPDATE app.users SET name = 'Bob'")
        .await
        .unwrap();
    let error = taken_back(&db, &set, false).await.unwrap_err();
    assert!(error.to_string().contains("--force-loss"), "{error}");
    taken_back(&db, &set, true).await.unwrap();
    assert_eq!(triggers().await, 0);

    ran(&db, &set, Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET first_name = 'Eve'")
        .await
        .unwrap();
    let error = taken_back(&db, &set, true).await.unwrap_err();
    assert!(error.to_string().contains("new side"), "{error}");
    assert!(triggers().await > 0);
}

#[tokio::test]
async fn rows_that_a_policy_hides_from_the_owner_are_not_taken_for_none() {
    let db = used().await;
    let owner = format!("owner_{}", db.name());
    db.admin
        .batch_execute(&format!(
            "CREATE ROLE {owner}; GRANT USAGE, CREATE ON SCHEMA app TO {owner}; ALTER TABLE app.users OWNER TO {owner};
             ALTER TABLE app.users ENABLE ROW LEVEL SECURITY; ALTER TABLE app.users FORCE ROW LEVEL SECURITY"
        ))
        .await
        .unwrap();
    let folder = change(
        Folder::default(),
        ID,
        "ALTER TABLE users ADD COLUMN a int;",
        None,
    );
    let toml = format!("{ID}/change.toml");
    let run_as = format!("schema = \"app\"\nrun_as = \"{owner}\"\n");
    let set = sealed(&folder.edited(&toml, "schema = \"app\"\n", &run_as));
    ran(&db, &set, Phase::Expand).await.unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET a = 8")
        .await
        .unwrap();
    let error = taken_back(&db, &set, false).await.unwrap_err();
    assert_eq!(error.exit_code(), 12, "{error}");
    assert!(error.to_string().contains("row level security"), "{error}");
    assert_eq!(there(&db).await, (1, 1, 1));
    db.admin
        .batch_execute(&format!("DROP OWNED BY {owner} CASCADE; DROP ROLE {owner}"))
        .await
        .unwrap();
}
