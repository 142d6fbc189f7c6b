//! Functions of a file that run one another: each is judged once, however often it is run.

use std::fmt::Write as _;

use aegis_ddl::{Class, Context, SourceFile, Verdict, judge, read};

fn last(sql: &str) -> Verdict {
    let file = SourceFile {
        path: "a.sql".to_owned(),
        script: read(sql).unwrap(),
        phase: None,
        atomic: None,
        proven: false,
    };
    let context = Context {
        server: 18,
        catalog: None,
        schema: "public",
        fresh: false,
        compatible: &[],
    };
    judge(&[file], &context).verdicts.pop().unwrap()
}

/// f1 to fN, each of which runs the one before it twice.
fn chain(count: usize, first: &str, one: &str) -> String {
    let mut sql = format!(
        "CREATE FUNCTION f1() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {first}; END $$;\n"
    );
    for number in 2..=count {
        let run = one.replace("{f}", &format!("f{}()", number - 1));
        writeln!(
            sql,
            "CREATE FUNCTION f{number}() RETURNS void LANGUAGE plpgsql AS $$ BEGIN {run}; {run}; END $$;"
        )
        .unwrap();
    }
    writeln!(sql, "SELECT f{count}(), f{count}();").unwrap();
    sql
}

#[test]
fn a_function_that_is_run_twice_by_each_of_sixty_is_told_once() {
    for one in ["PERFORM {f}", "EXECUTE 'SELECT {f}'", "EXECUTE 'CALL {f}'"] {
        let verdict = last(&chain(60, "DROP TABLE orders", one));
        let told: Vec<_> = verdict.findings.iter().map(|one| one.rule).collect();
        assert_eq!(told, ["drop-table"], "{one}");
        assert_eq!(verdict.class, Class::D, "{one}");
    }
}

#[test]
fn each_statement_that_runs_it_tells_it() {
    let sql = chain(2, "DROP TABLE orders", "PERFORM {f}") + "SELECT f1()";
    assert_eq!(last(&sql).class, Class::D);
}

#[test]
fn functions_that_go_too_deep_are_not_taken_for_read() {
    let verdict = last(&chain(3000, "DROP TABLE orders", "PERFORM {f}"));
    assert!(
        verdict.findings.iter().any(|one| one.rule == "opaque-sql"),
        "{:?}",
        verdict.findings
    );
}
