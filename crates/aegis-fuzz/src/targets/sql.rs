//! SQL of anybody: read into statements, then judged.

use aegis_ddl::{Context, Script, SourceFile, SyntaxError, judge, read};

use crate::holds::{says, text};

/// A file of SQL: statements that stand where they say, or the place of the mistake; and a verdict for each statement.
pub(super) fn sql(bytes: &[u8]) {
    let Some(sql) = text(bytes) else { return };
    match read(sql) {
        Ok(script) => statements(sql, script),
        Err(error) => mistake(sql, &error),
    }
}

fn statements(sql: &str, script: Script) {
    let mut end = 0;
    for statement in &script.statements {
        assert!(end <= statement.span.start, "statements overlap: {sql:?}");
        end = statement.span.end;
        assert_eq!(
            sql.get(statement.span.clone()),
            Some(statement.text.as_str()),
            "{sql:?}"
        );
        let lines = 1 + sql[..statement.span.start].matches('\n').count();
        assert_eq!(statement.line, lines, "{sql:?}");
    }
    for server in [14, 18] {
        let count = script.statements.len();
        let report = judge(
            &[SourceFile {
                path: "a.sql".to_owned(),
                script: script.clone(),
                phase: None,
                atomic: None,
                proven: false,
            }],
            &Context {
                server,
                catalog: None,
                schema: "app",
                fresh: false,
                compatible: &[],
            },
        );
        assert_eq!(
            report.verdicts.len(),
            count,
            "not one verdict a statement: {sql:?}"
        );
    }
    drop(script);
}

fn mistake(sql: &str, error: &SyntaxError) {
    says(error, sql.as_bytes());
    assert!(
        1 <= error.line && error.line <= sql.split('\n').count() + 1,
        "{error} in {sql:?}"
    );
    assert!(1 <= error.column, "{error}");
}
