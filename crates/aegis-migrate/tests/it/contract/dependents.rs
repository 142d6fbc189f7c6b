//! What depends on a column that goes: told with its kind; what goes with it, or is dropped by the same file, is not.

use aegis_migrate::contract::dependents;
use aegis_migrate::contract::subject::Subject;

use super::shop::{Shop, id};

async fn seen(shop: &Shop) -> (Option<bool>, String) {
    let subject = Subject::of(&shop.set.changes[&id()]).unwrap();
    let seen = dependents::look(&shop.db.admin, &subject).await.unwrap();
    (seen.holds, seen.detail)
}

#[tokio::test]
async fn what_stays_blocks_and_what_goes_with_the_column_does_not() {
    let shop = Shop::expanded("DROP VIEW known;\nALTER TABLE users DROP COLUMN name;\n").await;
    // Its own index, its own CHECK, its statistics, its default, and a view that the file drops.
    shop.sql(
        "CREATE VIEW app.known AS SELECT name FROM app.users;
         ALTER TABLE app.users ADD CHECK (name <> ''), ALTER COLUMN name SET DEFAULT 'x';
         CREATE STATISTICS app.both ON id, name FROM app.users",
    )
    .await;
    let (holds, detail) = seen(&shop).await;
    assert_eq!(holds, Some(true), "{detail}");

    let cases = [
        (
            "CREATE VIEW app.staying AS SELECT upper(name) FROM app.users",
            "view app.staying",
            "DROP VIEW app.staying",
        ),
        (
            "CREATE FUNCTION app.reads() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT name FROM app.users LIMIT 1; END",
            "function app.reads()",
            "DROP FUNCTION app.reads()",
        ),
        (
            "CREATE UNIQUE INDEX users_name_once ON app.users (name); ALTER TABLE app.users ADD UNIQUE USING INDEX users_name_once;
             CREATE TABLE app.notes (who text REFERENCES app.users (name))",
            "app.notes",
            "DROP TABLE app.notes",
        ),
        (
            "CREATE POLICY mine ON app.users USING (name = current_user)",
            "policy mine on app.users",
            "DROP POLICY mine ON app.users",
        ),
        (
            "CREATE FUNCTION app.noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
             CREATE TRIGGER noted BEFORE UPDATE ON app.users FOR EACH ROW WHEN (NEW.name <> '') EXECUTE FUNCTION app.noted()",
            "trigger noted on app.users",
            "DROP TRIGGER noted ON app.users",
        ),
        (
            "CREATE PUBLICATION names FOR TABLE app.users (id, name)",
            "app.users in publication names",
            "DROP PUBLICATION names",
        ),
        (
            "ALTER TABLE app.users ADD COLUMN loud text GENERATED ALWAYS AS (upper(name)) STORED",
            "loud",
            "ALTER TABLE app.users DROP COLUMN loud",
        ),
    ];
    for (make, says, drop) in cases {
        shop.sql(make).await;
        let (holds, detail) = seen(&shop).await;
        assert!(
            holds == Some(false) && detail.contains(says),
            "{says}: {detail}"
        );
        shop.sql(drop).await;
        let (holds, detail) = seen(&shop).await;
        assert_eq!(holds, Some(true), "{says}: {detail}");
    }

    // Text is not read as SQL: it is told, and blocks nothing.
    shop.sql("CREATE FUNCTION app.text() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT name FROM app.users LIMIT 1); END'")
        .await;
    let (holds, detail) = seen(&shop).await;
    assert!(
        holds == Some(true) && detail.contains("app.text()"),
        "{detail}"
    );
    shop.end().await;
}
