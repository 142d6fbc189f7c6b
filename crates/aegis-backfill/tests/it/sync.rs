//! The trigger against a real server: an old and a new program write, and both sides stay alike.

use std::time::Duration;

use aegis_backfill::sync::{Rule, SCHEMA, Sides, SyncError};
use aegis_catalog::Name;
use aegis_testkit::TestDb;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

const CHANGE: &str = "20261129T1030_split_name";

const TABLE: &str = "
CREATE SCHEMA aegis_migrate;
CREATE SCHEMA app;
CREATE TABLE app.users (
    id bigint PRIMARY KEY, name text, note text,
    first_name text, last_name text
);
CREATE FUNCTION app.split_first(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT split_part($1, ' ', 1) $$;
CREATE FUNCTION app.split_last(text) RETURNS text IMMUTABLE LANGUAGE sql
AS $$ SELECT nullif(substr($1, length(split_part($1, ' ', 1)) + 2), '') $$;
INSERT INTO app.users (id, name) VALUES (1, 'Ada Lovelace');
";

pub(crate) fn rule() -> Rule {
    let map = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(column, from)| ((*column).to_owned(), (*from).to_owned()))
            .collect()
    };
    Rule {
        change: CHANGE.to_owned(),
        table: Name::new("app", "users"),
        old: vec!["name".to_owned()],
        new: vec!["first_name".to_owned(), "last_name".to_owned()],
        reject_both: false,
        forward: map(&[
            ("first_name", "split_first(name)"),
            ("last_name", "split_last(name)"),
        ]),
        backward: map(&[("name", "nullif(concat_ws(' ', first_name, last_name), '')")]),
    }
}

/// A database with the table, changed by `more`, and the trigger of `rule`.
pub(crate) async fn synced(more: &str, rule: &Rule) -> TestDb {
    let db = TestDb::empty().await;
    db.admin.batch_execute(TABLE).await.unwrap();
    db.admin.batch_execute(SCHEMA).await.unwrap();
    db.admin.batch_execute(more).await.unwrap();
    make(&db.admin, rule).await.unwrap();
    db
}

pub(crate) async fn make(client: &Client, rule: &Rule) -> Result<(), SyncError> {
    let pinned = Sides::read(client, rule).await?.pin(client).await?;
    pinned.trusted(client, None).await?;
    pinned.tried(client).await?;
    for statement in pinned.create() {
        client.batch_execute(&statement).await?;
    }
    Ok(())
}

pub(crate) async fn row(db: &TestDb, id: i64) -> [Option<String>; 3] {
    let sql = "SELECT name, first_name, last_name FROM app.users WHERE id = $1";
    let row = db.admin.query_one(sql, &[&id]).await.unwrap();
    [row.get(0), row.get(1), row.get(2)]
}

fn names(name: &str, first: &str, last: &str) -> [Option<String>; 3] {
    [name, first, last].map(|text| Some(text.to_owned()))
}

#[tokio::test]
async fn the_side_that_was_written_decides_the_other() {
    let db = synced("", &rule()).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("INSERT INTO app.users (id, name) VALUES (2, 'Grace Hopper')").await;
    assert_eq!(row(&db, 2).await, names("Grace Hopper", "Grace", "Hopper"));
    run("INSERT INTO app.users (id, first_name, last_name) VALUES (3, 'Barbara', 'Liskov')").await;
    assert_eq!(
        row(&db, 3).await,
        names("Barbara Liskov", "Barbara", "Liskov")
    );
    run("UPDATE app.users SET name = 'Grace M Hopper' WHERE id = 2").await;
    assert_eq!(
        row(&db, 2).await,
        names("Grace M Hopper", "Grace", "M Hopper")
    );
    run("UPDATE app.users SET last_name = 'Huberman' WHERE id = 3").await;
    assert_eq!(
        row(&db, 3).await,
        names("Barbara Huberman", "Barbara", "Huberman")
    );
    // What forward cannot give back stays as the new program wrote it.
    run("UPDATE app.users SET first_name = 'Barbara Jane' WHERE id = 3").await;
    assert_eq!(
        row(&db, 3).await,
        names("Barbara Jane Huberman", "Barbara Jane", "Huberman")
    );
    run("UPDATE app.users SET note = 'x' WHERE id = 3").await;
    assert_eq!(
        row(&db, 3).await,
        names("Barbara Jane Huberman", "Barbara Jane", "Huberman")
    );
    // An old program's upsert.
    run("INSERT INTO app.users (id, name) VALUES (3, 'Anita Borg') ON CONFLICT (id) DO UPDATE SET name = excluded.name").await;
    assert_eq!(row(&db, 3).await, names("Anita Borg", "Anita", "Borg"));
    run("UPDATE app.users SET name = NULL WHERE id = 3").await;
    assert_eq!(row(&db, 3).await, [None, None, None]);
}

#[tokio::test]
async fn a_row_of_before_that_a_new_program_writes_in_part_loses_nothing() {
    let db = synced("", &rule()).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    // Row 1 is from before the trigger: its new side is empty.
    run("UPDATE app.users SET first_name = 'Augusta' WHERE id = 1").await;
    assert_eq!(
        row(&db, 1).await,
        names("Augusta Lovelace", "Augusta", "Lovelace")
    );
    // A part that is emptied on purpose stays empty.
    run("UPDATE app.users SET last_name = NULL WHERE id = 1").await;
    let [name, first, last] = row(&db, 1).await;
    assert_eq!(
        (name.as_deref(), first.as_deref(), last),
        (Some("Augusta"), Some("Augusta"), None)
    );
}

#[tokio::test]
async fn a_write_of_both_sides_is_the_new_ones_or_refused() {
    let both = "INSERT INTO app.users VALUES (2, 'A B', NULL, 'C', 'D')";
    let db = synced("", &rule()).await;
    db.admin.batch_execute(both).await.unwrap();
    assert_eq!(row(&db, 2).await, names("C D", "C", "D"));
    let db = synced(
        "",
        &Rule {
            reject_both: true,
            ..rule()
        },
    )
    .await;
    let error = db.admin.batch_execute(both).await.unwrap_err();
    let said = error.as_db_error().unwrap();
    assert_eq!(*said.code(), SqlState::INTEGRITY_CONSTRAINT_VIOLATION);
    assert!(said.message().contains("app.users"), "{said}");
    // Both, and alike.
    let alike = "INSERT INTO app.users VALUES (2, 'C D', NULL, 'C', 'D')";
    db.admin.batch_execute(alike).await.unwrap();
}

#[tokio::test]
async fn a_batch_silences_the_trigger_of_its_own_change_only() {
    let db = synced("", &rule()).await;
    let moved = |change: &str| {
        format!(
            "BEGIN; SET LOCAL aegis_migrate.silent = '{change}'; UPDATE app.users SET first_name = 'X' WHERE id = 1; COMMIT"
        )
    };
    db.admin.batch_execute(&moved(CHANGE)).await.unwrap();
    let [name, first, last] = row(&db, 1).await;
    assert_eq!(
        (name.as_deref(), first.as_deref(), last),
        (Some("Ada Lovelace"), Some("X"), None)
    );
    let other = moved("20261129T1030_other").replace("'X'", "'Y'");
    db.admin.batch_execute(&other).await.unwrap();
    // Its row is from before: the rest of the name is kept.
    assert_eq!(row(&db, 1).await[0].as_deref(), Some("Y Lovelace"));
}

#[tokio::test]
async fn defaults_are_not_taken_for_what_a_program_wrote() {
    let more = "ALTER TABLE app.users ALTER name SET NOT NULL, ALTER name SET DEFAULT 'No Name'";
    let db = synced(more, &rule()).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("INSERT INTO app.users (id, first_name, last_name) VALUES (2, 'Barbara', 'Liskov')").await;
    assert_eq!(
        row(&db, 2).await,
        names("Barbara Liskov", "Barbara", "Liskov")
    );
    run("INSERT INTO app.users (id) VALUES (3)").await;
    assert_eq!(row(&db, 3).await, names("No Name", "No", "Name"));
}

#[tokio::test]
async fn a_column_that_cannot_be_kept_is_refused_with_the_way_out() {
    for (more, part) in [
        (
            "ALTER TABLE app.users ALTER first_name SET DEFAULT random()::text",
            "drop the default",
        ),
        (
            "ALTER TABLE app.users DROP first_name, ADD first_name text GENERATED ALWAYS AS (upper(note)) STORED",
            "the server computes it",
        ),
        (
            "ALTER TABLE app.users DROP first_name",
            "no column first_name",
        ),
        ("DROP TABLE app.users", "no such table"),
        ("DROP FUNCTION app.split_first", "split_first"),
        (
            "CREATE OR REPLACE FUNCTION app.split_first(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT ($1::int)::text $$",
            "forward cannot be computed for the rows that are there",
        ),
    ] {
        let db = TestDb::empty().await;
        db.admin.batch_execute(TABLE).await.unwrap();
        db.admin.batch_execute(more).await.unwrap();
        let error = make(&db.admin, &rule()).await.unwrap_err().to_string();
        assert!(error.contains(part), "{more}: {error}");
    }
}

#[tokio::test]
async fn a_column_that_another_change_keeps_is_refused_and_another_one_of_the_table_is_not() {
    let db = synced(
        "ALTER TABLE app.users ADD nick text, ADD alias text",
        &rule(),
    )
    .await;
    let mut second = rule();
    second.change = "20261129T1031_alias".to_owned();
    second.new = vec!["alias".to_owned()];
    second.forward = [("alias".to_owned(), "upper(name)".to_owned())].into();
    second.backward = std::collections::BTreeMap::default();
    let error = make(&db.admin, &second).await.unwrap_err().to_string();
    assert!(
        error.contains("app.users.name") && error.contains("another change"),
        "{error}"
    );
    second.old = vec!["nick".to_owned()];
    second.forward = [("alias".to_owned(), "upper(nick)".to_owned())].into();
    make(&db.admin, &second).await.unwrap();
}

#[tokio::test]
async fn a_writer_needs_no_right_that_it_had_not_and_is_seen_once_a_minute() {
    let more = "
        REVOKE ALL ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
        GRANT USAGE ON SCHEMA app TO PUBLIC; GRANT SELECT, INSERT, UPDATE ON app.users TO PUBLIC";
    let db = synced(more, &rule()).await;
    let role = format!("writer_{}", db.name());
    db.admin
        .batch_execute(&format!("CREATE ROLE {role} LOGIN"))
        .await
        .unwrap();
    let writer = db.connect_as(&role).await;
    writer
        .batch_execute("SET application_name = 'shop 1.2'")
        .await
        .unwrap();
    for id in 10..30 {
        let sql = format!("INSERT INTO app.users (id, name) VALUES ({id}, 'A B')");
        writer.batch_execute(&sql).await.unwrap();
    }
    let seen = "SELECT application_name, role, side, count(*) FROM aegis_migrate.sighting GROUP BY 1, 2, 3, minute";
    let rows = db.admin.query(seen, &[]).await.unwrap();
    assert!(!rows.is_empty() && rows.len() <= 2, "{}", rows.len());
    for row in rows {
        let who: (String, String, String) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(who, ("shop 1.2".to_owned(), role.clone(), "old".to_owned()));
        assert_eq!(row.get::<_, i64>(3), 1);
    }
    drop(writer);
    let clean = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    db.admin.batch_execute(&clean).await.unwrap();
}

#[tokio::test]
async fn a_sighting_that_is_rolled_back_is_told_again() {
    let db = synced("", &rule()).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("BEGIN; UPDATE app.users SET name = 'B C' WHERE id = 1; ROLLBACK").await;
    run("UPDATE app.users SET name = 'D E' WHERE id = 1").await;
    let sql = "SELECT count(*) FROM aegis_migrate.sighting WHERE side = 'old'";
    let count: i64 = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert!(count >= 1);
}

#[tokio::test]
async fn two_writers_of_one_name_do_not_wait_for_each_other() {
    let db = synced("INSERT INTO app.users (id, name) VALUES (2, 'x')", &rule()).await;
    let (one, two) = (db.connect().await, db.connect().await);
    one.batch_execute("BEGIN; UPDATE app.users SET name = 'B C' WHERE id = 1")
        .await
        .unwrap();
    let second = two.batch_execute("UPDATE app.users SET name = 'D E' WHERE id = 2");
    tokio::time::timeout(Duration::from_secs(20), second)
        .await
        .expect("the second writer does not wait for the first one's transaction")
        .unwrap();
}

#[tokio::test]
async fn a_table_in_partitions_and_a_type_without_equality_are_kept_too() {
    let more = "
        DROP TABLE app.users;
        CREATE TABLE app.users (id bigint, name json, first_name json, last_name text, note text) PARTITION BY RANGE (id);
        CREATE TABLE app.users_1 PARTITION OF app.users FOR VALUES FROM (0) TO (10);
        CREATE TABLE app.users_2 PARTITION OF app.users DEFAULT";
    let mut rule = rule();
    rule.new = vec!["first_name".to_owned()];
    rule.forward = [(
        "first_name".to_owned(),
        "json_build_object('n', name)".to_owned(),
    )]
    .into();
    rule.backward = [("name".to_owned(), "first_name -> 'n'".to_owned())].into();
    let db = synced(more, &rule).await;
    db.admin
        .batch_execute("INSERT INTO app.users (id, name) VALUES (1, '5'), (20, '6')")
        .await
        .unwrap();
    db.admin
        .batch_execute("UPDATE app.users SET first_name = '{\"n\": 7}' WHERE id = 20")
        .await
        .unwrap();
    let sql = "SELECT string_agg(name::text || first_name::text, ' ' ORDER BY id) FROM app.users";
    let text: String = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(text, "5{\"n\" : 5} 7{\"n\": 7}");
}

#[tokio::test]
async fn what_the_trigger_is_can_be_asked_and_what_was_done_to_it_is_seen() {
    let rule = rule();
    let db = synced("", &rule).await;
    let state = async || rule.state(&db.admin).await.unwrap();
    let first = state().await.unwrap();
    assert!(first.enabled);
    db.admin
        .batch_execute("SET search_path = app")
        .await
        .unwrap();
    assert_eq!(state().await.unwrap(), first);
    db.admin
        .batch_execute("ALTER TABLE app.users DISABLE TRIGGER USER")
        .await
        .unwrap();
    assert!(!state().await.unwrap().enabled);
    db.admin
        .batch_execute("ALTER TABLE app.users ENABLE TRIGGER USER")
        .await
        .unwrap();
    // It fires again, and was not there all the time.
    let again = state().await.unwrap();
    assert!(again.enabled);
    assert_ne!(again.definition, first.definition);
    let other = Rule {
        reject_both: true,
        ..rule.clone()
    };
    make(&db.admin, &other).await.unwrap();
    assert_ne!(state().await.unwrap().definition, first.definition);
    for statement in rule.drop_statements() {
        db.admin.batch_execute(&statement).await.unwrap();
    }
    assert_eq!(state().await, None);
    db.admin
        .batch_execute("ALTER TABLE app.users DROP name; INSERT INTO app.users (id) VALUES (9)")
        .await
        .unwrap();
}
