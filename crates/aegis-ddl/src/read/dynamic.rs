//! EXECUTE in PL/pgSQL: what its text says, as far as it stands there. What is put in at run time is a name that nobody knows, so the
//! form can be judged though the object cannot be told.
//!
//! Invariants: a text with a hole is never taken for the whole of what would run.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{inner, tree};
use crate::statement::Statement;

/// What stands for a name or a value that is only known at run time.
const HOLE: &str = "some_name";

/// The statements of an EXECUTE, and whether that is all of it.
pub(super) fn execute(node: &SyntaxNode) -> (Vec<Statement>, bool) {
    let Some(expression) = tree::child(node, K::PLPGSQL_EXPR)
        .and_then(|outer| tree::below(&outer, K::TARGET))
        .and_then(|target| target.children().next())
    else {
        return (Vec::new(), false);
    };
    let mut whole = true;
    let Some(sql) = text_of(&expression, &mut whole) else {
        return (Vec::new(), false);
    };
    match inner(&sql) {
        Ok(statements) => (statements, whole),
        Err(_) => (Vec::new(), false),
    }
}

/// The text that an expression gives; none when none of it stands there.
fn text_of(node: &SyntaxNode, whole: &mut bool) -> Option<String> {
    match node.kind() {
        K::LITERAL => string(&tree::text(node)),
        K::PAREN_EXPR => text_of(&node.children().next()?, whole),
        K::BIN_EXPR => {
            let (left, between, right) = tree::sides(node)?;
            if between != "||" {
                return None;
            }
            let (left, right) = (text_of(&left, whole), text_of(&right, whole));
            if left.is_none() && right.is_none() {
                return None;
            }
            let mut part = |side: Option<String>| {
                side.unwrap_or_else(|| {
                    *whole = false;
                    HOLE.to_owned()
                })
            };
            Some(part(left) + &part(right))
        }
        K::CALL_EXPR => call(node, whole),
        _ => None,
    }
}

fn call(node: &SyntaxNode, whole: &mut bool) -> Option<String> {
    let name = tree::text(&node.children().next()?).to_ascii_lowercase();
    let arguments: Vec<SyntaxNode> = tree::child(node, K::ARG_LIST)?
        .children()
        .filter_map(|argument| argument.children().next())
        .collect();
    match name.trim_start_matches("pg_catalog.") {
        "format" => {
            let template = text_of(arguments.first()?, whole)?;
            Some(format(&template, &arguments[1..], whole))
        }
        "quote_ident" => Some(quoted(&value(arguments.first(), whole))),
        "quote_literal" | "quote_nullable" => Some(literal(&value(arguments.first(), whole))),
        _ => None,
    }
}

/// format() of the server: %I, %L, %s, %%, with a position or without.
fn format(template: &str, arguments: &[SyntaxNode], whole: &mut bool) -> String {
    let mut text = String::new();
    let mut next = 0;
    let mut rest = template.chars().peekable();
    while let Some(one) = rest.next() {
        if one != '%' {
            text.push(one);
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = rest.next_if(|one| one.is_ascii_digit() || *one == '-') {
            digits.push(digit);
        }
        if rest.next_if_eq(&'$').is_some() {
            next = digits.parse::<usize>().unwrap_or(1).saturating_sub(1);
        }
        match rest.next() {
            Some('%') => text.push('%'),
            Some('I') => {
                text.push_str(&quoted(&value(arguments.get(next), whole)));
                next += 1;
            }
            Some('L') => {
                text.push_str(&literal(&value(arguments.get(next), whole)));
                next += 1;
            }
            Some(_) => {
                text.push_str(&value(arguments.get(next), whole));
                next += 1;
            }
            None => {}
        }
    }
    text
}

/// An argument's text, or the hole.
fn value(argument: Option<&SyntaxNode>, whole: &mut bool) -> String {
    argument
        .and_then(|node| text_of(node, whole))
        .unwrap_or_else(|| {
            *whole = false;
            HOLE.to_owned()
        })
}

fn quoted(name: &str) -> String {
    if name == HOLE {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What a string literal holds; E'' with escapes is not read.
fn string(literal: &str) -> Option<String> {
    if let Some(inside) = literal.strip_prefix('\'') {
        return Some(inside.strip_suffix('\'')?.replace("''", "'"));
    }
    let rest = literal.strip_prefix('$')?;
    let (tag, body) = rest.split_once('$')?;
    Some(body.strip_suffix(&format!("${tag}$"))?.to_owned())
}
