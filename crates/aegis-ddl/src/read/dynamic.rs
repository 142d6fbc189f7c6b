//! EXECUTE in PL/pgSQL: what its text says, as far as it stands there. What is put in at run time is a name that nobody knows, so the
//! form can be judged though the object cannot be told.
//!
//! Invariants: a text with a hole is never taken for the whole of what would run.

use std::collections::BTreeMap;

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{inner, tree};
use crate::statement::Statement;

/// Most texts of one variable that are read.
const TEXTS_MAX: usize = 64;

/// So far back the text right before an EXECUTE is looked for.
const BEFORE_MAX: usize = 32;

/// What the variables of a body were found to hold: a body is walked once for each.
#[derive(Default)]
pub(super) struct Known(BTreeMap<String, (Vec<Statement>, bool)>);

/// What stands for a name or a value that is only known at run time.
const HOLE: &str = "some_name";

/// The statements of an EXECUTE, and whether that is all of it.
pub(super) fn execute(node: &SyntaxNode, known: &mut Known) -> (Vec<Statement>, bool) {
    let Some(expression) = tree::child(node, K::PLPGSQL_EXPR)
        .and_then(|outer| tree::below(&outer, K::TARGET))
        .and_then(|target| target.children().next())
    else {
        return (Vec::new(), false);
    };
    if let Some(name) = variable(&expression) {
        return of_variable(node, &name, known);
    }
    of_text(&expression)
}

fn of_text(expression: &SyntaxNode) -> (Vec<Statement>, bool) {
    let mut whole = true;
    let read = text_of(expression, &mut whole).and_then(|sql| inner(&sql).ok());
    match read {
        Some(statements) => (statements, whole),
        None => (Vec::new(), false),
    }
}

/// The name of an expression that is nothing but a variable.
fn variable(expression: &SyntaxNode) -> Option<String> {
    match expression.kind() {
        K::PAREN_EXPR => variable(&expression.children().next()?),
        K::NAME_REF => Some(crate::name::identifier(&tree::text(expression))),
        _ => None,
    }
}

/// What the variable holds: what stands right before in the same list of statements, else all texts that the body gives it.
fn of_variable(execute: &SyntaxNode, name: &str, known: &mut Known) -> (Vec<Statement>, bool) {
    let before = std::iter::successors(execute.prev_sibling(), SyntaxNode::prev_sibling);
    for node in before.take(BEFORE_MAX) {
        match (node.kind(), given(&node, name)) {
            (K::PLPGSQL_ASSIGN_STMT, Given::Text(expression)) => return of_text(&expression),
            (_, Given::Nothing) if node.descendants().all(|one| given(&one, name).is_nothing()) => {
            }
            _ => break,
        }
    }
    if let Some((statements, whole)) = known.0.get(name) {
        // What is only guessed has been told.
        return if *whole {
            (statements.clone(), true)
        } else {
            (Vec::new(), false)
        };
    }
    let found = match execute.ancestors().last() {
        Some(body) => of_all_texts(&body, name),
        None => (Vec::new(), false),
    };
    known.0.insert(name.to_owned(), found.clone());
    found
}

/// It is the whole of what would run when there is one text, and nothing else fills the variable: it is one of the body's own, not a
/// parameter.
fn of_all_texts(body: &SyntaxNode, name: &str) -> (Vec<Statement>, bool) {
    let mut statements = Vec::new();
    let mut texts = 0_usize;
    let mut whole = true;
    let mut is_own = false;
    for node in body.descendants() {
        is_own |= is_declared(&node, name);
        match given(&node, name) {
            Given::Text(expression) if texts < TEXTS_MAX => {
                let (more, all) = of_text(&expression);
                statements.extend(more);
                whole &= all;
                texts += 1;
            }
            Given::Text(_) | Given::Unknown => whole = false,
            Given::Nothing => {}
        }
    }
    (statements, whole && is_own && texts == 1)
}

fn is_declared(node: &SyntaxNode, name: &str) -> bool {
    let named = || tree::child(node, K::PLPGSQL_VAR_NAME);
    node.kind() == K::PLPGSQL_VAR_DECL
        && named().is_some_and(|at| crate::name::identifier(&tree::text(&at)) == name)
}

/// What a node gives a variable.
enum Given {
    Nothing,
    Text(SyntaxNode),
    /// What is only known at run time.
    Unknown,
}

impl Given {
    const fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

fn given(node: &SyntaxNode, name: &str) -> Given {
    let is_it = |at: &SyntaxNode| crate::name::identifier(&tree::text(at)) == name;
    let names = |kind| tree::child(node, kind).is_some_and(|at| is_it(&at));
    let value = match node.kind() {
        K::PLPGSQL_VAR_DECL if names(K::PLPGSQL_VAR_NAME) => {
            match tree::child(node, K::PLPGSQL_VAR_INIT) {
                Some(value) => value,
                None => return Given::Nothing,
            }
        }
        K::PLPGSQL_ASSIGN_STMT if names(K::PLPGSQL_ASSIGN_TARGET) => node.clone(),
        // Of what is no PL/pgSQL nobody knows.
        K::ERROR => return Given::Unknown,
        K::PLPGSQL_INTO_TARGET | K::PLPGSQL_FOR_VARIABLE if is_it(node) => return Given::Unknown,
        // GET DIAGNOSTICS fills it, and so may a procedure whose parameter goes out.
        K::PLPGSQL_GET_DIAG_STMT | K::PLPGSQL_CALL_STMT if mentions(node, name) => {
            return Given::Unknown;
        }
        _ => return Given::Nothing,
    };
    tree::below(&value, K::TARGET)
        .and_then(|target| target.children().next())
        .map_or(Given::Unknown, Given::Text)
}

fn mentions(node: &SyntaxNode, name: &str) -> bool {
    tree::text(node)
        .split(|one: char| !(one.is_alphanumeric() || one == '_'))
        .any(|word| crate::name::identifier(word) == name)
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
        "concat" => {
            let parts = arguments.iter().map(|one| value(Some(one), whole));
            Some(parts.collect())
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

/// What a string literal holds; of E'' the plain escapes are read.
fn string(literal: &str) -> Option<String> {
    if let Some(escaped) = literal.strip_prefix(['E', 'e']) {
        return unescaped(escaped.strip_prefix('\'')?.strip_suffix('\'')?);
    }
    if let Some(inside) = literal.strip_prefix('\'') {
        return Some(inside.strip_suffix('\'')?.replace("''", "'"));
    }
    let rest = literal.strip_prefix('$')?;
    let (tag, body) = rest.split_once('$')?;
    Some(body.strip_suffix(&format!("${tag}$"))?.to_owned())
}

/// None where a character is given by its number. A line ends where it ends: a comment goes no further.
fn unescaped(inside: &str) -> Option<String> {
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside.chars();
    while let Some(one) = rest.next() {
        text.push(match one {
            '\\' => match rest.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                quoted @ ('\\' | '\'' | '"') => quoted,
                _ => return None,
            },
            '\'' => rest.next()?,
            plain => plain,
        });
    }
    Some(text)
}
