//! `verify.sql`: the queries that show what opaque SQL has left.
//!
//! Invariants: there is at least one, and each is a SELECT; that each gives one row `true` is seen where they run.

use aegis_ddl::Form;

use crate::change::{Change, Phase, Problem};

/// One of its queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// From 1.
    pub line: usize,
    /// As it is sent.
    pub text: String,
}

/// The queries of a phase's `opaque`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// The file, as messages call it.
    pub file: String,
    /// In their order.
    pub queries: Vec<Query>,
}

/// The proof of a phase, read; none where it has no `opaque`.
pub fn verify(change: &Change, phase: Phase) -> Result<Option<Verify>, Problem> {
    let Some(opaque) = change.opaque(phase) else {
        return Ok(None);
    };
    let help = "write queries that each give one row `true` when it was done";
    let Some(file) = change.file(&opaque.verify) else {
        let what = "it was not read with the folder";
        return Err(Problem::of_file(&opaque.verify, what, help));
    };
    let script = aegis_ddl::read(&file.text)
        .map_err(|error| Problem::of_file(&file.path, error.to_string(), help).at(error.line))?;
    if script.statements.is_empty() {
        return Err(Problem::of_file(
            &file.path,
            "it has no query, so it proves nothing",
            help,
        ));
    }
    let mut queries = Vec::with_capacity(script.statements.len());
    for statement in script.statements {
        if !matches!(statement.form, Form::Select { .. }) {
            let what = "a proof is a SELECT, and this is none";
            return Err(Problem::of_file(&file.path, what, help).at(statement.line));
        }
        queries.push(Query {
            line: statement.line,
            text: statement.text,
        });
    }
    Ok(Some(Verify {
        file: file.path.clone(),
        queries,
    }))
}
