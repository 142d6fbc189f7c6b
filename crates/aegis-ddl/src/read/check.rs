//! What a CHECK says of single columns, and the bound of a partition: as much as is needed to see whether the one proves the other.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{rows, tree};
use crate::form::{Bound, Term};

/// The conditions of a CHECK that all hold. What is not a column compared with literals is left out: the others still hold.
pub(super) fn terms(check: &SyntaxNode) -> Vec<Term> {
    let mut terms = Vec::new();
    if let Some(condition) = check
        .children()
        .find(|child| child.kind() != K::CONSTRAINT_NAME_CLAUSE)
    {
        collect(&condition, &mut terms);
    }
    terms
}

fn collect(node: &SyntaxNode, terms: &mut Vec<Term>) {
    match node.kind() {
        K::PAREN_EXPR => {
            if let Some(inside) = node.children().next() {
                collect(&inside, terms);
            }
        }
        K::BETWEEN_EXPR => {
            let parts: Vec<SyntaxNode> = node.children().collect();
            if let [of, from, to] = parts.as_slice()
                && of.kind() == K::NAME_REF
            {
                for (operator, side) in [(">=", from), ("<=", to)] {
                    if rows::is_literal(side) {
                        terms.push(term(of, operator, vec![value(side)]));
                    }
                }
            }
        }
        K::BIN_EXPR => comparison(node, terms),
        K::PREFIX_EXPR if tree::has_token(node, K::NOT_KW) => {
            let mut inside = Vec::new();
            if let Some(of) = node.children().last() {
                collect(&of, &mut inside);
            }
            // NOT (column >= a AND column < b).
            if let [from, to] = inside.as_slice()
                && from.column == to.column
                && from.operator == ">="
                && to.operator == "<"
            {
                terms.push(Term {
                    column: from.column.clone(),
                    operator: "outside".to_owned(),
                    values: vec![from.values[0].clone(), to.values[0].clone()],
                });
            }
        }
        _ => {}
    }
}

fn comparison(node: &SyntaxNode, terms: &mut Vec<Term>) {
    let Some((left, operator, right)) = tree::sides(node) else {
        return;
    };
    let (left, right) = (&left, &right);
    if operator == "and" {
        collect(left, terms);
        collect(right, terms);
        return;
    }
    if left.kind() != K::NAME_REF {
        return;
    }
    match operator.as_str() {
        "is not" if tree::text(right).eq_ignore_ascii_case("null") => {
            terms.push(term(left, "is not null", Vec::new()));
        }
        "=" | ">" | ">=" | "<" | "<=" if rows::is_literal(right) => {
            terms.push(term(left, &operator, vec![value(right)]));
        }
        "in" if right.children().all(|one| rows::is_literal(&one)) => {
            terms.push(term(
                left,
                "in",
                right.children().map(|one| value(&one)).collect(),
            ));
        }
        // As the server prints IN.
        "=" => {
            if let Some(array) = tree::below(right, K::ARRAY_EXPR)
                && array.children().all(|one| rows::is_literal(&one))
            {
                terms.push(term(
                    left,
                    "in",
                    array.children().map(|one| value(&one)).collect(),
                ));
            }
        }
        _ => {}
    }
}

fn term(column: &SyntaxNode, operator: &str, values: Vec<String>) -> Term {
    Term {
        column: crate::name::identifier(&tree::text(column)),
        operator: operator.to_owned(),
        values,
    }
}

/// A literal without quotes, casts and parentheses.
fn value(node: &SyntaxNode) -> String {
    let literal =
        tree::below(node, K::LITERAL).map_or_else(|| tree::text(node), |at| tree::text(&at));
    let sign = if node.kind() == K::PREFIX_EXPR && tree::text(node).starts_with('-') {
        "-"
    } else {
        ""
    };
    let plain = literal
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .map_or_else(|| literal.to_ascii_lowercase(), str::to_owned);
    format!("{sign}{plain}")
}

/// FOR VALUES …, DEFAULT.
pub(super) fn bound(node: &SyntaxNode) -> Option<Bound> {
    let values =
        |of: &SyntaxNode| -> Vec<String> { of.children().map(|child| value(&child)).collect() };
    for child in node.children() {
        match child.kind() {
            K::PARTITION_DEFAULT => return Some(Bound::Default),
            K::PARTITION_FOR_VALUES_WITH => return Some(Bound::Hash),
            K::PARTITION_FOR_VALUES_IN => {
                return Some(Bound::List {
                    values: values(&child),
                });
            }
            K::PARTITION_FOR_VALUES_FROM => {
                return Some(Bound::Range {
                    from: tree::child(&child, K::PARTITION_FROM_VALUES)
                        .map_or_else(Vec::new, |of| values(&of)),
                    to: tree::child(&child, K::PARTITION_TO_VALUES)
                        .map_or_else(Vec::new, |of| values(&of)),
                });
            }
            _ => {}
        }
    }
    None
}
