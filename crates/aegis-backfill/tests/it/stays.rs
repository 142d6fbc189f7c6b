//! What a write did not touch stays: two pairs of columns in one change, each with a direction that loses something.

use aegis_backfill::sync::{Loses, Pinned, Rule, SCHEMA, Sides};
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
        // A program that is half of each version: each pair is of the side that was written.
        ("name = 'Eva M B', digits = '2'", "Eva M B|2|Eva|B|2"),
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
async fn where_one_direction_is_lacking_or_a_whole_row_is_read_each_write_computes_all() {
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
    assert_eq!(row(&db, 2).await, "a b|3|fra|A B|3");
}

#[tokio::test]
async fn a_trigger_is_known_by_what_its_change_says_and_not_by_how_a_server_prints_it() {
    let (db, rule) = (synced(&rule()).await, rule());
    let state = rule.state(&db.admin).await.unwrap().unwrap();
    assert!(rule.has_made(&state));
    // What the body says of a default is another text now, and [sync] is the same.
    let before = pinned(&db, &rule).await.create();
    db.admin
        .batch_execute("ALTER TABLE app.users ALTER digits SET DEFAULT '0'")
        .await
        .unwrap();
    assert_ne!(pinned(&db, &rule).await.create(), before);
    assert!(rule.has_made(&state));
    let mut other = rule.clone();
    other
        .backward
        .insert("phone".to_owned(), "digits || ''".to_owned());
    assert!(!other.has_made(&state));
    other = rule.clone();
    other.reject_both = true;
    assert!(!other.has_made(&state));
}

/// Three pairs: one that loses, one that forward looks up, one of a flag whose backward makes something of nothing.
async fn three() -> (TestDb, Rule) {
    let mut rule = rule();
    rule.old.extend(["country", "active"].map(str::to_owned));
    rule.new.extend(["code", "status"].map(str::to_owned));
    rule.forward.extend(map(&[
        (
            "code",
            "(SELECT l.code FROM app.land l WHERE l.name = country)",
        ),
        ("status", "CASE WHEN active THEN 'active' ELSE 'off' END"),
    ]));
    rule.backward.extend(map(&[
        (
            "country",
            "(SELECT l.name FROM app.land l WHERE l.code = aegis_row.code)",
        ),
        ("active", "coalesce(status = 'active', false)"),
    ]));
    let db = TestDb::empty().await;
    db.admin.batch_execute(TABLE).await.unwrap();
    db.admin.batch_execute(SCHEMA).await.unwrap();
    db.admin
        .batch_execute(
            "CREATE TABLE app.land (name text, code text); INSERT INTO app.land VALUES ('uk', 'UK'), ('de', 'DE');
             ALTER TABLE app.users ADD active boolean NOT NULL DEFAULT false, ADD code text, ADD status text",
        )
        .await
        .unwrap();
    make(&db.admin, &rule).await.unwrap();
    (db, rule)
}

#[tokio::test]
async fn a_pair_that_nobody_wrote_is_filled_by_any_write_and_by_the_backfill_also_where_backward_makes_something_of_nothing()
 {
    let (db, rule) = three().await;
    db.admin
        .batch_execute("UPDATE app.users SET name = 'Eve' WHERE id = 1")
        .await
        .unwrap();
    let sql = "SELECT concat_ws('|', first_name, code, status, active) FROM app.users WHERE id = 1";
    let row: String = db.admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(row, "Eve|UK|off|f");
    assert_eq!(apart(&db, &rule).await, 0);
    // Behind the trigger's back: what counts rows sees it.
    let behind = format!(
        "SET aegis_migrate.silent = '{CHANGE}'; UPDATE app.users SET status = NULL; RESET aegis_migrate.silent"
    );
    db.admin.batch_execute(&behind).await.unwrap();
    assert_eq!(apart(&db, &rule).await, 1);
}

#[tokio::test]
async fn a_pair_that_is_apart_takes_nothing_from_one_that_agrees() {
    let (db, rule) = three().await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("DELETE FROM app.users; INSERT INTO app.users (id, first_name, last_name, code) VALUES (2, 'Ada Mary', 'King', 'UK')").await;
    // Of a lookup nobody is told: the pair is apart, and a later write of another one leaves both alone.
    run("UPDATE app.land SET code = 'GB' WHERE name = 'uk'; UPDATE app.users SET phone = '7' WHERE id = 2").await;
    assert_eq!(row(&db, 2).await, "Ada Mary King|7|Ada Mary|King|7");
    assert_eq!(apart(&db, &rule).await, 1);
    let carries = pinned(&db, &rule).await.sides().carries();
    let mut changed = 0;
    for carry in carries {
        let sql = format!(
            "UPDATE app.users AS aegis_row SET {} WHERE NOT {}",
            carry.set, carry.unless
        );
        let silent = format!("SET aegis_migrate.silent = '{CHANGE}'");
        db.admin.batch_execute(&silent).await.unwrap();
        changed += db.admin.execute(&sql, &[]).await.unwrap();
    }
    assert_eq!((changed, apart(&db, &rule).await), (1, 0));
    assert_eq!(row(&db, 2).await, "Ada Mary King|7|Ada Mary|King|7");
    let code = "SELECT code FROM app.users WHERE id = 2";
    let code: String = db.admin.query_one(code, &[]).await.unwrap().get(0);
    assert_eq!(code, "GB");
}

#[tokio::test]
async fn a_program_that_is_half_of_each_version_loses_nothing() {
    let db = synced(&rule()).await;
    let run = async |sql: &str| db.admin.batch_execute(sql).await.unwrap();
    run("INSERT INTO app.users (id, name, digits) VALUES (9, 'Eve Old', '77')").await;
    assert_eq!(row(&db, 9).await, "Eve Old|77|Eve|Old|77");
    run("UPDATE app.users SET name = 'Eve Kept', digits = '78' WHERE id = 9").await;
    assert_eq!(row(&db, 9).await, "Eve Kept|78|Eve|Kept|78");
    // Of a new program that gives a part: what it does not give is of its side too.
    run("INSERT INTO app.users (id, digits) VALUES (10, '5')").await;
    assert_eq!(row(&db, 10).await, "-|5|-|-|5");
}

#[tokio::test]
async fn a_new_value_that_forward_makes_takes_nothing_from_the_old_side_of_a_row_of_before() {
    let db = synced(&rule()).await;
    db.admin
        .batch_execute("UPDATE app.users SET first_name = 'Ada' WHERE id = 1")
        .await
        .unwrap();
    assert_eq!(
        row(&db, 1).await,
        "Ada King Lovelace|+44 555-1|Ada|Lovelace|445551"
    );
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

#[tokio::test]
async fn serializable_programs_that_write_different_rows_are_not_refused_for_what_the_trigger_tells()
 {
    let db = synced(&rule()).await;
    db.admin
        .batch_execute("INSERT INTO app.users (id, name) SELECT g, 'a b' FROM generate_series(10, 9000) g; ANALYZE app.users")
        .await
        .unwrap();
    let (one, other) = (db.connect().await, db.connect().await);
    // The rows by their key, so that the programs themselves read nothing of one another.
    for (client, id) in [(&one, 20), (&other, 8000)] {
        client
            .batch_execute(&format!(
                "SET application_name = 'a program'; SET enable_seqscan = off; SET enable_bitmapscan = off;
                 BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE app.users SET name = 'c d' WHERE id = {id}"
            ))
            .await
            .unwrap();
    }
    for client in [&one, &other] {
        client.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test]
async fn a_new_column_that_takes_no_null_is_refused_where_the_previous_program_may_write_one() {
    let db = TestDb::empty().await;
    db.admin.batch_execute(TABLE).await.unwrap();
    db.admin.batch_execute(SCHEMA).await.unwrap();
    db.admin
        .batch_execute("ALTER TABLE app.users ALTER digits SET DEFAULT '', ALTER digits TYPE text; UPDATE app.users SET digits = ''; ALTER TABLE app.users ALTER digits SET NOT NULL")
        .await
        .unwrap();
    let mut rule = rule();
    let tried = async |rule: &Rule| pinned(&db, rule).await.tried(&db.admin).await;
    let error = tried(&rule).await.unwrap_err().to_string();
    for part in [
        "app.users.digits",
        "NOT NULL",
        "previous program",
        "coalesce",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // With a value for nothing, or where the old side takes none either, it is none of that.
    let held = rule.forward.insert(
        "digits".to_owned(),
        "coalesce(regexp_replace(phone, '[^0-9]', '', 'g'), '')".to_owned(),
    );
    tried(&rule).await.unwrap();
    rule.forward
        .extend(held.map(|from| ("digits".to_owned(), from)));
    db.admin
        .batch_execute("ALTER TABLE app.users ALTER phone SET NOT NULL")
        .await
        .unwrap();
    tried(&rule).await.unwrap();
}
