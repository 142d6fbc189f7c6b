//! What a rule must say of a file, and files that run on a server, of which it must say nothing that counts: there a word is a name, or
//! what was made before is gone by something that does not name it.

use aegis_ddl::{Level, read, volatile_call};

use aegis_testkit::TestDb;

use crate::classes::judged;

/// What the files take for given.
const GIVEN: &str = "DROP SCHEMA IF EXISTS a, public CASCADE; CREATE SCHEMA a; CREATE SCHEMA public;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TABLE big (id serial, kind int);
CREATE TABLE live (always int GENERATED ALWAYS AS IDENTITY, restart int GENERATED ALWAYS AS IDENTITY);
CREATE SEQUENCE restart; CREATE TABLE t (restart int); CREATE SEQUENCE sq;";

/// Each file with its rule, and whether that must be told.
fn files() -> impl Iterator<Item = (&'static str, &'static str, bool)> {
    include_str!("silent.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (wanted, sql) = line.split_once(' ').unwrap();
            (
                wanted.trim_start_matches('!'),
                sql,
                !wanted.starts_with('!'),
            )
        })
}

#[tokio::test]
async fn the_server_takes_what_must_not_be_told() {
    let db = TestDb::empty().await;
    let mut refused = Vec::new();
    for (_, sql, _) in files().filter(|(_, _, is_told)| !is_told) {
        // Of its own session, as it may set something there.
        let client = db.connect().await;
        client.batch_execute(GIVEN).await.unwrap();
        if let Err(error) = client.batch_execute(sql).await {
            let said = error.as_db_error().map(ToString::to_string);
            refused.push(format!("{said:?}: {sql}"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn a_rule_says_nothing_of_what_runs_and_does_not_get_silent_beside_it() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (rule, sql, is_told) in files() {
        let verdicts = judged(&[sql], 18, None);
        let told = verdicts
            .iter()
            .flat_map(|verdict| &verdict.findings)
            .any(|one| one.rule == rule && one.level == Level::Error);
        count += 1;
        if told != is_told {
            wrong.push(format!("{rule} {told}: {sql}"));
        }
    }
    assert!(count >= 50, "{count} files");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_clock_without_brackets_is_one_of_five_words() {
    for clock in [
        "current_date",
        "a || CURRENT_TIMESTAMP",
        "(localtime)",
        "localtimestamp(0)",
        "current_time::text",
        "now()",
        "clock_timestamp()",
        "a + statement_timestamp()",
    ] {
        assert!(volatile_call(clock).is_some(), "{clock}");
    }
    for column in [
        "transaction_timestamp",
        "statement_timestamp",
        "clock_timestamp + interval '1 day'",
        "localtime_offset",
        "localtimestamps",
        "t.current_date",
        "\"current_date\"",
        "current_date$x",
        "'current_date'",
        "now",
    ] {
        assert_eq!(volatile_call(column), None, "{column}");
    }
}

#[test]
fn what_is_read_behind_a_name_does_not_begin_in_it() {
    for (sql, wanted) in [
        ("alter table p detach partition finalize", "finalize: false"),
        (
            "alter table p detach partition p1 finalize",
            "finalize: true",
        ),
        (
            "alter table t alter constraint enforced_c deferrable",
            "enforced: false",
        ),
        (
            "alter table t alter constraint c enforced",
            "enforced: true",
        ),
        (
            "alter table t replica identity using index nothing",
            "nothing: false",
        ),
        ("alter table t replica identity nothing", "nothing: true"),
        (
            "alter table t add foreign key (id) references period (id)",
            "period: false",
        ),
        (
            "create table t (identity int, g int generated always as (identity) virtual)",
            "identity: false, always: false, checked: false, unique: false, primary: false, references: None, collated: false }], ",
        ),
    ] {
        let form = format!("{:?}", read(sql).unwrap().statements[0].form);
        assert!(form.contains(wanted), "{sql}: {form}");
    }
}
