//! From a file's text to statements in our own words. The only room that sees the parser.

mod body;
mod check;
mod deep;
mod dynamic;
mod other;
pub(crate) mod pieces;
mod rows;
mod sequence;
mod table;
mod tree;

use squawk_syntax::SyntaxNode;
use squawk_syntax::ast::SourceFile;

use crate::statement::{Script, Statement, SyntaxError, line_of};

/// Reads a whole file.
///
/// A byte order mark is whitespace here; `\restrict` and `\unrestrict`, which pg_dump writes, are left out.
///
/// # Errors
/// The first place that is not SQL, with a caret; a psql meta-command is named as one. What is nested too deep to be read is told with
/// its place and the limit.
pub fn read(sql: &str) -> Result<Script, SyntaxError> {
    let text = without_restrict(sql);
    deep::within(&text, || parse(sql, &text))?
}

/// The parser's tree does not leave this function: its end goes down as deep as it is.
fn parse(sql: &str, text: &str) -> Result<Script, SyntaxError> {
    let parsed = SourceFile::parse(text);
    if let Some(error) = parsed.errors().first() {
        let offset = usize::from(error.range().start());
        return Err(explain(sql, offset, error.message()));
    }
    let mut statements: Vec<Statement> = Vec::new();
    // Lines are counted from the statement before: a file has many.
    let (mut line, mut counted) = (1, 0);
    for node in parsed.syntax_node().children() {
        let line_at = |start: usize| line + line_of(&text[counted..], start - counted) - 1;
        if let Some(statement) = statement_on(&node, text, line_at) {
            (line, counted) = (statement.line, statement.span.start);
            statements.push(statement);
        }
    }
    // A statement whose text is not what stands there has such a line in it, which may be a piece of a string.
    let changed = |statement: &&Statement| sql.get(statement.span.clone()) != Some(&statement.text);
    if let Some(statement) = statements.iter().find(changed) {
        let said = "\\restrict and \\unrestrict are left out between statements, and such a line stands inside of this one";
        return Err(SyntaxError::at(sql, statement.span.start, said.to_owned()));
    }
    Ok(Script { statements })
}

fn statement(node: &SyntaxNode, sql: &str) -> Option<Statement> {
    statement_on(node, sql, |start| line_of(sql, start))
}

fn statement_on(
    node: &SyntaxNode,
    sql: &str,
    line_at: impl FnOnce(usize) -> usize,
) -> Option<Statement> {
    let plain = tree::text(node);
    let plain = plain.trim_end_matches([';', ' ']).to_owned();
    if plain.is_empty() {
        return None;
    }
    // The node may begin with a comment.
    let first = node
        .descendants_with_tokens()
        .filter_map(squawk_syntax::SyntaxElement::into_token)
        .find(|token| {
            !matches!(
                token.kind(),
                squawk_syntax::SyntaxKind::WHITESPACE | squawk_syntax::SyntaxKind::COMMENT
            )
        })?;
    let start = usize::from(first.text_range().start());
    let end = usize::from(node.text_range().end());
    let text = sql.get(start..end)?.trim_end();
    let text = text.strip_suffix(';').unwrap_or(text).trim_end();
    let acting = other::acting(node);
    Some(Statement {
        text: text.to_owned(),
        span: start..start + text.len(),
        line: line_at(start),
        form: other::form(node),
        with: rows::with(&acting, sql),
        scans: rows::scanned(&acting),
        sequence: sequence::options(node),
        plain,
    })
}

/// Statements of a body that is SQL itself.
fn inner(sql: &str) -> Result<Vec<Statement>, SyntaxError> {
    read(sql).map(|script| script.statements)
}

/// The same length, so that places stay.
fn without_restrict(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql;
    if let Some(after) = rest.strip_prefix('\u{feff}') {
        text.push_str("   ");
        rest = after;
    }
    for line in rest.split_inclusive('\n') {
        if line.starts_with("\\restrict ") || line.starts_with("\\unrestrict ") {
            let kept = line.trim_end_matches(['\r', '\n']);
            text.extend(std::iter::repeat_n(' ', kept.len()));
            text.push_str(&line[kept.len()..]);
        } else {
            text.push_str(line);
        }
    }
    text
}

fn explain(sql: &str, offset: usize, message: &str) -> SyntaxError {
    let before = sql.get(..offset).unwrap_or_default();
    if let Some(copy) = before.to_ascii_lowercase().rfind("from stdin") {
        let said = "rows of COPY … FROM STDIN cannot be run from a file; write INSERT, or load them by a backfill";
        return SyntaxError::at(sql, copy, said.to_owned());
    }
    if stands_behind_restart(before) && next_word(sql, offset).eq_ignore_ascii_case("set") {
        let said =
            "the reader takes no SET behind RESTART; write RESTART last, the server does the same";
        return SyntaxError::at(sql, offset, said.to_owned());
    }
    // The parser may notice a meta-command on a later line: the first such line before the place is meant.
    let offset_line = line_of(sql, offset);
    let mut at = 0;
    for (number, line) in sql.split_inclusive('\n').enumerate() {
        if number >= offset_line {
            break;
        }
        if line.starts_with('\\')
            && !line.starts_with("\\restrict ")
            && !line.starts_with("\\unrestrict ")
        {
            let command: String = line
                .chars()
                .take_while(|character| !character.is_whitespace())
                .collect();
            let said = format!(
                "{command} is a command of psql, not of the server; take it out (of these only pg_dump's \\restrict and \\unrestrict are left out silently)"
            );
            return SyntaxError::at(sql, at, said);
        }
        at += line.len();
    }
    SyntaxError::at(sql, offset, message.to_owned())
}

/// Whether a text ends with `RESTART`, `RESTART 5` or `RESTART WITH 5`.
fn stands_behind_restart(before: &str) -> bool {
    let is_restart = |word: &&str| word.eq_ignore_ascii_case("restart");
    let last: Vec<&str> = before.split_whitespace().rev().take(3).collect();
    last.iter()
        .position(is_restart)
        .is_some_and(|at| at != 1 || !last[0].eq_ignore_ascii_case("with"))
}

fn next_word(sql: &str, offset: usize) -> &str {
    let rest = sql.get(offset..).unwrap_or_default();
    rest.split_whitespace().next().unwrap_or_default()
}
