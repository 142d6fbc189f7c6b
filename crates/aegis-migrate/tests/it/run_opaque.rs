//! Opaque SQL: refused without a proof, and proven after it ran.

use aegis_migrate::change::Phase;
use aegis_migrate::ledger::{self, LedgerName};
use aegis_migrate::lint::{Known, lint};
use aegis_migrate::run::{Outcome, RunError};
use aegis_migrate::set::Set;
use aegis_testkit::TestDb;

use crate::folder::Folder;
use crate::run::{ID, change, ran, sealed, used};

/// Drops a column that is in use, in words that nobody reads.
const DROPS: &str = "DO $$ DECLARE t text := current_setting('app.what', true); BEGIN EXECUTE coalesce(t, 'ALTER TABLE app.users ' || 'DROP COLUMN name'); END $$;\n";

fn folder(sql: &str, verify: Option<&str>) -> Folder {
    let folder = change(
        Folder::default(),
        ID,
        "CREATE TABLE done (id int);\n",
        Some(sql),
    );
    let Some(verify) = verify else {
        return folder;
    };
    let toml = format!(
        "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n[migrate]\nsql = \"migrate.sql\"\nopaque = {{ verify = \"verify.sql\", reason = \"names are made up\" }}\n"
    );
    folder
        .with(&format!("{ID}/change.toml"), toml)
        .with(&format!("{ID}/verify.sql"), verify)
}

fn set(sql: &str, verify: Option<&str>) -> Set {
    sealed(&folder(sql, verify))
}

async fn has_name(db: &TestDb) -> bool {
    let found = db
        .admin
        .query_one(
            "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attname = 'name' AND NOT attisdropped)",
            &[],
        )
        .await;
    found.unwrap().get(0)
}

async fn migrated(db: &TestDb, set: &Set) -> Result<Outcome, RunError> {
    ran(db, set, Phase::Expand).await.unwrap();
    ran(db, set, Phase::Migrate)
        .await
        .map(|summary| summary.outcome)
}

async fn last_step(db: &TestDb) -> (String, Option<String>) {
    let row = db
        .admin
        .query_one(
            "SELECT state, said FROM aegis_migrate.step WHERE phase = 'migrate'",
            &[],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn opaque_sql_without_a_proof_runs_on_no_database() {
    let db = used().await;
    let refused = migrated(&db, &set(DROPS, None)).await.unwrap_err();
    assert_eq!(refused.exit_code(), 13, "{refused}");
    let said = refused.to_string();
    assert!(
        said.contains("class E") && said.contains("opaque-sql") && said.contains("verify.sql"),
        "{said}"
    );
    assert!(has_name(&db).await);

    let db = TestDb::empty().await;
    let sql = format!("CREATE SCHEMA app;\nCREATE TABLE users (id int, name text);\n{DROPS}");
    let fresh = sealed(&change(Folder::default(), ID, &sql, None));
    let refused = ran(&db, &fresh, Phase::Expand).await.unwrap_err();
    assert_eq!(refused.exit_code(), 13, "{refused}");
    assert!(has_name(&db).await);
}

#[test]
fn lint_asks_for_a_proof_and_for_one_that_can_be_asked() {
    let judged = |verify: Option<&str>| {
        let path = folder(DROPS, verify).on_disk();
        let input = aegis_migrate::lint::Input {
            path: path.path().join(ID),
            tool: None,
            schema: "public".to_owned(),
        };
        let units = aegis_migrate::lint::read(&input, None).unwrap();
        let known = Known {
            server: 18,
            catalog: None,
        };
        let mut judged = lint(&units, known);
        judged.retain(|one| !one.file.ends_with("expand.sql"));
        judged
    };
    let none = judged(None);
    assert_eq!((none.len(), none[0].passes), (1, false));
    let line = none[0].findings[0].declare.as_deref().unwrap();
    assert!(line.starts_with("opaque = { verify = "), "{line}");
    let text = aegis_migrate::lint::table(&none, false, &str::to_owned);
    assert!(
        text.contains("declare it in [migrate]: opaque = {"),
        "{text}"
    );

    let proven = judged(Some("SELECT true;\n"));
    assert_eq!((proven.len(), proven[0].passes), (1, true));
    assert_eq!(proven[0].class.to_string(), "C");
    assert_eq!(proven[0].findings[0].declare, None);
    assert!(!proven[0].unread.is_empty());

    for (verify, why) in [
        ("-- nothing\n", "it proves nothing"),
        ("SELECT true;\nDROP TABLE done;\n", "a proof is a SELECT"),
        ("SELEC true;\n", "expected command"),
    ] {
        let wrong = judged(Some(verify));
        let said: Vec<&str> = wrong
            .iter()
            .filter(|one| !one.passes)
            .flat_map(|one| one.findings.iter().map(|finding| finding.message.as_str()))
            .collect();
        assert!(
            said.len() == 1 && said[0].contains(why),
            "{verify}: {said:?}"
        );
    }
}

#[tokio::test]
async fn what_is_not_proven_is_rolled_back_and_a_proof_that_holds_ends_it() {
    let db = used().await;
    db.admin
        .batch_execute("CREATE TABLE app.ready (id int)")
        .await
        .unwrap();
    let verify = "SELECT NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'users'::regclass AND attname = 'name' AND NOT attisdropped);\nSELECT count(*) = 1 FROM ready;\n";
    let set = set(DROPS, Some(verify));
    let refused = migrated(&db, &set).await.unwrap_err();
    assert_eq!(refused.exit_code(), 12, "{refused}");
    let said = refused.to_string();
    assert!(
        said.contains("migrate.sql:1: ")
            && said.contains("verify.sql:2: not proven: it gave false"),
        "{said}"
    );
    assert!(has_name(&db).await, "it is in the same transaction");
    let (state, told) = last_step(&db).await;
    assert_eq!(state, "failed");
    assert!(told.unwrap().contains("verify.sql:2"));

    db.admin
        .batch_execute("INSERT INTO app.ready VALUES (1)")
        .await
        .unwrap();
    assert_eq!(migrated(&db, &set).await.unwrap(), Outcome::Applied);
    assert!(!has_name(&db).await);
    assert_eq!(last_step(&db).await.0, "applied");
    // The proof has left nothing set, and its part of the transaction is gone.
    let steps = ledger::steps(&db.admin, LedgerName::Application)
        .await
        .unwrap();
    assert!(steps.iter().all(|step| step.state.is_done()));
}

#[tokio::test]
async fn a_proof_is_one_row_true_and_writes_nothing() {
    let db = used().await;
    db.admin
        .batch_execute(
            "CREATE TABLE app.written (id int); CREATE FUNCTION app.writes() RETURNS boolean LANGUAGE sql AS 'INSERT INTO app.written VALUES (1); SELECT true'",
        )
        .await
        .unwrap();
    for (verify, why) in [
        ("SELECT true FROM users WHERE id = 7;\n", "it gave 0 rows"),
        (
            "SELECT true FROM generate_series(1, 2);\n",
            "it gave 2 rows",
        ),
        ("SELECT true, true;\n", "it gave 2 columns"),
        ("SELECT NULL::boolean;\n", "it gave NULL"),
        ("SELECT 1;\n", "is no boolean"),
        ("SELECT writes();\n", "read-only transaction"),
        ("SELECT nowhere FROM users;\n", "does not exist"),
    ] {
        let refused = migrated(&db, &set(DROPS, Some(verify))).await.unwrap_err();
        assert_eq!(refused.exit_code(), 12, "{verify}: {refused}");
        assert!(refused.to_string().contains(why), "{verify}: {refused}");
        assert!(has_name(&db).await, "{verify}");
        db.admin
            .batch_execute("DROP TABLE app.done; DROP SCHEMA aegis_migrate CASCADE")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn what_commits_by_itself_and_is_not_proven_is_unknown() {
    let db = used().await;
    let sql = "DO $$ DECLARE t text := current_setting('app.what', true); BEGIN EXECUTE coalesce(t, 'DELETE FROM app.' || 'users'); COMMIT; END $$;\n";
    let verify = "SELECT EXISTS (SELECT FROM users);\n";
    let refused = migrated(&db, &set(sql, Some(verify))).await.unwrap_err();
    assert_eq!(refused.exit_code(), 12, "{refused}");
    assert_eq!(last_step(&db).await.0, "unknown");
}

#[tokio::test]
async fn an_atomic_file_on_a_fresh_database_is_proven_at_its_end() {
    let toml = format!(
        "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\natomic = true\nopaque = {{ verify = \"verify.sql\", reason = \"names are made up\" }}\n"
    );
    let sql = format!(
        "CREATE SCHEMA app;\nCREATE TABLE users (id int, name text);\n{DROPS}CREATE TABLE after (id int);\n"
    );
    for (verify, code) in [
        ("SELECT to_regclass('after') IS NULL;\n", Some(12)),
        ("SELECT to_regclass('after') IS NOT NULL;\n", None),
    ] {
        let db = TestDb::empty().await;
        let folder = Folder::default()
            .with(&format!("{ID}/change.toml"), toml.as_str())
            .with(&format!("{ID}/expand.sql"), sql.as_str())
            .with(&format!("{ID}/verify.sql"), verify);
        let came = ran(&db, &sealed(&folder), Phase::Expand).await;
        assert_eq!(
            came.as_ref().err().map(RunError::exit_code),
            code,
            "{came:?}"
        );
        let row = db
            .admin
            .query_one("SELECT to_regclass('app.after') IS NOT NULL", &[])
            .await
            .unwrap();
        assert_eq!(row.get::<_, bool>(0), code.is_none());
    }
}
