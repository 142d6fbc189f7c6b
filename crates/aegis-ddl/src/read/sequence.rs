//! What CREATE SEQUENCE, ALTER SEQUENCE and the clauses of an identity say. Options are read from their own clauses: a name may be a
//! word of the language too.

use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::tree;
use crate::name::QualifiedName;
use crate::statement::SequenceOptions;

/// Of another statement: none.
pub(super) fn options(node: &SyntaxNode) -> SequenceOptions {
    if !matches!(node.kind(), K::CREATE_SEQUENCE | K::ALTER_SEQUENCE) {
        return SequenceOptions::default();
    }
    SequenceOptions {
        owned_by: tree::below(node, K::OPTION_OWNED_BY).and_then(|option| owner(&option)),
        restarts: starts_again(node),
    }
}

/// The table of `OWNED BY table.column`.
fn owner(option: &SyntaxNode) -> Option<QualifiedName> {
    if tree::has(option, K::OWNED_BY_NONE) {
        return None;
    }
    let text = tree::text(option);
    let column = text.splitn(3, ' ').nth(2)?;
    Some(QualifiedName::read_table_of(column))
}

/// RESTART without a number, or with the one that a sequence begins with.
pub(super) fn starts_again(node: &SyntaxNode) -> bool {
    let restarts = |clause: &SyntaxNode| {
        let text = tree::text(clause);
        let number = text.split_whitespace().next_back().unwrap_or_default();
        number.parse::<i64>().map_or(true, |one| one == 1)
    };
    node.descendants()
        .filter(|clause| matches!(clause.kind(), K::RESTART | K::OPTION_RESTART))
        .last()
        .is_some_and(|clause| restarts(&clause))
}
