//! Text that is nested without end: an error with a place, never the end of the process. A stack that overflows ends the process of the
//! test, so each of these fails by killing it.

use aegis_ddl::{SyntaxError, read};

fn refused(sql: &str) -> SyntaxError {
    let error = read(sql).map(|script| script.statements.len()).unwrap_err();
    assert!(error.message.contains("nested"), "{}", error.message);
    assert!(error.message.contains("limit"), "{}", error.message);
    assert!(error.caret.len() < 1_000, "{}", error.caret.len());
    error
}

fn around(open: &str, inside: &str, close: &str, count: usize) -> String {
    let (open, close) = (open.repeat(count), close.repeat(count));
    format!("SELECT 1;\nSELECT {open}{inside}{close};\n")
}

#[test]
fn what_is_nested_ten_thousand_deep_is_refused_with_its_place() {
    for (open, inside, close) in [
        ("(", "1", ")"),
        ("CASE WHEN true THEN ", "1", " END"),
        ("case x when 1 then 2 else ", "1", " end"),
        ("(SELECT ", "1", ")"),
        ("ARRAY[", "1", "]"),
        ("f(", "1", ")"),
        ("ROW(1, ", "1", ")"),
        ("'a' || (", "'b'", ")"),
        ("EXISTS (SELECT 1 FROM (SELECT ", "1", ") AS x)"),
        ("(", "1", ""),
        ("1 = ALL (ARRAY[1 + ", "1", "])"),
    ] {
        for count in [10_001, 100_000] {
            let error = refused(&around(open, inside, close, count));
            assert_eq!(error.line, 2, "{open}");
            assert!(error.column > 1, "{open}");
        }
    }
    for words in ["NOT ", "- ", "WITH a AS ", "EXPLAIN "] {
        refused(&around(words, "1", "", 60_000));
    }
    let error = refused(&format!(
        "SELECT {}1{};",
        "(\n".repeat(9_000),
        ")\n".repeat(9_000)
    ));
    assert!(error.line > 100 && error.line < 9_000, "{}", error.line);
}

#[test]
fn statements_that_hold_statements_are_bounded_too() {
    let deep = |count| format!("({}1{})", "(".repeat(count), ")".repeat(count));
    refused(&format!("DO $x$ BEGIN PERFORM {}; END $x$;", deep(10_000)));
    refused(&format!(
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT {} $$;",
        deep(10_000)
    ));
    refused(&format!("{}SELECT 1;", "EXPLAIN ".repeat(60_000)));
    let blocks = format!(
        "DO $x$ {}NULL;{} $x$;",
        "BEGIN ".repeat(9_000),
        " END;".repeat(9_000)
    );
    refused(&blocks);
    let branches = format!(
        "DO $x$ BEGIN {}NULL;{} END $x$;",
        "IF true THEN ".repeat(9_000),
        " END IF;".repeat(9_000)
    );
    refused(&branches);
    let loops = format!(
        "DO $x$ BEGIN {}NULL;{} END $x$;",
        "LOOP ".repeat(9_000),
        " END LOOP;".repeat(9_000)
    );
    refused(&loops);
    let mut quoted = "SELECT 1".to_owned();
    for level in 0..200 {
        quoted =
            format!("DO $q{level}$ BEGIN EXECUTE $e{level}$ {quoted} $e{level}$; END $q{level}$");
    }
    refused(&quoted);
}

#[test]
fn what_is_long_and_not_deep_is_read() {
    let joined = |part: &str, by: &str, count| vec![part; count].join(by);
    for sql in [
        format!("SELECT {};", joined("a", " + ", 5_000)),
        format!("SELECT 1 WHERE {};", joined("a = 1", " AND ", 5_000)),
        format!("{};", joined("SELECT 1", " UNION ALL ", 10_000)),
        format!("SELECT a{};", "::int".repeat(2_000)),
        format!(
            "INSERT INTO t VALUES {};",
            joined("(-1, 'x(((', (2 + 3))", ",\n", 20_000)
        ),
        format!("SELECT x IN ({});", joined("-1", ", ", 50_000)),
        format!(
            "SELECT '{}', \"{}\";",
            "(".repeat(50_000),
            "[".repeat(50_000)
        ),
        format!(
            "-- {}\n/* {} /* {} */ */ SELECT 1;",
            "(".repeat(50_000),
            "(".repeat(50_000),
            "CASE ".repeat(50_000)
        ),
        format!("COMMENT ON TABLE t IS $${}$$;", "((( CASE ".repeat(10_000)),
        format!("SELECT {}1{};", "(".repeat(200), ")".repeat(200)),
        format!(
            "SELECT E'\\'{}' || U&'{}';",
            "(".repeat(9_000),
            "(".repeat(9_000)
        ),
        format!("SELECT {}true;", "NOT ".repeat(5_000)),
        format!("SELECT {}1;", "- ".repeat(5_000)),
        "DROP TABLE IF EXISTS a;\n".repeat(5_000),
        format!(
            "DO $$ BEGIN {} END $$;",
            "IF a THEN DROP TABLE IF EXISTS a; ELSIF b THEN NULL; END IF;\n".repeat(2_000)
        ),
    ] {
        read(&sql).unwrap_or_else(|error| panic!("{}: {}", &sql[..60], error.message));
    }
}
