//! Walking the parser's tree by kinds.

use squawk_syntax::{SyntaxElement, SyntaxKind, SyntaxNode};

use crate::form::{Expression, TypeName};
use crate::name::{QualifiedName, identifier};

/// The first child of this kind.
pub(super) fn child(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxNode> {
    node.children().find(|child| child.kind() == kind)
}

/// Whether there is a child of this kind.
pub(super) fn has(node: &SyntaxNode, kind: SyntaxKind) -> bool {
    child(node, kind).is_some()
}

/// The first node of this kind below.
pub(super) fn below(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxNode> {
    node.descendants().find(|other| other.kind() == kind)
}

/// Whether the node itself has this token.
pub(super) fn has_token(node: &SyntaxNode, kind: SyntaxKind) -> bool {
    node.children_with_tokens()
        .any(|element| matches!(element, SyntaxElement::Token(token) if token.kind() == kind))
}

/// Its text without comments, whitespace as one space.
pub(super) fn text(node: &SyntaxNode) -> String {
    let mut text = String::new();
    let mut gap = false;
    for element in node.descendants_with_tokens() {
        let SyntaxElement::Token(token) = element else {
            continue;
        };
        if matches!(token.kind(), SyntaxKind::WHITESPACE | SyntaxKind::COMMENT) {
            gap = !text.is_empty();
            continue;
        }
        if gap {
            text.push(' ');
            gap = false;
        }
        text.push_str(token.text());
    }
    text
}

/// The text behind the first child of this kind.
pub(super) fn text_after(node: &SyntaxNode, kind: SyntaxKind) -> String {
    let mut parts = Vec::new();
    let mut next = child(node, kind).and_then(|child| child.next_sibling_or_token());
    while let Some(element) = next {
        match &element {
            SyntaxElement::Node(inside) => parts.push(text(inside)),
            SyntaxElement::Token(token)
                if !matches!(token.kind(), SyntaxKind::WHITESPACE | SyntaxKind::COMMENT) =>
            {
                parts.push(token.text().to_owned());
            }
            SyntaxElement::Token(_) => {}
        }
        next = element.next_sibling_or_token();
    }
    parts.join(" ")
}

/// A comparison's sides, and what stands between in lower case. Only its own tokens are looked at: a chain of thousands is read level
/// by level, and each level must not read all below it.
pub(super) fn sides(node: &SyntaxNode) -> Option<(SyntaxNode, String, SyntaxNode)> {
    if node.kind() != SyntaxKind::BIN_EXPR {
        return None;
    }
    let (left, right) = (node.first_child()?, node.last_child()?);
    let mut middle = String::new();
    let mut between = left.next_sibling_or_token();
    while let Some(element) = between {
        match &element {
            SyntaxElement::Node(side) if *side == right => break,
            // Operators are nodes in some forms and tokens in others.
            SyntaxElement::Node(operator) => middle.push_str(&text(operator)),
            SyntaxElement::Token(token)
                if matches!(token.kind(), SyntaxKind::WHITESPACE | SyntaxKind::COMMENT) =>
            {
                middle.push(' ');
            }
            SyntaxElement::Token(token) => middle.push_str(token.text()),
        }
        between = element.next_sibling_or_token();
    }
    let words: Vec<&str> = middle.split_whitespace().collect();
    (left != right).then(|| (left, words.join(" ").to_ascii_lowercase(), right))
}

/// The words of a statement's beginning, in upper case.
pub(super) fn words(node: &SyntaxNode, count: usize) -> String {
    text(node)
        .split_whitespace()
        .take(count)
        .collect::<Vec<_>>()
        .join(" ")
        .trim_end_matches(';')
        .to_ascii_uppercase()
}

/// The first path below, as a name. `skip` leaves out what lies in nodes of that kind.
pub(super) fn name(node: &SyntaxNode) -> QualifiedName {
    let path = node
        .descendants()
        .find(|other| matches!(other.kind(), SyntaxKind::PATH | SyntaxKind::PATH_REF));
    QualifiedName::read(&text(path.as_ref().unwrap_or(node)))
}

/// Names of all children of these kinds.
pub(super) fn names(node: &SyntaxNode, kinds: &[SyntaxKind]) -> Vec<QualifiedName> {
    node.children()
        .filter(|child| kinds.contains(&child.kind()))
        .map(|child| name(&child))
        .collect()
}

/// The identifier of the first child of this kind.
pub(super) fn one(node: &SyntaxNode, kind: SyntaxKind) -> String {
    child(node, kind).map_or_else(String::new, |found| identifier(&text(&found)))
}

/// What an expression calls. Operators and casts that hide a function are not seen: they are immutable or stable in the core.
pub(super) fn expression(node: &SyntaxNode) -> Expression {
    let mut calls = Vec::new();
    for call in node
        .descendants()
        .filter(|other| other.kind() == SyntaxKind::CALL_EXPR)
    {
        // EXTRACT, COALESCE and the like are words of the language, none of them volatile.
        if let Some(callee) = call
            .children()
            .next()
            .filter(|callee| !format!("{:?}", callee.kind()).ends_with("_FN"))
        {
            calls.push(QualifiedName::read(&text(&callee)));
        }
    }
    // CURRENT_TIMESTAMP and its like are stable, as now() is.
    let text = text(node);
    Expression {
        is_null: text.eq_ignore_ascii_case("null"),
        text,
        calls,
    }
}

/// Whether a node is a type.
pub(super) fn is_type(kind: SyntaxKind) -> bool {
    format!("{kind:?}").ends_with("_TYPE") && kind != SyntaxKind::SET_TYPE
}

/// A type, its aliases resolved.
pub(super) fn type_name(node: &SyntaxNode) -> TypeName {
    let shown = text(node).to_ascii_lowercase();
    let array =
        node.kind() == SyntaxKind::ARRAY_TYPE || shown.contains('[') || shown.ends_with(" array");
    let modifiers = shown
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .map(|(inside, _)| {
            inside
                .split(',')
                .filter_map(|part| part.trim().parse().ok())
                .collect()
        })
        .unwrap_or_default();
    let mut plain = String::new();
    let mut depth = 0_u32;
    for character in shown.chars() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let base = match plain.trim_end_matches(" array") {
        "int" | "int4" => "integer",
        "int8" => "bigint",
        "int2" => "smallint",
        "float8" | "float" => "double precision",
        "float4" => "real",
        "bool" => "boolean",
        "decimal" | "dec" => "numeric",
        "varchar" | "char varying" | "character varying" => "character varying",
        "char" | "character" | "bpchar" => "character",
        "timestamptz" | "timestamp with time zone" => "timestamp with time zone",
        "timestamp" | "timestamp without time zone" => "timestamp without time zone",
        "timetz" | "time with time zone" => "time with time zone",
        "time" | "time without time zone" => "time without time zone",
        "varbit" | "bit varying" => "bit varying",
        other => other,
    };
    // What has a dot or quotes is somebody's own.
    let base = if base.contains(['.', '"']) {
        QualifiedName::read(
            &text(node)
                .split('(')
                .next()
                .unwrap_or_default()
                .replace("[]", ""),
        )
    } else {
        QualifiedName {
            schema: None,
            name: base.to_owned(),
        }
    };
    TypeName {
        text: shown,
        base,
        modifiers,
        array,
    }
}
