//! The sum of the steps is what the steps made, and only that.

use aegis_catalog::{Key, Kind, Scope, Structure, read};
use aegis_migrate::ledger::LedgerName;
use aegis_migrate::structure::{Reach, before, expected};
use aegis_testkit::TestDb;
use serde_json::Value;

use super::{account, app, objects, run, step};

async fn sum(db: &TestDb) -> Structure {
    let major = live(db).await.server_major;
    expected(&db.admin, LedgerName::Application, major)
        .await
        .unwrap()
        .unwrap()
        .structure
}

async fn live(db: &TestDb) -> Structure {
    let scope = Scope::schemas(["app"]).structure_only();
    read(&db.admin, &scope).await.unwrap().structure()
}

async fn wrong(db: &TestDb) -> Vec<String> {
    let differences = sum(db).await.compare(&live(db).await).unwrap();
    let wrong = differences
        .iter()
        .filter(|difference| difference.is_wrong());
    wrong.map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_sum_of_all_steps_is_what_is_there() {
    let db = account().await;
    let c = &db.admin;
    step(
        c,
        "1",
        "CREATE TABLE users (id bigint PRIMARY KEY, email text, n serial)",
        &objects(&["users"]),
    )
    .await;
    step(
        c,
        "2",
        "CREATE VIEW v AS SELECT id, email FROM users",
        &objects(&["v"]),
    )
    .await;
    step(
        c,
        "3",
        "ALTER TABLE users ADD COLUMN age int DEFAULT 3 CHECK (age > 0)",
        &objects(&["users"]),
    )
    .await;
    step(
        c,
        "4",
        "CREATE TABLE orders (id int PRIMARY KEY, u bigint REFERENCES users)",
        &objects(&["orders", "users"]),
    )
    .await;
    step(
        c,
        "5",
        "CREATE INDEX by_user ON orders (u)",
        &objects(&["by_user", "orders"]),
    )
    .await;
    step(
        c,
        "6",
        "CREATE TYPE mood AS ENUM ('a')",
        &objects(&["mood"]),
    )
    .await;
    step(c, "7", "ALTER TYPE mood ADD VALUE 'b'", &objects(&["mood"])).await;
    step(
        c,
        "8",
        "GRANT SELECT ON orders TO PUBLIC",
        &objects(&["orders"]),
    )
    .await;
    assert_eq!(wrong(&db).await, [""; 0]);
    let (sum, live) = (sum(&db).await, live(&db).await);
    // All of it, but for the schema, which was there before.
    let unknown = live
        .elements
        .keys()
        .filter(|key| !sum.elements.contains_key(key));
    let unknown: Vec<String> = unknown.map(ToString::to_string).collect();
    assert_eq!(unknown, ["schema app"]);
    assert_eq!(sum.elements.len() + 1, live.elements.len());
}

#[tokio::test]
async fn a_postcondition_holds_until_another_step_touches_the_element() {
    let db = account().await;
    let c = &db.admin;
    step(
        c,
        "1",
        "CREATE TABLE t (a int, b varchar(10))",
        &objects(&["t"]),
    )
    .await;
    step(
        c,
        "2",
        "ALTER TABLE t ALTER COLUMN b TYPE varchar(20)",
        &objects(&["t"]),
    )
    .await;
    assert_eq!(wrong(&db).await, [""; 0]);
    run(c, "ALTER TABLE app.t ALTER COLUMN b TYPE varchar(30)").await;
    let said = wrong(&db).await.join("\n");
    assert_eq!(
        said,
        "column b of app.t: type is character varying(30), expected character varying(20)"
    );
    // A step that touches another element does not take the drift in.
    step(c, "3", "ALTER TABLE t ADD COLUMN c int", &objects(&["t"])).await;
    assert_eq!(wrong(&db).await, [said]);
    // One that touches this element does.
    step(
        c,
        "4",
        "ALTER TABLE t ALTER COLUMN b TYPE text",
        &objects(&["t"]),
    )
    .await;
    assert_eq!(wrong(&db).await, [""; 0]);
}

#[tokio::test]
async fn what_cascade_takes_with_it_is_gone_from_the_sum() {
    let db = account().await;
    let c = &db.admin;
    step(
        c,
        "1",
        "CREATE TABLE users (id bigint PRIMARY KEY)",
        &objects(&["users"]),
    )
    .await;
    step(
        c,
        "2",
        "CREATE TABLE orders (u bigint REFERENCES users)",
        &objects(&["orders"]),
    )
    .await;
    step(
        c,
        "3",
        "CREATE VIEW v AS SELECT id FROM users",
        &objects(&["v"]),
    )
    .await;
    let delta = step(c, "4", "DROP TABLE users CASCADE", &objects(&["users"])).await;
    let gone: Vec<String> = delta.gone.iter().map(ToString::to_string).collect();
    assert!(gone.contains(&"relation app.v".to_owned()), "{gone:?}");
    assert!(
        gone.contains(&"constraint orders_u_fkey of app.orders".to_owned()),
        "{gone:?}"
    );
    assert_eq!(wrong(&db).await, [""; 0]);
    run(c, "CREATE VIEW app.v AS SELECT 1 AS id").await;
    assert!(wrong(&db).await[0].contains("is there again after a change dropped it"));
}

#[tokio::test]
async fn a_table_from_before_is_recorded_whole_when_a_step_first_changes_it() {
    let db = account().await;
    let c = &db.admin;
    run(c, "CREATE TABLE app.old (a int CONSTRAINT positive CHECK (a > 0)); CREATE UNIQUE INDEX old_a ON app.old (a)").await;
    step(
        c,
        "1",
        "ALTER TABLE old ADD COLUMN b int",
        &objects(&["old"]),
    )
    .await;
    // Its check and its index were there: no drift.
    assert_eq!(wrong(&db).await, [""; 0]);
    run(c, "ALTER TABLE app.old DROP CONSTRAINT positive").await;
    assert_eq!(wrong(&db).await.len(), 1);
    // Not again at the second step: that would take the drift in.
    step(
        c,
        "2",
        "ALTER TABLE old ADD COLUMN c int",
        &objects(&["old"]),
    )
    .await;
    assert!(wrong(&db).await[0].contains("constraint positive of app.old is missing"));
}

#[tokio::test]
async fn a_step_that_is_rolled_back_leaves_no_word() {
    let db = account().await;
    let c = &db.admin;
    run(c, "BEGIN").await;
    let look = before(c, &Reach::Everything).await.unwrap();
    run(c, "CREATE TABLE app.t (a int)").await;
    let delta = look.record(c, LedgerName::Application, "1").await.unwrap();
    assert!(delta.set.contains_key(&Key::new(Kind::Relation, &app("t"))));
    run(c, "ROLLBACK").await;
    assert!(sum(&db).await.elements.is_empty());
}

#[tokio::test]
async fn validity_is_a_postcondition_and_a_renamed_table_moves() {
    let db = account().await;
    let c = &db.admin;
    step(
        c,
        "1",
        "CREATE TABLE t (a int); CREATE INDEX i ON t (a)",
        &objects(&["t"]),
    )
    .await;
    run(
        c,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'app.i'::regclass",
    )
    .await;
    assert_eq!(
        wrong(&db).await,
        ["index app.i: valid (indisvalid) is no, expected yes"]
    );
    run(
        c,
        "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'app.i'::regclass",
    )
    .await;
    step(c, "2", "ALTER TABLE t RENAME TO u", &objects(&["t", "u"])).await;
    assert_eq!(wrong(&db).await, [""; 0]);
    let sum = sum(&db).await;
    assert!(
        !sum.elements
            .contains_key(&Key::new(Kind::Relation, &app("t")))
    );
    let index = sum.elements.get(&Key::new(Kind::Index, &app("i"))).unwrap();
    assert_eq!(index.get("table"), Some(&Value::from("app.u")));
}

#[tokio::test]
async fn words_of_another_server_are_not_compared() {
    let db = account().await;
    step(&db.admin, "1", "CREATE TABLE t (a int)", &objects(&["t"])).await;
    run(
        &db.admin,
        "UPDATE aegis_migrate.structure SET server_major = 13",
    )
    .await;
    let major = live(&db).await.server_major;
    let expected = expected(&db.admin, LedgerName::Application, major)
        .await
        .unwrap()
        .unwrap();
    assert!(expected.structure.elements.is_empty());
    assert!(expected.other.iter().all(|(_, major, _)| *major == 13));
    assert!(!expected.other.is_empty());
}
