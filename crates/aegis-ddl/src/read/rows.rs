//! How many rows an INSERT, UPDATE or DELETE is about, as far as its text says.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::tree;
use crate::form::{RowScope, Source};

/// Of an INSERT.
pub(super) fn source(node: &SyntaxNode) -> Source {
    if tree::has(node, K::DEFAULT_VALUES) {
        return Source::Defaults;
    }
    if let Some(values) = tree::child(node, K::VALUES) {
        // A subquery in a value gives one value: the rows are those that stand there.
        let rows = tree::child(&values, K::ROW_LIST).map_or(0, |list| {
            list.children().filter(|row| row.kind() == K::ROW).count()
        });
        return Source::Rows(rows);
    }
    match tree::child(node, K::SELECT) {
        Some(select) if is_one_row(&select) => Source::Rows(1),
        _ => Source::Query,
    }
}

/// `SELECT 1, 'a' WHERE NOT EXISTS (…)`: no FROM, and no function in its list that may give many rows.
fn is_one_row(select: &SyntaxNode) -> bool {
    const ONE_VALUE: &[&str] = &[
        "now",
        "lower",
        "upper",
        "coalesce",
        "gen_random_uuid",
        "uuid_generate_v4",
        "nextval",
        "setval",
        "md5",
    ];
    !tree::has(select, K::FROM_CLAUSE)
        && select
            .children()
            .filter(|part| part.kind() != K::WHERE_CLAUSE)
            .flat_map(|part| part.descendants().collect::<Vec<_>>())
            .filter(|inside| inside.kind() == K::CALL_EXPR)
            .all(|call| {
                call.children().next().is_some_and(|name| {
                    ONE_VALUE.contains(&tree::text(&name).to_lowercase().as_str())
                })
            })
}

/// Of an UPDATE or DELETE: keyed means that columns are compared with literals.
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
        .map_or(RowScope::Condition, |(rows, columns)| RowScope::Keyed {
            rows,
            columns,
        })
}

/// `column = literal`, `column IN (literals)`, and these with AND and OR: how many combinations, of which columns.
fn keyed(node: &SyntaxNode) -> Option<(usize, Vec<String>)> {
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
                "=" if is_column(&left) && is_literal(&right) => Some((1, vec![column(&left)])),
                "in" if is_column(&left) && right.children().all(|one| is_literal(&one)) => {
                    Some((right.children().count(), vec![column(&left)]))
                }
                "and" => match (keyed(&left), keyed(&right)) {
                    (Some((one, mut columns)), Some((other, more))) => {
                        columns.extend(more);
                        Some((one.saturating_mul(other), columns))
                    }
                    (one, other) => one.or(other),
                },
                "or" => {
                    let ((one, columns), (other, more)) = (keyed(&left)?, keyed(&right)?);
                    let both = columns.into_iter().filter(|name| more.contains(name));
                    Some((one + other, both.collect()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// `t.id` is `id`.
fn column(node: &SyntaxNode) -> String {
    crate::name::identifier(&tree::text(node))
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
