//! What a session of the runner must be, and what happens to one that is lost.

use std::time::Duration;

use aegis_migrate::change::Phase;
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::mutex::{Held, RunName};
use aegis_migrate::run::{Outcome, RunError, run};
use aegis_migrate::session::Direct;
use aegis_testkit::{TestDb, wait_until};
use tokio_postgres::NoTls;

use crate::run::{ladder, ran, set, used};

const BOUND: Duration = Duration::from_secs(20);

fn name() -> RunName {
    RunName {
        run: "run-1".to_owned(),
        by: "ana".to_owned(),
        release: "r1".to_owned(),
    }
}

/// A role of this test's own, which the server has until it ends.
async fn role(db: &TestDb, what: &str, options: &str) -> String {
    let role = format!("{}_{what}", db.name());
    db.admin
        .batch_execute(&format!("CREATE ROLE {role} {options}"))
        .await
        .unwrap();
    role
}

#[tokio::test]
async fn mg_12_one_connection_is_enough_and_it_need_not_be_a_superusers() {
    let db = used().await;
    let role = role(&db, "one", "LOGIN CONNECTION LIMIT 1").await;
    db.admin
        .batch_execute(&format!(
            "GRANT CREATE ON DATABASE {} TO {role}; ALTER SCHEMA app OWNER TO {role}; ALTER TABLE app.users OWNER TO {role}",
            db.name()
        ))
        .await
        .unwrap();
    let set = set(
        "CREATE TABLE app.more (id int);",
        Some("CREATE INDEX CONCURRENTLY i ON app.users (name);"),
    );
    for phase in [Phase::Expand, Phase::Migrate] {
        let config = db.url_as(&role).parse().unwrap();
        let session = Direct::connect(&config, NoTls, "aegis migrate/r1/run-1")
            .await
            .unwrap();
        let pid = session.pid;
        let mut mine = Held::take(session, &name(), BOUND).await.unwrap();
        let done = run(&mut mine, &set, phase, &ladder(), &mut |_| {})
            .await
            .unwrap();
        assert_eq!((done.outcome, done.applied), (Outcome::Applied, 1));
        mine.release().await;
        wait_until("its only connection is free again", BOUND, async || {
            db.admin
                .query_opt("SELECT FROM pg_stat_activity WHERE pid = $1", &[&pid])
                .await
                .unwrap()
                .is_none()
        })
        .await;
    }
    db.admin
        .batch_execute(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"))
        .await
        .unwrap();
}

#[tokio::test]
async fn mg_12_two_ledgers_of_one_database_do_not_wait_for_one_another() {
    let db = used().await;
    let take = async |of: LedgerName| {
        let config = db.url().parse().unwrap();
        let session = Direct::connect(&config, NoTls, "aegis migrate/r1/run-1")
            .await
            .unwrap();
        Held::take_in(session, of, &name(), Duration::ZERO).await
    };
    let engine = take(LedgerName::Engine).await.unwrap();
    let application = take(LedgerName::Application).await.unwrap();
    // Of one ledger the second has to wait.
    take(LedgerName::Application).await.unwrap_err();
    engine.release().await;
    application.release().await;
}

#[tokio::test]
async fn who_may_not_make_the_ledger_or_not_become_run_as_is_told_so_and_changes_nothing() {
    let db = used().await;
    let (login, owner) = (
        role(&db, "login", "LOGIN").await,
        role(&db, "owner", "NOLOGIN").await,
    );
    let take = async || {
        let config = db.url_as(&login).parse().unwrap();
        let session = Direct::connect(&config, NoTls, "aegis migrate/r1/run-1")
            .await
            .unwrap();
        Held::take(session, &name(), BOUND).await
    };
    let error = aegis_migrate::run::RunError::from(take().await.unwrap_err());
    assert_eq!(error.exit_code(), 21);
    assert!(
        error.whole().contains("permission denied"),
        "{}",
        error.whole()
    );

    db.admin
        .batch_execute(&format!(
            "GRANT CREATE ON DATABASE {} TO {login}",
            db.name()
        ))
        .await
        .unwrap();
    let folder = crate::run::change(
        crate::folder::Folder::default(),
        crate::run::ID,
        "CREATE TABLE app.a (id int);",
        None,
    );
    let toml = format!("{}/change.toml", crate::run::ID);
    let set = crate::run::sealed(&folder.edited(
        &toml,
        "schema = \"app\"\n",
        &format!("schema = \"app\"\nrun_as = \"{owner}\"\n"),
    ));
    let mut mine = take().await.unwrap();
    let error = run(&mut mine, &set, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(error.exit_code(), 20, "{error}");
    assert!(error.to_string().contains("42501"), "{error}");
    mine.release().await;

    // A member, that inherits nothing: everything is done as the owner, the locks too.
    db.admin
        .batch_execute(&format!(
            "GRANT {owner} TO {login}; ALTER ROLE {login} NOINHERIT; ALTER TABLE app.users OWNER TO {owner}; GRANT CREATE, USAGE ON SCHEMA app TO {owner}"
        ))
        .await
        .unwrap();
    let mut mine = take().await.unwrap();
    let done = run(&mut mine, &set, Phase::Expand, &ladder(), &mut |_| {})
        .await
        .unwrap();
    assert_eq!(done.applied, 1);
    mine.release().await;
    let owns: String = db
        .admin
        .query_one(
            "SELECT relowner::regrole::text FROM pg_class WHERE oid = 'app.a'::regclass",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(owns, owner);
    db.admin
        .batch_execute(&format!(
            "DROP OWNED BY {login}, {owner} CASCADE; DROP ROLE {login}, {owner}"
        ))
        .await
        .unwrap();
}

#[tokio::test]
async fn mg_37_a_hook_that_runs_again_does_no_harm() {
    let db = used().await;
    let set = set("ALTER TABLE users ADD COLUMN a int;", None);
    ran(&db, &set, Phase::Expand).await.unwrap();
    let before: String = db
        .admin
        .query_one(
            "SELECT string_agg(s::text, '|') FROM aegis_migrate.step s",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    let (one, two) = tokio::join!(ran(&db, &set, Phase::Expand), ran(&db, &set, Phase::Expand));
    assert_eq!(one.unwrap().outcome, Outcome::Nothing);
    assert_eq!(two.unwrap().outcome, Outcome::Nothing);
    let after: String = db
        .admin
        .query_one(
            "SELECT string_agg(s::text, '|') FROM aegis_migrate.step s",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_role_that_may_not_use_the_ledger_is_told_whose_it_is() {
    let db = used().await;
    let stranger = role(&db, "stranger", "LOGIN").await;
    let config = db.url_as(&stranger).parse().unwrap();
    let taking = async || {
        let session = Direct::connect(&config, NoTls, "aegis migrate/r1/run-1")
            .await
            .unwrap();
        RunError::from(Held::take(session, &name(), BOUND).await.err().unwrap())
    };
    // None is there: it may make none. Then one is there, and it is another role's.
    for said in ["for database", "for schema aegis_migrate"] {
        let error = taking().await;
        let words = error.whole();
        assert_eq!(error.exit_code(), 21, "{words}");
        assert!(
            words.contains(said) && words.contains("One role"),
            "{words}"
        );
        crate::run::held(&db, BOUND).await.unwrap().release().await;
        db.admin
            .batch_execute("REVOKE USAGE ON SCHEMA aegis_migrate FROM PUBLIC")
            .await
            .unwrap();
    }
}
