//! How many rows an INSERT, UPDATE or DELETE is about, as far as its text says.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::tree;
use crate::form::{RowScope, Source};

/// Of an INSERT.
pub(super) fn source(node: &SyntaxNode) -> Source {
    if tree::has(node, K::DEFAULT_VALUES) {
        return Source::Defaults;
    }
    match tree::child(node, K::VALUES) {
        Some(values) if tree::below(&values, K::SELECT).is_none() => {
            let rows = tree::child(&values, K::ROW_LIST).map_or(0, |list| {
                list.children().filter(|row| row.kind() == K::ROW).count()
            });
            Source::Rows(rows)
        }
        _ => Source::Query,
    }
}

/// Of an UPDATE or DELETE: keyed means that each row is named by literals.
pub(super) fn scope(node: &SyntaxNode) -> RowScope {
    let Some(condition) = tree::child(node, K::WHERE_CLAUSE) else {
        return RowScope::All;
    };
    if tree::has(node, K::FROM_CLAUSE) || tree::has(node, K::USING_CLAUSE) {
        return RowScope::Condition;
    }
    condition
        .children()
        .next()
        .and_then(|expression| keyed(&expression))
        .map_or(RowScope::Condition, RowScope::Keyed)
}

/// `column = literal`, `column IN (literals)`, and either of them with AND.
fn keyed(node: &SyntaxNode) -> Option<usize> {
    match node.kind() {
        K::PAREN_EXPR => keyed(&node.children().next()?),
        K::BIN_EXPR => {
            let mut sides = node.children().filter(|side| !is_operator(side.kind()));
            let (left, right) = (sides.next()?, sides.next()?);
            let text = tree::text(node);
            let middle = text
                .strip_prefix(&tree::text(&left))?
                .strip_suffix(&tree::text(&right))?
                .trim()
                .to_ascii_lowercase();
            match middle.as_str() {
                "=" if is_column(&left) && is_literal(&right) => Some(1),
                "in" if is_column(&left) && right.children().all(|one| is_literal(&one)) => {
                    Some(right.children().count())
                }
                "and" => match (keyed(&left), keyed(&right)) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                },
                "or" => Some(keyed(&left)? + keyed(&right)?),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Operators are nodes in some forms and tokens in others.
fn is_operator(kind: K) -> bool {
    matches!(kind, K::CUSTOM_OP | K::EQ)
}

fn is_column(node: &SyntaxNode) -> bool {
    matches!(node.kind(), K::NAME_REF | K::FIELD_EXPR)
}

fn is_literal(node: &SyntaxNode) -> bool {
    match node.kind() {
        K::LITERAL => true,
        K::PREFIX_EXPR | K::CAST_EXPR | K::PAREN_EXPR => node
            .children()
            .filter(|child| !tree::is_type(child.kind()) && child.kind() != K::COLON_COLON)
            .all(|child| is_literal(&child)),
        _ => false,
    }
}
