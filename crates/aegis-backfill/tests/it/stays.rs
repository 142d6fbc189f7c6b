//! What a write did not touch stays: two pairs of columns in one change, each with a direction that loses something.

use aegis_backfill::sync::{Loses, MadeOf, Pinned, Rule, SCHEMA, Sides};
use aegis_catalog::Name;
use aegis_testkit::TestDb;

use crate::sync::make;

const CHANGE: &str = "20261129T1030_two";

/// Forward drops middle names and punctuation; backward cannot give them back.
const TABLE: &str = "
CREATE SCHEMA aegis_migrate;
CREATE SCHEMA app;
CREATE TABLE app.users (
    id bigint PRIMARY KEY, note text, country text,
    name text, phone text,
    first_name text, last_name text, digits text
);
INSERT INTO app.users (id, name, phone, country) VALUES (1, 'Ada King Lovelace', '+44 555-1', 'uk');
";

fn map(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(column, from)| ((*column).to_owned(), (*from).to_owned()))
        .collect()
}

fn rule() -> Rule {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Rule {
        change: CHANGE.to_owned(),
        table: Name::new("app", "users"),
        old: names(&["name", "phone"]),
        new: names(&["first_name", "last_name", "digits"]),
        reject_both: false,
        forward: map(&[
            ("first_name", "split_part(name, ' ', 1)"),
            (
                "last_name",
                "nullif(regexp_replace(name, '^[^ ]* ?(.* )?', ''), '')",
            ),
            ("digits", "regexp_replace(phone, '[^0-9]', '', 'g')"),
        ]),
        backward: map(&[
            ("name", "nullif(concat_ws(' ', first_name, last_name), '')"),
            ("phone", "digits"),
        ]),
    }
}

async fn synced(rule: &Rule) -> TestDb {
    let db = TestDb::empty().await;
    db.admin.batch_execute(TABLE).await.unwrap();
    db.admin.batch_execute(SCHEMA).await.unwrap();
    make(&db.admin, rule).await.unwrap();
    db
}

/// name, phone, first name, last name, digits.
async fn row(db: &TestDb, id: i64) -> String {
    let sql = "SELECT concat_ws('|', coalesce(name, '-'), coalesce(phone, '-'), coalesce(first_name, '-'), coalesce(last_name, '-'), coalesce(digits, '-'))
        FROM app.users WHERE id = $1";
    db.admin.query_one(sql, &[&id]).await.unwrap().get(0)
}

async fn pinned(db: &TestDb, rule: &Rule) -> Pinned {
    let sides = Sides::read(&db.admin, rule).await.unwrap();
    sides.pin(&db.admin).await.unwrap()
}

/// How many rows are apart, as a backfill and a pass see it.
async fn apart(db: &TestDb, rule: &Rule) -> i64 {
    let agrees = pinned(db, rule).await.sides().agrees();
    let sql = format!("SELECT count(*) FROM app.users AS aegis_row WHERE NOT {agrees}");
    db.admin.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_write_sets_only_what_reads_a_column_that_it_changed() {
    let db = synced(&rule()).await;
    // (what is written to a row, what it is then). Each begins with the row that an old program has inserted.
    for (sql, becomes) in [
        (
            "note = 'x'",
            "Ada King Lovelace|+44 555-1|Ada|Lovelace|445551",
        ),
        // The old writer: the other pair stays.
        ("phone = '07'", "Ada King Lovelace|07|Ada|Lovelace|07"),
        ("phone = NULL", "Ada King Lovelace|-|Ada|Lovelace|-"),
        ("name = 'Eva M B'", "Eva M B|+44 555-1|Eva|B|445551"),
        ("name = NULL", "-|+44 555-1|-|-|445551"),
        ("name = 'E F', phone = '8'", "E F|8|E|F|8"),
        // The new writer: what backward cannot give back stays in the pair that it left alone.
        ("digits = '9'", "Ada King Lovelace|9|Ada|Lovelace|9"),
        ("digits = NULL", "Ada King Lovelace|-|Ada|Lovelace|-"),
        (
            "last_name = 'Byron'",
            "Ada Byron|+44 555-1|Ada|Byron|445551",
        ),
        ("first_name = NULL", "Lovelace|+44 555-1|-|Lovelace|445551"),
        (
            "first_name = NULL, last_name = NULL",
            "-|+44 555-1|-|-|445551",
        ),
        // The same value is no change.
        (
            "digits = '445551', name = name, note = 'y'",
            "Ada King Lovelace|+44 555-1|Ada|Lovelace|445551",
        ),
        // Both sides: what is written of the old one loses to the new one, what nobody wrote stays.
        (
            "phone = '1', digits = '2'",
            "Ada King Lovelace|2|Ada|Lovelace|2",
        ),
        (
            "name = 'Not This', last_name = 'B'",
            "Ada B|+44 555-1|Ada|B|445551",
        ),
        // Apart in what was written: the new side wins everywhere that was written.
        (
            "name = 'Not This', digits = '2'",
            "Ada Lovelace|2|Ada|Lovelace|2",
        ),
    ] {
        let (db, rule) = (&db, rule());
        let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
        run("DELETE FROM app.users; INSERT INTO app.users (id, name, phone) VALUES (2, 'Ada King Lovelace', '+44 555-1')").await;
        run(&format!("UPDATE app.users SET {sql} WHERE id = 2")).await;
        assert_eq!(row(db, 2).await, becomes, "{sql}");
        assert_eq!(apart(db, &rule).await, 0, "{sql}");
    }
}

#[tokio::test]
async fn what_forward_would_lose_of_a_new_programs_pair_stays_when_an_old_one_writes_the_other() {
    let (db, rule) = (synced(&rule()).await, rule());
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("DELETE FROM app.users; INSERT INTO app.users (id, first_name, last_name, digits) VALUES (2, 'Ada Mary', 'King', '5')").await;
    run("UPDATE app.users SET phone = '+1 2' WHERE id = 2").await;
    // The names are the new side's, the number is the old side's, and neither direction alone makes the row.
    assert_eq!(row(&db, 2).await, "Ada Mary King|+1 2|Ada Mary|King|12");
    assert_eq!(apart(&db, &rule).await, 0);
    run("UPDATE app.users SET last_name = 'Byron' WHERE id = 2").await;
    assert_eq!(row(&db, 2).await, "Ada Mary Byron|+1 2|Ada Mary|Byron|12");
    assert_eq!(apart(&db, &rule).await, 0);
    // What is apart is still found: written behind the trigger's back.
    let behind = format!(
        "SET aegis_migrate.silent = '{CHANGE}'; UPDATE app.users SET digits = '3'; RESET aegis_migrate.silent"
    );
    run(&behind).await;
    assert_eq!(apart(&db, &rule).await, 1);
}

#[tokio::test]
async fn a_row_of_before_gets_its_whole_new_side_by_any_write() {
    let rule = rule();
    for (sql, becomes) in [
        ("phone = '7'", "Ada King Lovelace|7|Ada|Lovelace|7"),
        ("name = 'B C'", "B C|+44 555-1|B|C|445551"),
        // Its old side is the newer one where nobody wrote: the middle name stays.
        ("digits = '9'", "Ada King Lovelace|9|Ada|Lovelace|9"),
        (
            "first_name = 'Augusta'",
            "Augusta Lovelace|+44 555-1|Augusta|Lovelace|445551",
        ),
    ] {
        let db = TestDb::empty().await;
        db.admin.batch_execute(TABLE).await.unwrap();
        db.admin.batch_execute(SCHEMA).await.unwrap();
        make(&db.admin, &rule).await.unwrap();
        let update = format!("UPDATE app.users SET {sql} WHERE id = 1");
        db.admin.batch_execute(&update).await.unwrap();
        assert_eq!(row(&db, 1).await, becomes, "{sql}");
        assert_eq!(apart(&db, &rule).await, 0, "{sql}");
    }
    // An old name of nothing, beside a new side that becomes nothing: forward gives '' where a NULL stands, and the row is whole again.
    let mut rule = rule;
    rule.backward = map(&[
        ("name", "concat_ws(' ', first_name, last_name)"),
        ("phone", "digits"),
    ]);
    let db = synced(&rule).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("INSERT INTO app.users (id, digits) VALUES (3, '5'); UPDATE app.users SET phone = NULL WHERE id = 3").await;
    assert_eq!(row(&db, 3).await, "|-||-|-");
    let sql = format!(
        "SELECT count(*) FROM app.users AS aegis_row WHERE id = 3 AND NOT {}",
        pinned(&db, &rule).await.sides().agrees()
    );
    let apart: i64 = db.admin.query_one(&sql, &[]).await.unwrap().get(0);
    assert_eq!(apart, 0);
}

#[tokio::test]
async fn a_column_of_no_side_that_is_read_counts_and_what_reads_the_whole_row_is_computed_by_every_write()
 {
    let mut rule = rule();
    rule.forward.insert(
        "first_name".to_owned(),
        "concat(country, split_part(name, ' ', 1))".to_owned(),
    );
    rule.forward.insert(
        "last_name".to_owned(),
        "upper(to_json(aegis_row) ->> 'name')".to_owned(),
    );
    rule.backward.remove("name");
    let db = synced(&rule).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("INSERT INTO app.users (id, name, phone, country) VALUES (2, 'a b', '1', 'de')").await;
    assert_eq!(row(&db, 2).await, "a b|1|dea|A B|1");
    run("UPDATE app.users SET country = 'fr', phone = '2' WHERE id = 2").await;
    assert_eq!(row(&db, 2).await, "a b|2|fra|A B|2");
    let known = "SET aegis_migrate.silent = '20261129T1030_two'; UPDATE app.users SET first_name = 'kept', last_name = 'lost'; RESET aegis_migrate.silent;
        UPDATE app.users SET phone = '3' WHERE id = 2";
    run(known).await;
    // Backward holds, so what reads no column that was written stays; of the whole row nobody can say that.
    assert_eq!(row(&db, 2).await, "a b|3|kept|A B|3");
}

#[tokio::test]
async fn a_trigger_of_an_earlier_release_is_known_by_its_expressions_and_another_one_is_not() {
    let (db, rule) = (synced(&rule()).await, rule());
    let made = async |of: &Rule| {
        let state = rule.state(&db.admin).await.unwrap().unwrap();
        pinned(&db, of).await.made(&state)
    };
    assert_eq!(made(&rule).await, MadeOf::These);
    // What the release of before made: every column of the other side, by every write.
    let whole = pinned(&db, &rule).await.of_an_earlier_release();
    assert_ne!(whole, pinned(&db, &rule).await.create());
    for statement in &whole {
        db.admin.batch_execute(statement).await.unwrap();
    }
    assert_eq!(made(&rule).await, MadeOf::TheseEarlier);
    let update = "INSERT INTO app.users (id, name, phone) VALUES (2, 'A B C', '1'); UPDATE app.users SET digits = '2' WHERE id = 2";
    db.admin.batch_execute(update).await.unwrap();
    assert_eq!(row(&db, 2).await, "A C|2|A|C|2", "the middle name is lost");
    assert_eq!(apart(&db, &rule).await, 1, "row 1, of before the trigger");
    let mut other = rule.clone();
    other
        .backward
        .insert("phone".to_owned(), "digits || ''".to_owned());
    assert_eq!(made(&other).await, MadeOf::Others);
    other = rule.clone();
    other.reject_both = true;
    assert_eq!(made(&other).await, MadeOf::Others);
}

#[tokio::test]
async fn what_does_not_come_back_is_counted_with_a_key_and_no_value() {
    let (db, rule) = (synced(&rule()).await, rule());
    let mut client = db.connect().await;
    let many = "DELETE FROM app.users; INSERT INTO app.users (id, name, phone)
        SELECT g, CASE WHEN g IN (7, 9) THEN 'Ada King Lovelace' ELSE 'Ada Lovelace' END, '1' FROM generate_series(1, 40) g";
    db.admin.batch_execute(many).await.unwrap();
    let pinned = pinned(&db, &rule).await;
    let key = ["id".to_owned()];
    let loses = pinned.loses(&mut client, None, &key).await.unwrap();
    let expected = |rows, lost, key: Option<&str>| {
        let key = key.map(str::to_owned);
        Some(Loses { rows, lost, key })
    };
    assert_eq!(loses, expected(40, 2, Some("7")));
    let no_middle = "UPDATE app.users SET name = 'Ada B'";
    db.admin.batch_execute(no_middle).await.unwrap();
    let loses = pinned.loses(&mut client, None, &key).await.unwrap();
    assert_eq!(loses, expected(40, 0, None));
    // What writes is not asked, and no more rows than a few.
    let more = "INSERT INTO app.users (id, name) SELECT g, 'A B' FROM generate_series(100, 2000) g";
    db.admin.batch_execute(more).await.unwrap();
    let loses = pinned.loses(&mut client, None, &[]).await.unwrap();
    assert_eq!(loses, expected(1000, 0, None));
}
