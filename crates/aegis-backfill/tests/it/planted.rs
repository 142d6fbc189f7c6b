//! Somebody who may make things in the schema, and wants them run with the rights of the trigger's owner.

use aegis_backfill::sync::{Rule, SyncError};
use aegis_testkit::TestDb;
use tokio_postgres::Client;

use crate::sync::{make, row, rule, synced};

/// Built-in functions and operators in the expressions, as people write them: with no schema.
fn built_in() -> Rule {
    let mut rule = rule();
    rule.forward = [
        (
            "first_name".to_owned(),
            "split_part(name, ' ', 1) || ''".to_owned(),
        ),
        (
            "last_name".to_owned(),
            "split_part(name, ' ', 2)".to_owned(),
        ),
    ]
    .into();
    rule.backward = [(
        "name".to_owned(),
        "nullif(first_name || ' ' || last_name, ' ')".to_owned(),
    )]
    .into();
    rule
}

/// Whoever runs one of them is written down.
const PLANTED: &str = "
CREATE FUNCTION app.split_part(text, text, int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM app.caught(); RETURN 'planted'; END $$;
CREATE FUNCTION app.joined(text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM app.caught(); RETURN 'planted'; END $$;
CREATE OPERATOR app.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = app.joined);
CREATE FUNCTION app.alike(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM app.caught(); RETURN true; END $$;
CREATE OPERATOR app.= (LEFTARG = text, RIGHTARG = text, FUNCTION = app.alike);
CREATE FUNCTION app.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM app.caught(); RETURN ''; END $$;
";

async fn planter(db: &TestDb) -> (String, Client) {
    let role = format!("planter_{}", db.name());
    let sql = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA app TO {role};
         CREATE TABLE IF NOT EXISTS app.loot (role text);
         CREATE OR REPLACE FUNCTION app.caught() RETURNS void LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO app.loot VALUES (current_user); END $$;
         GRANT ALL ON app.loot TO PUBLIC; GRANT SELECT, INSERT, UPDATE ON app.users TO PUBLIC"
    );
    db.admin.batch_execute(&sql).await.unwrap();
    let client = db.connect_as(&role).await;
    (role, client)
}

async fn gone(db: &TestDb, role: &str) {
    let clean = format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}");
    db.admin.batch_execute(&clean).await.unwrap();
}

#[tokio::test]
async fn what_is_planted_later_is_not_run_with_the_rights_of_the_owner_nor_at_all() {
    let db = synced("", &built_in()).await;
    let (role, client) = planter(&db).await;
    let grant = format!("GRANT CREATE ON SCHEMA app TO {role}");
    db.admin.batch_execute(&grant).await.unwrap();
    client.batch_execute(PLANTED).await.unwrap();
    // It is found by whoever looks there first: the plant works.
    client
        .batch_execute(
            "SET search_path = app, pg_catalog; SELECT split_part('a', 'b', 1), 'a'::text || 'b'::text",
        )
        .await
        .unwrap();
    let loot = "SELECT count(*) FROM app.loot";
    let count = async || -> i64 { db.admin.query_one(loot, &[]).await.unwrap().get(0) };
    assert_eq!(count().await, 2);
    for writer in [&client, &db.admin] {
        for sql in [
            "SET search_path = app, pg_catalog",
            "INSERT INTO app.users (id, name) VALUES (2, 'Grace Hopper')",
            "UPDATE app.users SET first_name = 'Barbara', last_name = 'Liskov' WHERE id = 1",
            "UPDATE app.users SET name = 'Anita Borg' WHERE id = 2",
        ] {
            writer.batch_execute(sql).await.unwrap();
        }
        assert_eq!(row(&db, 1).await[0].as_deref(), Some("Barbara Liskov"));
        assert_eq!(row(&db, 2).await[1].as_deref(), Some("Anita"));
        db.admin
            .batch_execute("DELETE FROM app.users WHERE id OPERATOR(pg_catalog.=) 2")
            .await
            .unwrap();
    }
    assert_eq!(count().await, 2, "something planted was run");
    db.admin.batch_execute("RESET search_path").await.unwrap();
    drop(client);
    gone(&db, &role).await;
}

#[tokio::test]
async fn nothing_is_made_where_somebody_else_may_plant_or_has_planted() {
    let db = synced("", &rule()).await;
    let (role, client) = planter(&db).await;
    let mut other = built_in();
    other.change = "20261129T1031_other".to_owned();
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    let dropped = rule().drop_statements().join(";");
    run(&dropped).await;
    let said = async |parts: &[&str]| {
        let error = make(&db.admin, &other).await.unwrap_err();
        assert!(matches!(error, SyncError::Untrusted { .. }), "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    };
    run(&format!("GRANT CREATE ON SCHEMA app TO {role}")).await;
    let revoke = format!("REVOKE CREATE ON SCHEMA \"app\" FROM {role}");
    said(&[&role, &revoke]).await;
    client.batch_execute(PLANTED).await.unwrap();
    run(&revoke).await;
    // It may make nothing more, and what it has made is found before the built-in one.
    said(&[&role, "belongs to", "app.split_part"]).await;
    run(&format!(
        "DROP OWNED BY {role} CASCADE; GRANT CREATE ON SCHEMA app TO PUBLIC"
    ))
    .await;
    said(&["PUBLIC", "REVOKE CREATE ON SCHEMA \"app\" FROM PUBLIC"]).await;
    run("REVOKE CREATE ON SCHEMA app FROM PUBLIC").await;
    let views = "SELECT count(*) FROM pg_class WHERE relname LIKE 'aegis_pin%'";
    let left: i64 = db.admin.query_one(views, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    let looted: i64 = db
        .admin
        .query_one("SELECT count(*) FROM app.loot", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(looted, 0);
    make(&db.admin, &other).await.unwrap();
    drop(client);
    gone(&db, &role).await;
}

#[tokio::test]
async fn names_of_the_schema_are_found_as_the_author_meant_them() {
    let more = "
        CREATE TYPE app.mood AS ENUM ('sad', 'happy');
        CREATE DOMAIN app.word AS varchar(40);
        CREATE TABLE app.codes (code text PRIMARY KEY, mood app.mood);
        INSERT INTO app.codes VALUES ('Ada', 'happy'), ('Bob', 'sad');
        ALTER TABLE app.users ADD mood mood, ADD word app.word";
    let more = more.replace("ADD mood mood", "ADD mood app.mood DEFAULT 'sad'");
    let mut rule = rule();
    rule.new = ["first_name", "mood", "word"].map(str::to_owned).into();
    rule.forward = [
        ("first_name", "split_first(name)"),
        (
            "mood",
            "coalesce((SELECT c.mood FROM codes c WHERE c.code = split_first(name)), 'sad')",
        ),
        ("word", "upper(split_first(name))::word -- in capitals"),
    ]
    .map(|(column, from)| (column.to_owned(), from.to_owned()))
    .into();
    rule.backward = [("name".to_owned(), "first_name".to_owned())].into();
    let db = synced(&more, &rule).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("INSERT INTO app.users (id, name) VALUES (2, 'Ada'), (3, 'Bob')").await;
    let sql = "SELECT count(*) FROM app.users WHERE (id, mood, word) IN ((2, 'happy'::app.mood, 'ADA'), (3, 'sad'::app.mood, 'BOB'))";
    let right: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(right, 2);
    // A function that looks a name up by itself would find nothing at each write: told before there is a trigger.
    run("CREATE FUNCTION app.nested(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN split_first($1); END $$").await;
    let mut nested = crate::sync::rule();
    nested.change = "20261129T1032_nested".to_owned();
    run(&rule.drop_statements().join(";")).await;
    nested
        .forward
        .insert("first_name".to_owned(), "nested(name)".to_owned());
    let error = make(&db.admin, &nested).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("split_first") && text.contains("SET search_path"),
        "{text}"
    );
}
