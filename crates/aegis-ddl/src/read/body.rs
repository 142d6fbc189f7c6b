//! Bodies of functions and DO blocks: their static statements are read, what is dynamic is named.

use squawk_syntax::ast::{self, AstNode as _};
use squawk_syntax::{SyntaxKind as K, SyntaxNode};

use super::{inner, statement, tree};
use crate::form::Body;

/// Of DO.
pub(super) fn of_do(node: &SyntaxNode) -> Body {
    match ast::Do::cast(node.clone()).and_then(|block| block.plpgsql()) {
        Some(body) => plpgsql(&body),
        None => unread("unknown", "a DO block in another language than plpgsql"),
    }
}

/// Of CREATE FUNCTION and CREATE PROCEDURE.
pub(super) fn of_function(node: &SyntaxNode) -> Body {
    if let Some(atomic) = tree::child(node, K::ATOMIC_BODY) {
        let statements = atomic
            .children()
            .filter_map(|child| statement(&child, &node.text().to_string()))
            .collect();
        return Body {
            language: "sql".to_owned(),
            statements,
            unread: Vec::new(),
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
                unread: Vec::new(),
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
        statements: Vec::new(),
        unread: Vec::new(),
    };
    if let Some(error) = body.errors().first() {
        read.unread
            .push(format!("a part that is not PL/pgSQL: {}", error.message()));
    }
    for node in syntax.descendants() {
        match node.kind() {
            K::PLPGSQL_DYN_EXECUTE_STMT
            | K::PLPGSQL_FOR_DYN_STMT
            | K::PLPGSQL_RETURN_QUERY_EXECUTE_STMT => {
                let text: String = tree::text(&node).chars().take(60).collect();
                read.unread.push(format!("dynamic SQL: {text}"));
            }
            K::PLPGSQL_EXEC_SQL_STMT => {
                for child in node.children() {
                    if let Some(statement) = statement(&child, body.text()) {
                        read.statements.push(statement);
                    }
                }
            }
            _ => {}
        }
    }
    read
}

fn unread(language: &str, what: &str) -> Body {
    Body {
        language: language.to_owned(),
        statements: Vec::new(),
        unread: vec![what.to_owned()],
    }
}
