//! A file as statements.

use std::ops::Range;

use serde::Serialize;

use crate::form::Form;

/// How much of a line is shown on each side of a place.
const BESIDE_BYTES: usize = 100;

/// The statements of a file, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Script {
    /// In the order of the file.
    pub statements: Vec<Statement>,
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// As it stands, without the semicolon.
    pub text: String,
    /// Its bytes in the file.
    #[serde(skip)]
    pub span: Range<usize>,
    /// The line of its first word, from 1.
    pub line: usize,
    /// What it does.
    pub form: Form,
    /// INSERT, UPDATE, DELETE and MERGE in its WITH: they run too.
    #[serde(skip)]
    pub(crate) with: Vec<Self>,
    /// Relations whose rows are all read: by a SELECT, or to be copied by CREATE TABLE AS or CREATE MATERIALIZED VIEW.
    #[serde(skip)]
    pub(crate) scans: Vec<crate::QualifiedName>,
    /// What CREATE SEQUENCE or ALTER SEQUENCE says.
    #[serde(skip)]
    pub(crate) sequence: SequenceOptions,
    /// Its tokens with one space between: what hashes and comparisons take.
    #[serde(skip)]
    pub(crate) plain: String,
}

/// Options of a sequence that more than its next number hangs on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SequenceOptions {
    /// The table whose column owns it.
    pub(crate) owned_by: Option<crate::QualifiedName>,
    /// RESTART without a number, or with its first one.
    pub(crate) restarts: bool,
}

impl Statement {
    /// Its text in which comments and whitespace do not count.
    pub fn normalised(&self) -> String {
        self.plain.clone()
    }

    /// Whether it says ONLY of the table that it changes.
    pub(crate) fn is_only(&self) -> bool {
        let mut words = self.plain.split(' ').map(str::to_ascii_uppercase);
        let passed: &[&str] = match &self.form {
            Form::AlterTable { .. } => &["ALTER", "TABLE", "IF", "EXISTS"],
            Form::Update { .. } => &["UPDATE"],
            Form::Delete { .. } => &["DELETE", "FROM"],
            _ => return false,
        };
        words.find(|word| !passed.contains(&word.as_str())) == Some("ONLY".to_owned())
    }

    /// Whether the server runs it inside a transaction block.
    pub fn transactional(&self) -> bool {
        use crate::form::Action;
        match &self.form {
            Form::CreateIndex(index) => !index.concurrently,
            Form::DropIndex { concurrently, .. } => !concurrently,
            Form::Reindex {
                concurrently, of, ..
            } => {
                !concurrently
                    && !matches!(
                        of,
                        crate::form::ReindexOf::Schema | crate::form::ReindexOf::Database
                    )
            }
            Form::AlterTable { actions, .. } => !actions.iter().any(|action| {
                matches!(
                    action,
                    Action::DetachPartition {
                        concurrently: true,
                        ..
                    }
                )
            }),
            Form::Vacuum { .. } | Form::Cluster { table: None } => false,
            Form::ClusterWide { transactional, .. } => *transactional,
            Form::Do { body } => !body.commits,
            _ => true,
        }
    }
}

/// Why a file is not SQL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("line {line}, column {column}: {message}\n{caret}")]
pub struct SyntaxError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line with a mark below the place.
    pub caret: String,
}

impl SyntaxError {
    /// At a byte of a text.
    pub(crate) fn at(sql: &str, offset: usize, message: String) -> Self {
        let mut offset = offset.min(sql.len());
        while !sql.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = sql[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = sql[offset..].find('\n').map_or(sql.len(), |at| offset + at);
        let column = sql[start..offset].chars().count();
        let (start, end) = window(sql, start, offset, end);
        let blank: String = sql[start..offset]
            .chars()
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        Self {
            line: line_of(sql, offset),
            column: column + 1,
            message,
            caret: format!("  {}\n  {blank}^", sql[start..end].trim_end_matches('\r')),
        }
    }
}

/// Of a long line what is near a byte.
fn window(sql: &str, start: usize, offset: usize, end: usize) -> (usize, usize) {
    let mut from = offset.saturating_sub(BESIDE_BYTES).max(start);
    while !sql.is_char_boundary(from) {
        from -= 1;
    }
    let mut to = offset.saturating_add(BESIDE_BYTES).min(end);
    while !sql.is_char_boundary(to) {
        to += 1;
    }
    (from, to)
}

/// The line of a byte, from 1.
pub(crate) fn line_of(sql: &str, offset: usize) -> usize {
    1 + sql.get(..offset).unwrap_or(sql).matches('\n').count()
}
