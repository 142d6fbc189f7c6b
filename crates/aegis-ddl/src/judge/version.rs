//! Forms that servers accept from some major on. Of those before it they are errors.
//!
//! The words are looked for outside of strings and bodies; bodies are judged statement by statement.

use super::Found;
use super::world::World;
use crate::class::Class;
use crate::form::{Action, Form, Generated};
use crate::report::Level;
use crate::statement::Statement;

/// Words that stand together, and the major with which they begin (release notes of 15 to 18).
const WORDS: &[(&str, u32)] = &[
    ("NULLS NOT DISTINCT", 15),
    ("SECURITY_INVOKER", 15),
    ("DELETE SET NULL (", 15),
    ("DELETE SET DEFAULT (", 15),
    ("TABLES IN SCHEMA", 15),
    ("NOT MATCHED BY SOURCE", 17),
    ("SET EXPRESSION", 17),
    ("JSON_TABLE", 17),
    ("NOT ENFORCED", 18),
    ("WITHOUT OVERLAPS", 18),
];

/// Functions of the server's own that began after 14. One of somebody's own may have the name.
const FUNCTIONS: &[(&str, u32)] = &[
    ("regexp_like", 15),
    ("regexp_count", 15),
    ("regexp_substr", 15),
    ("regexp_instr", 15),
    ("any_value", 16),
    ("array_shuffle", 16),
    ("array_sample", 16),
    ("random_normal", 16),
    ("date_add", 16),
    ("to_bin", 17),
    ("to_oct", 17),
    ("uuid_extract_timestamp", 17),
    ("uuidv7", 18),
    ("uuidv4", 18),
    ("array_reverse", 18),
    ("array_sort", 18),
    ("casefold", 18),
    ("crc32", 18),
];

pub(super) fn judge(world: &World<'_>, statement: &Statement, found: &mut Found) {
    if world.server >= WORDS.iter().map(|(_, since)| *since).max().unwrap_or(0) {
        return;
    }
    let mut begins = |what: &str, since: u32| {
        if world.server < since {
            found.push(
                "unknown-statement",
                Class::E,
                Level::Error,
                format!(
                    "{what} begins with {since}, and the server is {}",
                    world.server
                ),
            );
        }
    };
    let text = outside_of_strings(&statement.plain);
    // Of ADD CONSTRAINT the parts are known, and told there.
    let constraint = matches!(&statement.form, Form::AlterTable { actions, .. }
        if actions.iter().any(|action| matches!(action, Action::AddConstraint { constraint }
            if constraint.not_enforced || constraint.nulls_not_distinct)));
    for (words, since) in WORDS {
        if text.contains(words) && !constraint {
            begins(words.trim_end_matches(" ("), *since);
        }
    }
    if matches!(statement.form, Form::Merge) {
        begins("MERGE", 15);
    }
    if let Form::CreateTable(table) = &statement.form
        && table
            .columns
            .iter()
            .any(|column| column.generated == Some(Generated::Virtual))
    {
        begins("a virtual generated column", 18);
    }
    for (name, since) in FUNCTIONS {
        let called = text.contains(&format!(" {} (", name.to_ascii_uppercase()));
        if called && world.server < *since {
            found.push_unless(
                "unknown-statement",
                Class::E,
                Level::Warning,
                format!(
                    "{name}() begins with {since}, and the server is {}",
                    world.server
                ),
                "a function of one's own has this name",
            );
        }
    }
}

/// In upper case, with one space between words and brackets, strings left empty.
fn outside_of_strings(plain: &str) -> String {
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
