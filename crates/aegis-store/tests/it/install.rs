//! The installer: once whoever runs it, whole or not at all; versions side by side; roles and the settings they carry.

use aegis_store::install::{SCHEMA, STEPS, Step, install, install_steps, verify_against};
use aegis_store::{Config, Store, StoreError};
use aegis_testkit::TestDb;

/// A step of the next version, for tests only.
const NEXT: Step = Step {
    version: SCHEMA + 1,
    name: "next",
    sql: "ALTER TABLE aegis.worker ADD COLUMN colour text",
};

fn config(db: &TestDb) -> Config {
    Config::from_url(&db.url()).unwrap()
}

fn engine(db: &TestDb) -> Config {
    Config::from_url(&db.url_as("aegis_engine")).unwrap()
}

fn with(step: Step) -> Vec<Step> {
    let mut steps = STEPS.to_vec();
    steps.push(step);
    steps
}

#[tokio::test]
async fn rl_22_two_installers_at_once_apply_each_step_once() {
    let db = TestDb::empty().await;
    let (a, b) = (config(&db), config(&db));
    let (a, b) = tokio::join!(install(&a, 2), install(&b, 2));
    let (a, b) = (a.unwrap(), b.unwrap());
    let mut applied = [a.applied.clone(), b.applied.clone()].concat();
    applied.sort_unstable();
    assert_eq!(applied, (1..=SCHEMA).collect::<Vec<_>>());
    assert_eq!((a.schema, b.schema), (SCHEMA, SCHEMA));
    // Yesterday, today and two days more, for each of the seven tables.
    assert_eq!(a.partitions + b.partitions, 4 * 7);
    let again = install(&config(&db), 2).await.unwrap();
    assert_eq!((again.applied.len(), again.partitions), (0, 0));
    let locks = "select count(*) from pg_locks where locktype = 'advisory'
        and database = (select oid from pg_database where datname = current_database())";
    let left: i64 = db.admin.query_one(locks, &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "a lock outlived its install");
    Store::connect(engine(&db)).await.unwrap();
}

/// The roles belong to the cluster: installs in two databases at once meet there.
#[tokio::test]
async fn installs_in_two_databases_at_once_share_the_roles() {
    let (one, two) = (TestDb::empty().await, TestDb::empty().await);
    let (a, b) = (config(&one), config(&two));
    let (a, b) = tokio::join!(install(&a, 0), install(&b, 0));
    assert_eq!(a.unwrap().applied, b.unwrap().applied);
}

#[tokio::test]
async fn a_step_that_fails_leaves_nothing_half_done() {
    let db = TestDb::empty().await;
    let broken = Step {
        sql: "CREATE TABLE aegis.half (n int); SELECT 1 / 0",
        ..NEXT
    };
    let error = install_steps(&config(&db), &with(broken), 2)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Database { .. }), "{error:?}");
    let there = "select to_regnamespace('aegis') is not null";
    let row = db.admin.query_one(there, &[]).await.unwrap();
    assert!(!row.get::<_, bool>(0), "a part of the schema was left");
    install(&config(&db), 2).await.unwrap();
}

#[tokio::test]
async fn an_edited_step_is_refused_by_its_number() {
    let db = TestDb::new().await;
    let mut steps = STEPS.to_vec();
    let edited = format!("{}-- edited\n", steps[2].sql);
    steps[2].sql = edited.leak();
    let error = install_steps(&config(&db), &steps, 2).await.unwrap_err();
    assert!(
        matches!(error, StoreError::StepEdited { version: 3 }),
        "{error:?}"
    );
}

/// Steps only expand: a program that started before any of them starts after all of them, until somebody switches.
#[tokio::test]
async fn no_step_raises_min_schema() {
    let db = TestDb::empty().await;
    install_steps(&config(&db), &STEPS[..3], 2).await.unwrap();
    for known in 4..=STEPS.len() {
        install_steps(&config(&db), &STEPS[..known], 2)
            .await
            .unwrap();
        let admitted = "SELECT min_schema FROM aegis.schema_version";
        let admitted: i32 = db.admin.query_one(admitted, &[]).await.unwrap().get(0);
        assert_eq!(admitted, 0, "step {known}");
    }
}

/// Version N has expanded; N - 1 starts, installs (nothing) and works beside it.
#[tokio::test]
async fn the_version_before_works_beside_the_next_one() {
    let db = TestDb::new().await;
    let installed = install_steps(&config(&db), &with(NEXT), 2).await.unwrap();
    assert_eq!(
        (installed.applied, installed.schema),
        (vec![SCHEMA + 1], SCHEMA + 1)
    );
    verify_against(&db.admin, SCHEMA + 1).await.unwrap();
    verify_against(&db.admin, SCHEMA).await.unwrap();
    let before = install(&config(&db), 2).await.unwrap();
    assert_eq!((before.applied.len(), before.schema), (0, SCHEMA + 1));
    let store = Store::connect(engine(&db)).await.unwrap();
    let status = store.database_status().await.unwrap();
    // A new database begins switched to inline inputs, which schema 7 reads; the next step raises nothing.
    assert_eq!((status.schema, status.min_schema), (SCHEMA + 1, 7));
}

#[tokio::test]
async fn a_version_that_does_not_fit_is_refused_with_both_numbers() {
    let db = TestDb::new().await;
    let error = verify_against(&db.admin, SCHEMA + 2).await.unwrap_err();
    let StoreError::SchemaTooOld { found, needed } = error else {
        panic!("{error:?}");
    };
    assert_eq!((found, needed), (SCHEMA, SCHEMA + 2));
    let text = error.to_string();
    assert!(
        text.contains(&SCHEMA.to_string()) && text.contains(&(SCHEMA + 2).to_string()),
        "{text}"
    );

    let contracted = format!(
        "update aegis.schema_version set schema = {0}, min_schema = {0}",
        SCHEMA + 3
    );
    db.admin.batch_execute(&contracted).await.unwrap();
    let refused = [
        Store::connect(engine(&db)).await.err().unwrap(),
        install(&config(&db), 2).await.unwrap_err(),
    ];
    for error in refused {
        let StoreError::BinaryTooOld { known, min_schema } = error else {
            panic!("{error:?}");
        };
        assert_eq!((known, min_schema), (SCHEMA, SCHEMA + 3));
        let text = error.to_string();
        assert!(
            text.contains(&SCHEMA.to_string()) && text.contains(&(SCHEMA + 3).to_string()),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_database_without_the_schema_says_what_to_run() {
    // The first one makes the roles.
    let _roles = TestDb::new().await;
    let db = TestDb::empty().await;
    let error = Store::connect(engine(&db)).await.err().unwrap();
    assert!(matches!(error, StoreError::NotInstalled), "{error:?}");
    assert!(error.to_string().contains("aegis db install"));
}

#[tokio::test]
async fn an_address_where_nobody_answers_is_named_without_its_secrets() {
    let config = Config::from_url("postgresql://ann:s3cret@127.0.0.1:1/x").unwrap();
    for error in [
        Store::connect(config.clone()).await.err().unwrap(),
        install(&config, 2).await.unwrap_err(),
    ] {
        let text = format!("{error} {error:?}");
        assert!(text.contains("127.0.0.1 port 1"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(!format!("{config:?}").contains("s3cret"));
}

/// A database default of REPEATABLE READ would turn guarded writes into 40001: the role's own setting wins over it, and a
/// role that has none is refused at start-up.
#[tokio::test]
async fn m10_an_isolation_that_breaks_the_guard_is_refused_at_start_up() {
    let db = TestDb::new().await;
    let default = format!(
        "alter database {} set default_transaction_isolation = 'repeatable read'",
        db.name()
    );
    db.admin.batch_execute(&default).await.unwrap();
    Store::connect(engine(&db)).await.unwrap();
    let in_database = format!(
        "alter role aegis_engine in database {} set default_transaction_isolation = 'repeatable read'",
        db.name()
    );
    db.admin.batch_execute(&in_database).await.unwrap();
    let error = Store::connect(engine(&db)).await.err().unwrap();
    let StoreError::Setting {
        name, found, role, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(
        (*name, found.as_str(), role.as_str()),
        (
            "default_transaction_isolation",
            "repeatable read",
            "aegis_engine"
        )
    );
    assert!(
        error.to_string().contains("ALTER ROLE aegis_engine SET"),
        "{error}"
    );

    // The fact: under it a write that waited for another's commit is an error.
    let (one, two) = (db.connect().await, db.connect_as("aegis_engine").await);
    one.batch_execute("create table public.fact (n int); insert into public.fact values (1); grant all on public.fact to public")
        .await
        .unwrap();
    two.batch_execute("begin; select * from public.fact")
        .await
        .unwrap();
    one.batch_execute("update public.fact set n = 2")
        .await
        .unwrap();
    let error = two
        .batch_execute("update public.fact set n = 3")
        .await
        .unwrap_err();
    assert_eq!(error.code().unwrap().code(), "40001");
}

#[tokio::test]
async fn jit_is_refused_at_start_up() {
    let db = TestDb::new().await;
    let on = format!(
        "alter role aegis_engine in database {} set jit = on",
        db.name()
    );
    db.admin.batch_execute(&on).await.unwrap();
    let error = Store::connect(engine(&db)).await.err().unwrap();
    assert!(
        matches!(error, StoreError::Setting { name: "jit", .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn each_role_carries_its_settings_and_no_more_rights_than_it_needs() {
    let db = TestDb::new().await;
    for role in [
        "aegis_owner",
        "aegis_engine",
        "aegis_lease",
        "aegis_submitter",
        "aegis_reader",
    ] {
        let client = db.connect_as(role).await;
        for (name, wanted) in [
            ("default_transaction_isolation", "read committed"),
            ("jit", "off"),
            ("random_page_cost", "1.1"),
            ("search_path", "aegis, pg_catalog"),
            ("idle_in_transaction_session_timeout", "10s"),
            ("lock_timeout", "5s"),
            (
                "statement_timeout",
                if role == "aegis_owner" { "0" } else { "30s" },
            ),
            (
                "plan_cache_mode",
                if ["aegis_engine", "aegis_lease"].contains(&role) {
                    "force_generic_plan"
                } else {
                    "auto"
                },
            ),
        ] {
            let row = client
                .query_one(&format!("show {name}"), &[])
                .await
                .unwrap();
            assert_eq!(row.get::<_, String>(0), wanted, "{name} of {role}");
        }
        let is_super = "select rolsuper or rolcreaterole or rolcreatedb or rolbypassrls from pg_roles where rolname = current_user";
        let row = client.query_one(is_super, &[]).await.unwrap();
        assert!(!row.get::<_, bool>(0), "{role}");
        let update = client
            .batch_execute("begin; update aegis.task set rev = rev; rollback")
            .await;
        assert_eq!(
            update.is_ok(),
            ["aegis_engine", "aegis_lease"].contains(&role),
            "{role} updates tasks"
        );
        client.batch_execute("rollback").await.ok();
        let drop = client.batch_execute("drop table aegis.task").await;
        assert!(drop.is_err(), "{role} drops tables");
    }
}
