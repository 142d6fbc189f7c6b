//! Reading: places, hostile quoting, what is refused with a caret.

use aegis_ddl::{Form, read};

#[test]
fn statements_have_their_text_and_line() {
    let sql = "-- first\n\nALTER TABLE t\n  ADD COLUMN a int; -- tail\n/* x */ SELECT 1;;\n";
    let script = read(sql).unwrap();
    let seen: Vec<_> = script
        .statements
        .iter()
        .map(|one| (one.line, one.text.as_str()))
        .collect();
    assert_eq!(
        seen,
        [(3, "ALTER TABLE t\n  ADD COLUMN a int"), (5, "SELECT 1")]
    );
    for statement in &script.statements {
        assert_eq!(&sql[statement.span.clone()], statement.text);
    }
}

#[test]
fn comments_and_whitespace_do_not_count_in_the_normalised_text() {
    let one = read("ALTER TABLE t ADD a int").unwrap();
    let other = read("ALTER  TABLE t\r\n/* x */ ADD a -- y\n int ;").unwrap();
    assert_eq!(
        one.statements[0].normalised(),
        other.statements[0].normalised()
    );
    let string = read("SELECT 'a  b'").unwrap();
    assert_eq!(string.statements[0].normalised(), "SELECT 'a  b'");
}

#[test]
fn semicolons_inside_are_no_ends() {
    let sql = r#"DO $a$ BEGIN PERFORM ';'; END $a$; SELECT ';', "a;b", E'\';' /* ; /* ; */ ; */;
        CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END;
        CREATE RULE r AS ON INSERT TO t DO ALSO (INSERT INTO a VALUES (1); INSERT INTO b VALUES (2));"#;
    assert_eq!(read(sql).unwrap().statements.len(), 4);
}

#[test]
fn a_syntax_error_has_a_place_and_a_caret() {
    let error = read("SELECT 1;\nALTER TABEL t ADD a int;").unwrap_err();
    assert_eq!(error.line, 2);
    assert!(
        error.caret.contains("ALTER TABEL") && error.caret.ends_with('^'),
        "{}",
        error.caret
    );
}

#[test]
fn psql_commands_are_named_and_those_of_pg_dump_left_out() {
    let error = read("SELECT 1;\n\\connect x\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 1));
    assert!(
        error.message.contains("\\connect is a command of psql"),
        "{}",
        error.message
    );
    let copy = read("COPY t (a) FROM stdin;\n1\n\\.\n").unwrap_err();
    assert!(copy.message.contains("COPY"), "{}", copy.message);
    let inside = read("SELECT 1;\nINSERT INTO a VALUES ('x\n\\restrict abc\n');\n").unwrap_err();
    assert_eq!(inside.line, 2);
    assert!(inside.message.contains("inside of this one"), "{inside}");
    let dumped = read("\\restrict abc\nSELECT 1;\n\\unrestrict abc\n").unwrap();
    assert_eq!(dumped.statements[0].line, 2);
}

#[test]
fn a_byte_order_mark_and_windows_lines_are_whitespace() {
    let script = read("\u{feff}SELECT 1;\r\nSELECT 2;\r\n").unwrap();
    assert_eq!(script.statements.len(), 2);
    assert_eq!(script.statements[1].line, 2);
}

#[test]
fn quoted_names_are_kept_as_they_are() {
    let script = read(r#"ALTER TABLE "My ""S".T ADD COLUMN "A b" int"#).unwrap();
    let Form::AlterTable { table, .. } = &script.statements[0].form else {
        panic!("{:?}", script.statements[0].form);
    };
    assert_eq!(table.schema.as_deref(), Some("My \"S"));
    assert_eq!(table.name, "t");
}

#[test]
fn what_may_not_stand_behind_restart_is_said_and_reads_before_it() {
    for restart in ["RESTART", "restart 500", "RESTART WITH 500"] {
        let error = read(&format!(
            "ALTER TABLE t ALTER a {restart} SET INCREMENT BY 2"
        ))
        .unwrap_err();
        assert!(error.message.contains("RESTART last"), "{restart}: {error}");
        read(&format!(
            "ALTER TABLE t ALTER a SET INCREMENT BY 2 {restart}"
        ))
        .unwrap();
    }
    let other = read("ALTER TABLE t ALTER a SET INCREMENT BY SET").unwrap_err();
    assert!(!other.message.contains("RESTART"), "{other}");
}
