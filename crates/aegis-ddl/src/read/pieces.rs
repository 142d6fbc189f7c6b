//! Parts of a statement as they stand in its text: what [`crate::fix`] puts together anew. Comments inside a part stay.

use std::ops::Range;

use squawk_syntax::ast::SourceFile;
use squawk_syntax::{SyntaxElement, SyntaxKind as K, SyntaxNode};

use super::{deep, tree};

/// ALTER TABLE.
#[derive(Debug)]
pub(crate) struct AlterText {
    /// `ALTER TABLE IF EXISTS ONLY t`.
    pub(crate) head: String,
    /// Each action.
    pub(crate) actions: Vec<ActionText>,
}

/// One action.
#[derive(Debug)]
pub(crate) struct ActionText {
    /// As it stands.
    pub(crate) text: String,
    /// Of ADD COLUMN: its constraints.
    pub(crate) clauses: Vec<ClauseText>,
    /// Of ADD CONSTRAINT.
    pub(crate) constraint: Option<ConstraintText>,
}

/// A constraint of a column.
#[derive(Debug)]
pub(crate) struct ClauseText {
    /// Which.
    pub(crate) kind: Clause,
    /// Its place in the action.
    pub(crate) at: Range<usize>,
    /// What it says.
    pub(crate) constraint: ConstraintText,
}

/// What a column's constraint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    NotNull,
    Default,
    Check,
    Unique,
    Primary,
    References,
    Other,
}

/// The parts of a constraint.
#[derive(Debug)]
pub(crate) struct ConstraintText {
    /// Its name as it stands, with its quotes.
    pub(crate) name: Option<String>,
    /// Without CONSTRAINT and name.
    pub(crate) body: String,
    /// `(a, b)` of a key.
    pub(crate) keys: Option<String>,
    /// `INCLUDE (c)`.
    pub(crate) include: Option<String>,
    /// The columns in it.
    pub(crate) included: Vec<String>,
    /// NULLS NOT DISTINCT.
    pub(crate) nulls_not_distinct: bool,
    /// WITH (…) or USING INDEX TABLESPACE.
    pub(crate) storage: bool,
    /// `DEFERRABLE INITIALLY DEFERRED`.
    pub(crate) deferrable: String,
    /// Columns that a CHECK names, each once.
    pub(crate) columns: Vec<String>,
    /// What follows DEFAULT.
    pub(crate) expression: Option<String>,
}

/// The parts of an ALTER TABLE; none for any other statement.
pub(crate) fn alter(sql: &str) -> Option<AlterText> {
    deep::within(sql, || of_alter(sql)).ok()?
}

fn of_alter(sql: &str) -> Option<AlterText> {
    let node = first(sql)?;
    if node.kind() != K::ALTER_TABLE {
        return None;
    }
    let actions: Vec<SyntaxNode> = node
        .children()
        .filter(|child| {
            !matches!(
                child.kind(),
                K::TABLE_RELATION_NAME | K::TABLE_NAME_REF | K::IF_EXISTS
            )
        })
        .collect();
    let start = range(actions.first()?).start;
    Some(AlterText {
        head: sql.get(range(&node).start..start)?.trim_end().to_owned(),
        actions: actions
            .iter()
            .map(|action| of_action(sql, action))
            .collect::<Option<_>>()?,
    })
}

fn of_action(sql: &str, node: &SyntaxNode) -> Option<ActionText> {
    let whole = range(node);
    let clauses = node
        .children()
        .filter(|_| node.kind() == K::ADD_COLUMN)
        .filter_map(|child| {
            let kind = match child.kind() {
                K::NOT_NULL_CONSTRAINT => Clause::NotNull,
                K::DEFAULT_CONSTRAINT => Clause::Default,
                K::CHECK_CONSTRAINT => Clause::Check,
                K::UNIQUE_CONSTRAINT => Clause::Unique,
                K::PRIMARY_KEY_CONSTRAINT => Clause::Primary,
                K::REFERENCES_CONSTRAINT => Clause::References,
                K::GENERATED_CONSTRAINT => Clause::Other,
                _ => return None,
            };
            let at = range(&child);
            Some(ClauseText {
                kind,
                at: at.start - whole.start..at.end - whole.start,
                constraint: of_constraint(sql, &child)?,
            })
        })
        .collect();
    let constraint = if node.kind() == K::ADD_CONSTRAINT {
        Some(of_constraint(sql, &node.children().next()?)?)
    } else {
        None
    };
    Some(ActionText {
        text: sql.get(whole)?.to_owned(),
        clauses,
        constraint,
    })
}

fn of_constraint(sql: &str, node: &SyntaxNode) -> Option<ConstraintText> {
    let named = tree::child(node, K::CONSTRAINT_NAME_CLAUSE);
    let whole = range(node);
    let start = named.as_ref().map_or(whole.start, |at| range(at).end);
    let part =
        |kind: K| -> Option<String> { Some(sql.get(range(&tree::below(node, kind)?))?.to_owned()) };
    let mut columns: Vec<String> = Vec::new();
    for name in node
        .descendants()
        .filter(|below| below.kind() == K::NAME_REF)
        .filter(|name| {
            // The name of a function is none of a column.
            name.parent().is_none_or(|above| {
                above.kind() != K::CALL_EXPR || above.children().next().as_ref() != Some(name)
            })
        })
    {
        let name = crate::name::identifier(&tree::text(&name));
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    let deferrable: Vec<String> = node
        .children()
        .filter(|child| format!("{:?}", child.kind()).ends_with("_CONSTRAINT_OPTION"))
        .map(|child| tree::text(&child))
        .collect();
    Some(ConstraintText {
        name: named.map(|clause| {
            tree::child(&clause, K::CONSTRAINT_NAME)
                .map_or_else(String::new, |name| tree::text(&name))
        }),
        body: sql.get(start..whole.end)?.trim().to_owned(),
        keys: part(K::CONSTRAINT_COLUMN_REF_LIST),
        include: part(K::CONSTRAINT_INCLUDE_CLAUSE),
        included: tree::below(node, K::CONSTRAINT_INCLUDE_CLAUSE)
            .map(|clause| listed(&clause, K::COLUMN_REF_LIST))
            .unwrap_or_default(),
        nulls_not_distinct: tree::below(node, K::NULLS_NOT_DISTINCT).is_some(),
        storage: tree::below(node, K::WITH_PARAMS).is_some()
            || tree::below(node, K::CONSTRAINT_INDEX_TABLESPACE).is_some(),
        deferrable: deferrable.join(" "),
        columns,
        expression: (node.kind() == K::DEFAULT_CONSTRAINT)
            .then(|| {
                node.children()
                    .find(|child| child.kind() != K::CONSTRAINT_NAME_CLAUSE)
                    .and_then(|inside| sql.get(range(&inside)).map(str::to_owned))
            })
            .flatten(),
    })
}

/// A constraint or a sequence of a table, as far as its name goes.
#[derive(Debug)]
pub(crate) struct MadeName {
    /// As the author gave it, without its quotes.
    pub(crate) name: Option<String>,
    /// The columns of which the server makes a name, those of INCLUDE too.
    pub(crate) columns: Vec<String>,
    /// The word behind them: `check`, `fkey`, `key`, `pkey`, `excl`, `not_null`, `seq`.
    pub(crate) word: &'static str,
}

/// What a CREATE TABLE or an ALTER TABLE makes that has a name, in the order of the text.
pub(crate) fn made_names(sql: &str) -> Vec<MadeName> {
    deep::within(sql, || first(sql).map(|node| of_names(sql, &node)))
        .ok()
        .flatten()
        .unwrap_or_default()
}

fn of_names(sql: &str, statement: &SyntaxNode) -> Vec<MadeName> {
    let mut made = Vec::new();
    for node in statement.descendants() {
        let word = match node.kind() {
            K::CHECK_CONSTRAINT => "check",
            K::FOREIGN_KEY_CONSTRAINT | K::REFERENCES_CONSTRAINT => "fkey",
            K::UNIQUE_CONSTRAINT => "key",
            K::PRIMARY_KEY_CONSTRAINT => "pkey",
            K::EXCLUDE_CONSTRAINT => "excl",
            K::NOT_NULL_CONSTRAINT => "not_null",
            K::GENERATED_CONSTRAINT => "seq",
            K::COLUMN | K::ADD_COLUMN => {
                let column = tree::one(&node, K::COLUMN_NAME);
                let is_serial = node
                    .children()
                    .find(|child| tree::is_type(child.kind()))
                    .is_some_and(|found| {
                        tree::text(&found).to_ascii_lowercase().contains("serial")
                    });
                if is_serial && !column.is_empty() {
                    made.push(MadeName {
                        name: None,
                        columns: vec![column],
                        word: "seq",
                    });
                }
                continue;
            }
            _ => continue,
        };
        let Some(parts) = of_constraint(sql, &node) else {
            continue;
        };
        let name = parts.name.as_deref().map(crate::name::identifier);
        let is_sure = match word {
            "not_null" | "excl" => name.is_some(),
            "seq" => parts.body.to_ascii_lowercase().contains("identity"),
            _ => name.is_some() || tree::child(&node, K::USING_INDEX_NAME).is_none(),
        };
        if !is_sure {
            continue;
        }
        let own = node
            .ancestors()
            .find(|above| matches!(above.kind(), K::COLUMN | K::ADD_COLUMN))
            .map(|column| tree::one(&column, K::COLUMN_NAME));
        let columns = match (word, own) {
            ("check", _) if parts.columns.len() == 1 => parts.columns,
            ("check" | "pkey", _) => Vec::new(),
            (_, Some(own)) => vec![own],
            ("fkey", None) => listed(&node, K::FOREIGN_KEY_COLUMN_LIST),
            (_, None) => {
                let mut columns = listed(&node, K::CONSTRAINT_COLUMN_REF_LIST);
                columns.extend(parts.included);
                columns
            }
        };
        made.push(MadeName {
            name,
            columns,
            word,
        });
    }
    made
}

/// The columns of the first such list.
fn listed(node: &SyntaxNode, kind: K) -> Vec<String> {
    tree::below(node, kind)
        .into_iter()
        .flat_map(|list| list.children().collect::<Vec<_>>())
        .filter(|one| one.kind() != K::WITHOUT_OVERLAPS)
        .map(|one| crate::name::identifier(&tree::text(&one)))
        .collect()
}

/// Whether a query in FROM has no name.
pub(crate) fn has_unnamed_query(sql: &str) -> bool {
    deep::within(sql, || {
        SourceFile::parse(sql)
            .syntax_node()
            .descendants()
            .filter(|node| node.kind() == K::PAREN_FROM_ITEM)
            .any(|item| {
                tree::child(&item, K::FROM_ALIAS).is_none()
                    && item.children().any(|inside| {
                        matches!(inside.kind(), K::PAREN_SELECT | K::SELECT | K::VALUES)
                    })
            })
    })
    .unwrap_or(false)
}

/// Where the word INDEX of a CREATE or DROP ends, and where IF NOT EXISTS stands.
pub(crate) fn index_word(sql: &str) -> Option<(usize, Option<Range<usize>>)> {
    deep::within(sql, || of_index(sql)).ok()?
}

fn of_index(sql: &str) -> Option<(usize, Option<Range<usize>>)> {
    let node = first(sql)?;
    let end = node.children_with_tokens().find_map(|one| match one {
        SyntaxElement::Token(token) if token.kind() == K::INDEX_KW => {
            Some(usize::from(token.text_range().end()))
        }
        _ => None,
    })?;
    Some((
        end,
        tree::child(&node, K::IF_NOT_EXISTS).map(|at| range(&at)),
    ))
}

/// Where the word after REINDEX and its options ends.
pub(crate) fn reindex_word(sql: &str) -> Option<usize> {
    deep::within(sql, || of_reindex(sql)).ok()?
}

fn of_reindex(sql: &str) -> Option<usize> {
    let node = first(sql)?;
    node.descendants_with_tokens().find_map(|one| match one {
        SyntaxElement::Token(token)
            if matches!(
                token.kind(),
                K::INDEX_KW | K::TABLE_KW | K::SCHEMA_KW | K::DATABASE_KW
            ) =>
        {
            Some(usize::from(token.text_range().end()))
        }
        _ => None,
    })
}

/// The two values of `FOR VALUES FROM (a) TO (b)` as they stand; none where there are several.
pub(crate) fn range_bound(sql: &str) -> Option<(String, String)> {
    deep::within(sql, || of_range(sql)).ok()?
}

fn of_range(sql: &str) -> Option<(String, String)> {
    let node = first(sql)?;
    let one = |kind: K| {
        let mut values = tree::below(&node, kind)?.children();
        let value = values.next().map(|value| tree::text(&value));
        value.filter(|_| values.next().is_none())
    };
    Some((one(K::PARTITION_FROM_VALUES)?, one(K::PARTITION_TO_VALUES)?))
}

fn first(sql: &str) -> Option<SyntaxNode> {
    let parsed = SourceFile::parse(sql);
    if !parsed.errors().is_empty() {
        return None;
    }
    parsed.syntax_node().children().next()
}

fn range(node: &SyntaxNode) -> Range<usize> {
    let at = node.text_range();
    usize::from(at.start())..usize::from(at.end())
}

/// In upper case, with one space between words and brackets, strings left empty.
pub(crate) fn outside_of_strings(plain: &str) -> String {
    let mut text = String::from(" ");
    let mut rest = plain;
    while let Some(first) = rest.chars().next() {
        if first == '\'' || first == '"' {
            let after = &rest[1..];
            let end = after.find(first).map_or(after.len(), |at| at + 1);
            text.push_str("''");
            rest = &after[end..];
            continue;
        }
        if first == '$'
            && let Some(close) = rest[1..].find('$')
            && rest[1..=close]
                .chars()
                .all(|one| one.is_alphanumeric() || one == '_')
        {
            let tag = &rest[..close + 2];
            let after = &rest[tag.len()..];
            let end = after.find(tag).map_or(after.len(), |at| at + tag.len());
            rest = &after[end..];
            continue;
        }
        let is_bracket = matches!(first, '(' | ')' | ',' | '.');
        if first.is_whitespace() || is_bracket {
            if !text.ends_with(' ') {
                text.push(' ');
            }
            if is_bracket {
                text.push(first);
                text.push(' ');
            }
        } else {
            text.extend(first.to_uppercase());
        }
        rest = &rest[first.len_utf8()..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::outside_of_strings;

    #[test]
    fn strings_names_in_quotes_and_bodies_say_nothing() {
        assert_eq!(
            outside_of_strings(
                "select f('NOT ENFORCED', \"not enforced\") , $x$ not enforced $x$ not enforced"
            ),
            " SELECT F ( '' , '' ) , NOT ENFORCED"
        );
    }
}
