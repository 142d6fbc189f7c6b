//! Single statements in a plain folder, without a catalog, on 18: what must be caught, what must pass. Numbers are those of the
//! reference's lists.

use aegis_ddl::{Class, read};

use crate::classes::class_of;

/// Class, then the statement; several statements in one entry are one file, and the worst counts.
pub(super) const CORPUS: &str = include_str!("plain.txt");

#[test]
fn every_statement_of_the_list_has_its_class() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CORPUS
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
    {
        let (expected, sql) = line.split_once(' ').unwrap();
        let (wanted, rule) = expected.split_once(':').unwrap_or((expected, ""));
        let (class, rules) = class_of(sql, 18);
        count += 1;
        if class.to_string() != wanted
            || !rule.is_empty() && !rules.split(' ').any(|one| one == rule)
        {
            wrong.push(format!("{class} ({rules}) instead of {expected}: {sql}"));
        }
    }
    assert!(count >= 150, "{count} statements");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn mg_19_a_comment_does_not_hide_what_cannot_run_in_a_transaction() {
    let script = read(
        "-- no transaction here\n/* a */ CREATE /* b */ INDEX\n-- c\nCONCURRENTLY i ON t (a);",
    )
    .unwrap();
    assert!(!script.statements[0].transactional());
    assert_eq!(script.statements[0].line, 2);
}

#[test]
fn mg_20_a_concurrent_index_is_known_as_one_and_needs_no_switch() {
    let (class, rules) = class_of("create index concurrently i on t (a)", 18);
    assert_eq!((class, rules.as_str()), (Class::C, ""));
}

#[test]
fn mg_25_if_not_exists_is_told_to_skip_an_invalid_index() {
    let (_, rules) = class_of("create index concurrently if not exists i on t (a)", 18);
    assert!(rules.contains("concurrently-if-not-exists"), "{rules}");
}

#[test]
fn mg_30_a_loop_over_all_rows_in_one_block_is_a_backfill() {
    let (class, rules) = class_of(
        "DO $$ BEGIN LOOP UPDATE t SET a = 1 WHERE a IS NULL; EXIT WHEN NOT FOUND; END LOOP; END $$",
        18,
    );
    assert_eq!((class, rules.as_str()), (Class::B, "dml-bulk"));
}

#[test]
fn mg_35_bodies_of_blocks_and_functions_are_read() {
    let (class, rules) = class_of("DO $$ BEGIN ALTER TABLE t DROP COLUMN a; END $$", 18);
    assert_eq!((class, rules.as_str()), (Class::D, "drop-column"));
    let (class, rules) = class_of(
        "DO $$ BEGIN EXECUTE 'alter table t drop column a'; END $$",
        18,
    );
    assert_eq!((class, rules.as_str()), (Class::D, "drop-column"));
    let (class, rules) = class_of("DO $$ BEGIN EXECUTE (SELECT body FROM scripts); END $$", 18);
    assert_eq!((class, rules.as_str()), (Class::C, "opaque-sql"));
}
