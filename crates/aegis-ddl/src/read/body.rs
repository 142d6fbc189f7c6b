//! Bodies of functions and DO blocks: their static statements are read, what is dynamic is named.

use squawk_syntax::ast::{self, AstNode as _};
use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{dynamic, inner, statement, tree};
use crate::form::Body;
use crate::statement::Statement;

/// So many times one row is still few.
const FEW_ROWS: u64 = 1_000;

/// Of DO.
pub(super) fn of_do(node: &SyntaxNode) -> Body {
    match ast::Do::cast(node.clone()).and_then(|block| block.plpgsql()) {
        Some(body) => plpgsql(&body),
        None => unread("unknown", "a DO block in another language than plpgsql"),
    }
}

/// Of CREATE FUNCTION and CREATE PROCEDURE.
pub(super) fn of_function(node: &SyntaxNode) -> Body {
    let mut body = of_text(node);
    body.statements.extend(set_while_it_runs(node));
    body
}

/// What the function sets for as long as it runs and that its writes meet.
fn set_while_it_runs(node: &SyntaxNode) -> Vec<Statement> {
    node.descendants()
        .filter(|clause| clause.kind() == K::SET_CONFIG_PARAM)
        .map(|clause| tree::text(&clause))
        .filter(|text| {
            text.to_ascii_lowercase()
                .contains("session_replication_role")
        })
        .filter_map(|text| inner(&text).ok())
        .flatten()
        .collect()
}

fn of_text(node: &SyntaxNode) -> Body {
    if let Some(atomic) = tree::child(node, K::ATOMIC_BODY) {
        let statements = atomic
            .children()
            .filter_map(|child| statement(&child, &node.text().to_string()))
            .collect();
        return Body {
            language: "sql".to_owned(),
            statements,
            ..Body::default()
        };
    }
    let plpgsql_body = ast::CreateFunction::cast(node.clone())
        .and_then(|function| function.plpgsql())
        .or_else(|| ast::CreateProcedure::cast(node.clone()).and_then(|one| one.plpgsql()));
    if let Some(body) = plpgsql_body {
        return plpgsql(&body);
    }
    let sql_body = ast::CreateFunction::cast(node.clone())
        .and_then(|function| function.sql_body())
        .or_else(|| ast::CreateProcedure::cast(node.clone()).and_then(|one| one.sql_body()));
    if let Some(body) = sql_body {
        return match inner(body.text()) {
            Ok(statements) => Body {
                language: "sql".to_owned(),
                statements,
                ..Body::default()
            },
            Err(error) => unread("sql", &format!("a body that is not SQL: {}", error.message)),
        };
    }
    let language = tree::below(node, K::LANGUAGE_REF)
        .map_or_else(|| "unknown".to_owned(), |at| tree::text(&at).to_lowercase());
    unread(&language, &format!("a body in {language}"))
}

fn plpgsql(body: &squawk_syntax::plpgsql::Plpgsql) -> Body {
    let syntax = body.syntax();
    let mut read = Body {
        language: "plpgsql".to_owned(),
        ..Body::default()
    };
    if let Some(error) = body.errors().first() {
        read.unread
            .push(format!("a part that is not PL/pgSQL: {}", error.message()));
    }
    let mut known = dynamic::Known::default();
    for node in syntax.descendants() {
        match node.kind() {
            K::PLPGSQL_COMMIT_STMT => read.commits = true,
            K::PLPGSQL_DYN_EXECUTE_STMT => {
                let (statements, whole) = dynamic::execute(&node, &mut known);
                if whole {
                    repeat(&mut read, &node, statements.len());
                    read.statements.extend(statements);
                } else {
                    read.guessed.extend(statements);
                    let text: String = tree::text(&node).chars().take(60).collect();
                    read.unread.push(format!("dynamic SQL: {text}"));
                }
            }
            K::PLPGSQL_PERFORM_STMT => {
                read.calls.extend(tree::expression(&node).calls);
                // What these set stands in their arguments.
                let text = tree::text(&node);
                if let Some((_, rest)) = text.split_once(char::is_whitespace)
                    && ["set_config", "setval"]
                        .iter()
                        .any(|one| rest.contains(one))
                    && let Ok(statements) = inner(&format!("SELECT {rest}"))
                {
                    read.statements.extend(statements);
                }
            }
            K::PLPGSQL_CALL_STMT => {
                read.unread
                    .push(format!("what {} does", tree::words(&node, 2)));
            }
            K::PLPGSQL_FOR_DYN_STMT
            | K::PLPGSQL_RETURN_QUERY_EXECUTE_STMT
            | K::PLPGSQL_OPEN_EXECUTE => {
                let text: String = tree::text(&node).chars().take(60).collect();
                read.unread.push(format!("dynamic SQL: {text}"));
            }
            K::PLPGSQL_EXEC_SQL_STMT => {
                for child in node.children() {
                    if let Some(statement) = statement(&child, body.text()) {
                        repeat(&mut read, &node, 1);
                        read.statements.push(statement);
                    }
                }
            }
            _ => {}
        }
    }
    read
}

/// Notes that the next statements stand in a loop of unknown length, or in loops of many rounds.
fn repeat(read: &mut Body, node: &SyntaxNode, count: usize) {
    let mut rounds = 1_u64;
    let in_loop = node.ancestors().any(|above| match above.kind() {
        K::PLPGSQL_LOOP_STMT
        | K::PLPGSQL_WHILE_STMT
        | K::PLPGSQL_FOR_QUERY_STMT
        | K::PLPGSQL_FOR_CURSOR_STMT
        | K::PLPGSQL_FOR_DYN_STMT => true,
        K::PLPGSQL_FOR_I_STMT => {
            let range = tree::child(&above, K::PLPGSQL_FOR_RANGE);
            let more = range.and_then(|range| rounds_of(&range));
            rounds = rounds.saturating_mul(more.unwrap_or(u64::MAX));
            rounds > FEW_ROWS
        }
        _ => false,
    });
    if in_loop {
        let next = read.statements.len();
        read.repeated.extend(next..next + count);
    }
}

/// The rounds between two numbers that stand there, at most; computed ones may be any.
fn rounds_of(range: &SyntaxNode) -> Option<u64> {
    let text = tree::text(range).to_ascii_lowercase();
    let text = text.trim().trim_start_matches("reverse").trim_start();
    let (bounds, _step) = text.split_once(" by ").unwrap_or((text, ""));
    let (from, to) = bounds.split_once("..")?;
    let number = |side: &str| side.trim().parse::<i64>().ok();
    Some(number(from)?.abs_diff(number(to)?).saturating_add(1))
}

fn unread(language: &str, what: &str) -> Body {
    Body {
        language: language.to_owned(),
        unread: vec![what.to_owned()],
        ..Body::default()
    }
}
