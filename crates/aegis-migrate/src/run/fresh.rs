//! A fresh database: nobody waits there, so a build runs in a transaction like everything else.

use aegis_ddl::{Form, Statement};

/// The same statement without CONCURRENTLY, at the same place of its file. None: it has no such form.
pub(super) fn in_a_transaction(statement: &Statement) -> Option<Statement> {
    let takes_the_word = match &statement.form {
        Form::CreateIndex(index) => index.concurrently,
        Form::DropIndex { concurrently, .. } | Form::Reindex { concurrently, .. } => *concurrently,
        Form::AlterTable { .. } => !statement.transactional(),
        _ => false,
    };
    if !takes_the_word {
        return None;
    }
    let text = without_the_word(&statement.text)?;
    let mut script = aegis_ddl::read(&text).ok()?;
    let mut other = script.statements.pop().filter(Statement::transactional)?;
    other.line = statement.line;
    other.span = statement.span.clone();
    Some(other)
}

/// Cuts the first CONCURRENTLY out that is no part of a name, a string or a comment. Unquoted it can be no relation's name, so the
/// first one is the keyword.
fn without_the_word(text: &str) -> Option<String> {
    const WORD: &str = "concurrently";
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let first = rest.chars().next()?;
        at += if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if first == '"' || first == '\'' {
            rest[1..].find(first).map_or(rest.len(), |end| end + 2)
        } else if first.is_alphabetic() || first == '_' {
            let end = rest
                .find(|one: char| !(one.is_alphanumeric() || one == '_' || one == '$'))
                .unwrap_or(rest.len());
            if rest[..end].eq_ignore_ascii_case(WORD) {
                return Some(format!("{}{}", &text[..at], &rest[end..]));
            }
            end
        } else {
            first.len_utf8()
        };
    }
    None
}

/// How long a comment is; comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0_usize);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::in_a_transaction;

    #[test]
    fn the_keyword_goes_and_a_name_a_string_or_a_comment_with_it_stays() {
        for (from, to) in [
            (
                "CREATE /* concurrently */ UNIQUE INDEX Concurrently \"concurrently\" ON t (a) WHERE b = 'concurrently'",
                "CREATE /* concurrently */ UNIQUE INDEX  \"concurrently\" ON t (a) WHERE b = 'concurrently'",
            ),
            (
                "DROP INDEX -- concurrently\n CONCURRENTLY i",
                "DROP INDEX -- concurrently\n  i",
            ),
            (
                "ALTER TABLE p DETACH PARTITION \"a \"\"concurrently\" CONCURRENTLY",
                "ALTER TABLE p DETACH PARTITION \"a \"\"concurrently\" ",
            ),
            ("REINDEX TABLE CONCURRENTLY t", "REINDEX TABLE  t"),
        ] {
            let script = aegis_ddl::read(from).unwrap();
            let made = in_a_transaction(&script.statements[0]).unwrap();
            assert_eq!(made.text.trim(), to.trim());
            assert!(made.transactional(), "{to}");
        }
    }

    #[test]
    fn what_has_no_other_form_stays() {
        for text in [
            "VACUUM t",
            "CREATE INDEX i ON t (a)",
            "ALTER TABLE t ADD a int",
        ] {
            let script = aegis_ddl::read(text).unwrap();
            assert_eq!(in_a_transaction(&script.statements[0]), None, "{text}");
        }
    }
}
