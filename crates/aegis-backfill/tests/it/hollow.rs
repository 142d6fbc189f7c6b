//! Rows with nothing on either side, where forward gives a value: they are the old side's until somebody writes the new one.

use std::collections::BTreeMap;

use aegis_backfill::job::Write;
use aegis_backfill::pass::{Asked, What, run};
use aegis_backfill::sync::Rule;
use aegis_testkit::TestDb;

use crate::job::{CHANGE, number, ran, sized, statement, who};
use crate::sync::make;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(column, from)| ((*column).to_owned(), (*from).to_owned()))
        .collect()
}

fn rule() -> Rule {
    Rule {
        change: CHANGE.to_owned(),
        table: aegis_catalog::Name::new("app", "t"),
        old: vec!["name".to_owned()],
        new: vec!["first".to_owned(), "lang".to_owned()],
        reject_both: false,
        forward: map(&[
            ("first", "coalesce(split_part(name, ' ', 1), 'unknown')"),
            ("lang", "'en'"),
        ]),
        backward: map(&[("name", "nullif(first, 'unknown')")]),
    }
}

/// Rows of before: 1 to 50 have a name, 51 to 100 have none.
async fn before() -> TestDb {
    let db = crate::job::database(
        "CREATE TABLE app.t (id bigint PRIMARY KEY, name text);
         INSERT INTO app.t SELECT g, CASE WHEN g <= 50 THEN 'Ada L' END FROM generate_series(1, 100) g;
         ALTER TABLE app.t ADD first text, ADD lang text DEFAULT 'en'",
    )
    .await;
    make(&db.admin, &rule()).await.unwrap();
    db
}

async fn counted(db: &TestDb) -> (i64, i64) {
    let asked = Asked {
        change: CHANGE.to_owned(),
        schema: "app".to_owned(),
        run_as: None,
        key: vec!["id".to_owned()],
        what: What::Sides(rule()),
    };
    let mut client = db.connect().await;
    let counts = run(&mut client, &asked, &who(), &mut |_| {}).await.unwrap();
    (counts[0].mismatch, counts[1].mismatch)
}

#[tokio::test]
async fn a_row_with_nothing_on_either_side_gets_what_forward_gives() {
    let db = before().await;
    assert_eq!(
        counted(&db).await,
        (100, 100),
        "all of them are named before"
    );
    // Both programs write before the rows are moved.
    db.admin
        .batch_execute(
            "UPDATE app.t SET first = 'Grace' WHERE id IN (51, 1); UPDATE app.t SET lang = 'fr' WHERE id = 52;
             UPDATE app.t SET name = 'Anita B' WHERE id = 53; UPDATE app.t SET name = NULL WHERE id = 2",
        )
        .await
        .unwrap();
    let spec = aegis_backfill::job::Spec {
        write: Write::Forward(rule()),
        batch: sized(20, 50),
        ..statement("")
    };
    ran(&db, &spec).await.unwrap();
    // What a contract tightens to NOT NULL holds, and what the programs wrote stands.
    for (sql, rows) in [
        (
            "SELECT count(*) FROM app.t WHERE first IS NULL OR lang IS NULL",
            0,
        ),
        (
            "SELECT count(*) FROM app.t WHERE first = 'unknown' AND name IS NULL",
            49,
        ),
        (
            "SELECT count(*) FROM app.t WHERE id IN (51, 1) AND first = 'Grace' AND name = 'Grace'",
            2,
        ),
        (
            "SELECT count(*) FROM app.t WHERE id = 52 AND lang = 'fr' AND first = 'unknown'",
            1,
        ),
        (
            "SELECT count(*) FROM app.t WHERE id = 53 AND first = 'Anita'",
            1,
        ),
    ] {
        assert_eq!(number(&db, sql).await, rows, "{sql}");
    }
    assert_eq!(counted(&db).await.1, 0);
    db.admin
        .batch_execute("ALTER TABLE app.t ALTER first SET NOT NULL, ALTER lang SET NOT NULL")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_new_program_that_writes_nothing_where_forward_gives_something_is_counted() {
    let db = before().await;
    let spec = aegis_backfill::job::Spec {
        write: Write::Forward(rule()),
        ..statement("")
    };
    ran(&db, &spec).await.unwrap();
    assert_eq!(counted(&db).await, (0, 0));
    db.admin
        .batch_execute(
            "UPDATE app.t SET first = NULL WHERE id = 7; UPDATE app.t SET lang = 'fr' WHERE id = 8",
        )
        .await
        .unwrap();
    // Row 7 would stop a NOT NULL; row 8 is what a new program may write.
    assert_eq!(counted(&db).await, (2, 1));
}
