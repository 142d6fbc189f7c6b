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
    (" ON PARAMETER ", 15),
    (" SET STORAGE DEFAULT", 16),
    (" NOT NULL NO INHERIT", 18),
    (" RETURNING WITH (", 18),
];

/// Words behind the first words of a statement, and the major with which they begin there.
const WORDS_OF: &[(&str, &str, u32)] = &[
    ("CREATE STATISTICS", "CREATE STATISTICS ON ", 16),
    ("CREATE STATISTICS", "CREATE STATISTICS ( ", 16),
    ("CREATE COLLATION", " RULES = ", 16),
    ("CREATE COLLATION", " PROVIDER = BUILTIN ", 17),
    ("CREATE EVENT TRIGGER", " ON LOGIN ", 17),
    ("CREATE TABLE", ", NOT NULL ", 18),
    ("VACUUM", " ONLY ", 18),
    ("ANALYZE", " ONLY ", 18),
    ("VACUUM", " ONLY_DATABASE_STATS ", 16),
    ("VACUUM", " SKIP_DATABASE_STATS ", 16),
    ("VACUUM", " PROCESS_MAIN ", 16),
    ("VACUUM", " BUFFER_USAGE_LIMIT ", 16),
    ("ANALYZE", " BUFFER_USAGE_LIMIT ", 16),
];

/// Functions of the server's own that began after 14. One of somebody's own may have the name.
const FUNCTIONS: &[(&str, u32)] = &[
    ("regexp_like", 15),
    ("regexp_count", 15),
    ("regexp_substr", 15),
    ("regexp_instr", 15),
    ("any_value", 16),
    ("json_array", 16),
    ("json_arrayagg", 16),
    ("json_objectagg", 16),
    ("array_shuffle", 16),
    ("array_sample", 16),
    ("random_normal", 16),
    ("date_add", 16),
    ("json_exists", 17),
    ("json_query", 17),
    ("json_value", 17),
    ("json_scalar", 17),
    ("json_serialize", 17),
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
    let text = crate::read::pieces::outside_of_strings(&statement.plain);
    // Of ADD CONSTRAINT the parts are known, and told there.
    let constraint = matches!(&statement.form, Form::AlterTable { actions, .. }
        if actions.iter().any(|action| matches!(action, Action::AddConstraint { constraint }
            if constraint.not_enforced || constraint.nulls_not_distinct)));
    for (words, since) in WORDS {
        if text.contains(words) && !constraint {
            begins(words.trim_end_matches(" ("), *since);
        }
    }
    let ended = format!("{text} ");
    for (first, words, since) in WORDS_OF {
        if ended.trim_start().starts_with(first) && ended.contains(words) {
            begins(
                &format!("{first} with {}", words.trim_matches([' ', ','])),
                *since,
            );
        }
    }
    for (what, since) in of_tokens(&ended) {
        begins(&what, since);
    }
    if world.server < 16
        && (text.contains(" ( SELECT") || text.contains(" ( VALUES") || text.contains(" ( WITH"))
        && crate::read::pieces::has_unnamed_query(&statement.text)
    {
        begins("a query in FROM without a name", 16);
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
    if world.server < 17 && random_between(&ended) {
        found.push_unless(
            "unknown-statement",
            Class::E,
            Level::Warning,
            format!(
                "random(a, b) begins with 17, and the server is {}",
                world.server
            ),
            "a function of one's own has this name",
        );
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

/// What single words and their neighbours tell.
fn of_tokens(text: &str) -> Vec<(String, u32)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = |place: usize| words.get(place).copied().unwrap_or_default();
    let mut told = Vec::new();
    if matches!(at(0), "GRANT" | "REVOKE") {
        let on = words.iter().position(|word| *word == "ON");
        let rights = on.map_or(0..0, |on| 1..on);
        if words[rights].contains(&"MAINTAIN") {
            told.push(("MAINTAIN".to_owned(), 17));
        }
        let with = words.iter().position(|word| *word == "WITH");
        let options = with
            .filter(|_| on.is_none())
            .map_or(&[][..], |with| &words[with..]);
        let is_new = |pair: &[&str]| {
            matches!(pair[0], "WITH" | ",") && matches!(pair[1], "INHERIT" | "SET")
                || pair[0] == "ADMIN" && matches!(pair[1], "TRUE" | "FALSE")
        };
        if options.windows(2).any(is_new) {
            told.push(("GRANT … WITH INHERIT, SET or ADMIN TRUE".to_owned(), 16));
        }
        if at(0) == "REVOKE"
            && matches!(at(1), "INHERIT" | "SET")
            && at(2) == "OPTION"
            && at(3) == "FOR"
        {
            told.push((format!("REVOKE {} OPTION FOR", at(1)), 16));
        }
    }
    let adds_columns = matches!((at(0), at(1)), ("CREATE" | "ALTER", "TABLE"));
    for (place, word) in words.iter().enumerate() {
        let kind = matches!(
            at(place + 1),
            "PLAIN" | "EXTERNAL" | "EXTENDED" | "MAIN" | "DEFAULT"
        );
        let before = place.checked_sub(1).map_or("", at);
        // The name of a column stands behind a bracket, a comma or COLUMN, and one that is changed behind other words.
        let is_clause = !matches!(
            before,
            "SET" | "(" | "," | "COLUMN" | "ADD" | "EXISTS" | "."
        );
        if adds_columns && *word == "STORAGE" && kind && is_clause {
            told.push(("STORAGE of a column that is made".to_owned(), 16));
        }
        let of_table = matches!(before, "(" | ",") && at(place + 2) == "NOT";
        if adds_columns && *word == "CONSTRAINT" && of_table && at(place + 3) == "NULL" {
            told.push(("NOT NULL as a constraint of a table".to_owned(), 18));
        }
        if is_new_number(word) {
            told.push((format!("the number {}", word.to_ascii_lowercase()), 16));
        }
        let opens = *word == "JSON_OBJECT" && at(place + 1) == "(";
        let is_pair = matches!(at(place + 3), "VALUE" | ":") && at(place + 4) != ":"
            || at(place + 2).ends_with(':') && !at(place + 2).ends_with("::");
        if opens && is_pair {
            told.push(("the constructor JSON_OBJECT".to_owned(), 16));
        }
    }
    told
}

/// `0x1f`, `0o7`, `0b1`, `1_000`.
fn is_new_number(word: &str) -> bool {
    let digits = |rest: &str, radix: u32| {
        !rest.is_empty() && rest.chars().all(|one| one == '_' || one.is_digit(radix))
    };
    match word.get(..2) {
        Some("0X") => digits(&word[2..], 16),
        Some("0O") => digits(&word[2..], 8),
        Some("0B") => digits(&word[2..], 2),
        _ => {
            word.starts_with(|one: char| one.is_ascii_digit())
                && word.contains('_')
                && digits(word, 10)
        }
    }
}

/// Whether random() is called with bounds.
fn random_between(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(4).any(|four| {
        four[1] == "RANDOM"
            && four[2] == "("
            && four[3] != ")"
            && !matches!(
                four[0],
                "FUNCTION" | "PROCEDURE" | "AGGREGATE" | "." | "EXISTS" | "INTO" | "TABLE"
            )
    })
}
