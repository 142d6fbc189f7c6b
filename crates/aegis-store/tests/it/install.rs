//! Which schema a program works on; the roles and the settings that an install gives them. Installing itself: aegis-schema.

use aegis_schema::install;
use aegis_store::install::{SCHEMA, verify_against};
use aegis_store::{Config, Store, StoreError};
use aegis_testkit::TestDb;

fn engine(db: &TestDb) -> Config {
    Config::from_url(&db.url_as("aegis_engine")).unwrap()
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
    let error = Store::connect(engine(&db)).await.err().unwrap();
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
    let connect = Store::connect(config.clone()).await.err().unwrap();
    let install = install(&config, 2).await.unwrap_err();
    for text in [
        format!("{connect} {connect:?}"),
        format!("{install} {install:?}"),
    ] {
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
