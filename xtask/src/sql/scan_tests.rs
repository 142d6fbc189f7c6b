//! The scanner: what is a parameter and what only looks like one.

use super::super::source::expand;
use super::{Mistake, Scanned, scan};

fn scanned(text: &str) -> Result<Scanned, Mistake> {
    let folder = tempfile::tempdir().unwrap();
    let chars = expand(folder.path(), "x.sql", text, 1, &mut Vec::new()).unwrap();
    scan(&chars, Some(100))
}

fn text(sql: &str) -> String {
    scanned(sql).unwrap().text
}

fn complaint(sql: &str) -> String {
    scanned(sql).unwrap_err().to_string()
}

#[test]
fn parameters_are_numbered_by_first_appearance() {
    let scanned =
        scanned("SELECT :b, :a::text, :b + 1 WHERE x=:c AND (:a) AND y = ANY(:d)").unwrap();
    assert_eq!(
        scanned.text,
        "SELECT $1, $2::text, $1 + 1 WHERE x=$3 AND ($2) AND y = ANY($4)"
    );
    let names: Vec<_> = scanned
        .params
        .iter()
        .map(|param| param.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a", "c", "d"]);
}

#[test]
fn marks_hold_for_the_parameter_wherever_they_stand() {
    let scanned =
        scanned("SELECT :a, :a?::text, :a, :b[?]::bytea[], :c[1], :d ? 'key', :e!='x'").unwrap();
    assert_eq!(
        scanned.text,
        "SELECT $1, $1::text, $1, $2::bytea[], $3[1], $4 ? 'key', $5!='x'"
    );
    let marks: Vec<_> = scanned
        .params
        .iter()
        .map(|param| (param.optional, param.optional_elements))
        .collect();
    assert_eq!(
        marks,
        [
            (true, false),
            (false, true),
            (false, false),
            (false, false),
            (false, false)
        ]
    );
}

#[test]
fn casts_assignments_and_slices_are_left_alone() {
    for sql in [
        "SELECT a::text",
        "SELECT f(a := 1)",
        "SELECT a[1:2]",
        "SELECT a[lo : hi]",
        "SELECT a :: int",
    ] {
        assert_eq!(text(sql), sql);
    }
    assert!(complaint("SELECT a[lo:hi]").contains("x.sql:1:12: a parameter cannot follow a word"));
    assert!(complaint("SELECT a[f(x):hi]").contains("a parameter cannot follow"));
}

#[test]
fn quotes_are_left_alone() {
    for sql in [
        "SELECT ':a', 'it''s :a', \":a\", \"x\"\":a\"",
        r"SELECT E'\' :a', e'\\'",
        "SELECT $$ :a ' $$, $t$ :a $$ $x$ $t$",
        "SELECT 'a  \n\n  -- :a\n'",
        "SELECT '\n\n'",
        "SELECT a$b, value$1x",
    ] {
        assert_eq!(text(sql), sql);
    }
    // Standard strings know no backslash: the text ends before :a.
    assert_eq!(text(r"SELECT 'c:\', :a"), r"SELECT 'c:\', $1");
    // The `e` of a word is not the E of an escape string.
    assert_eq!(text(r"SELECT date'\', :a"), r"SELECT date'\', $1");
}

#[test]
fn comments_and_the_lines_they_leave_empty_go() {
    let sql = "-- head :a\nSELECT 1 -- :a\n\n  -- :b\n  , 2 /* :c /* nested */ still */, 3\n/* all */\n;\n";
    assert_eq!(text(sql), "SELECT 1\n  , 2  , 3");
    assert_eq!(text("SELECT 1/**/AS a"), "SELECT 1 AS a");
}

#[test]
fn what_never_ends_is_told_where_it_begins() {
    assert!(complaint("SELECT\n 'a").contains("x.sql:2:2: this quote never ends"));
    assert!(complaint("SELECT \"a").contains("this quote never ends"));
    assert!(complaint("SELECT /* a /* */").contains("x.sql:1:8: this comment never ends"));
    assert!(complaint("SELECT $a$ $b$").contains("this dollar quote never ends"));
}

#[test]
fn numbers_and_odd_names_are_refused() {
    assert!(complaint("SELECT $1").contains("write parameters as :name"));
    assert!(complaint("SELECT :Name").contains("`:Name` is not in snake_case"));
    assert!(complaint("SELECT :grüße").contains("snake_case"));
}

#[test]
fn batch_is_a_literal_and_needs_its_head() {
    let with = scanned("SELECT 1 LIMIT :batch!").unwrap();
    assert_eq!(
        (with.text.as_str(), with.uses_batch),
        ("SELECT 1 LIMIT 100", true)
    );
    assert!(with.params.is_empty());
    assert!(complaint("SELECT :other!").contains("only `:batch!` is known"));
    let folder = tempfile::tempdir().unwrap();
    let chars = expand(folder.path(), "x.sql", "LIMIT :batch!", 1, &mut Vec::new()).unwrap();
    assert!(
        scan(&chars, None)
            .unwrap_err()
            .what
            .contains("the head must say `batch: …`")
    );
}

#[test]
fn every_character_knows_its_origin() {
    let scanned = scanned("-- c\nSELECT :abc,\n  wrong").unwrap();
    assert_eq!(scanned.text.chars().count(), scanned.origins.len());
    let at = scanned.text.find("wrong").unwrap();
    assert_eq!(
        (scanned.origins[at].line, scanned.origins[at].column),
        (3, 3)
    );
}
