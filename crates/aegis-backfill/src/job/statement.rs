//! A statement of the author over a key range: `:from` and `:to` become the range of a batch.
//!
//! Invariants: what stands in literals, quoted names, comments and dollar quotes is left alone; both ends have to stand there, or a
//! batch would do more than its range.

use crate::key::Key;

/// The statement with `:from` as `$1` and `:to` as `$2`, each an array of text. The error is the whole sentence.
pub(crate) fn bound(file: &str, sql: &str, key: &Key) -> Result<String, String> {
    replaced(file, sql, |end| key.value(end))
}

/// Whether both ends of the range stand in a statement. The error is the whole sentence.
pub fn names_range(file: &str, sql: &str) -> Result<(), String> {
    replaced(file, sql, |_| String::new()).map(|_| ())
}

/// An end of the range that only stands where it bounds nothing: before any condition, or beside `=`. The error is the whole sentence.
pub fn outside_of_range(sql: &str) -> Option<String> {
    const MARKS: [(&str, &str); 2] = [(":from", "\u{1}"), (":to", "\u{2}")];
    let marked = replaced("", sql, |end| MARKS[end - 1].1.to_owned()).ok()?;
    let upper = marked.to_ascii_uppercase();
    for (name, mark) in MARKS {
        let bounds = upper.match_indices(mark).any(|(at, _)| {
            let (before, after) = (&upper[..at], &upper[at + mark.len()..]);
            let mut words = before.split(|one: char| !one.is_alphanumeric() && one != '_');
            let behind_condition = words.any(|word| matches!(word, "WHERE" | "ON" | "USING"));
            behind_condition && !is_equalled(before, after)
        });
        if !bounds {
            return Some(format!(
                "{name} stands where it bounds nothing, so each batch would do more than its range"
            ));
        }
    }
    None
}

/// Whether what stands between is one side of `=` or `<>`.
fn is_equalled(before: &str, after: &str) -> bool {
    let before = before.trim_end_matches(|one: char| one.is_whitespace() || one == '(');
    let mut after = after.trim_start_matches(|one: char| one.is_whitespace() || one == ')');
    if let Some(cast) = after.strip_prefix("::") {
        after = cast
            .trim_start_matches(|one: char| one.is_alphanumeric() || "_[].\"".contains(one))
            .trim_start();
    }
    let left = before.ends_with('=') && !before.ends_with("<=") && !before.ends_with(">=");
    left || before.ends_with("<>") || after.starts_with('=') || after.starts_with("<>")
}

fn replaced(file: &str, sql: &str, value: impl Fn(usize) -> String) -> Result<String, String> {
    let mut text = String::with_capacity(sql.len());
    let (mut from, mut to) = (false, false);
    let mut rest = sql;
    while let Some(next) = rest.chars().next() {
        let token = token(rest, text.chars().next_back());
        let (taken, left) = rest.split_at(token.max(next.len_utf8()));
        match taken {
            ":from" => {
                from = true;
                text.push_str(&value(1));
            }
            ":to" => {
                to = true;
                text.push_str(&value(2));
            }
            other => text.push_str(other),
        }
        rest = left;
    }
    for (there, name, example) in [(from, ":from", "id > :from"), (to, ":to", "id <= :to")] {
        if !there {
            return Err(format!(
                "{file}: the statement does not name {name}, so each batch would do more than its range; write WHERE … {example}"
            ));
        }
    }
    Ok(text)
}

/// The bytes of what stands at the beginning and is read as one. 0: an ordinary character.
fn token(rest: &str, before: Option<char>) -> usize {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let until = |open: usize, close: &str| {
        rest.get(open..)
            .and_then(|inner| inner.find(close))
            .map_or(rest.len(), |at| open + at + close.len())
    };
    if rest.starts_with("::") {
        return 2;
    }
    if let Some(name) = rest.strip_prefix(':') {
        let word = name.len() - name.trim_start_matches(part).len();
        return 1 + word;
    }
    if rest.starts_with("--") {
        return until(2, "\n");
    }
    if rest.starts_with("/*") {
        return comment(rest);
    }
    if rest.starts_with('\'') {
        let escapes = before.is_some_and(|c| c == 'E' || c == 'e');
        return literal(rest, escapes);
    }
    if rest.starts_with('"') {
        return until(1, "\"");
    }
    if rest.starts_with('$') && !before.is_some_and(part) {
        let tag = rest[1..].find('$').map(|at| &rest[..at + 2]);
        if let Some(tag) = tag.filter(|tag| {
            let inner = &tag[1..tag.len() - 1];
            inner.chars().all(|c| c.is_alphanumeric() || c == '_')
                && !inner.starts_with(|c: char| c.is_ascii_digit())
        }) {
            return until(tag.len(), tag);
        }
    }
    0
}

/// The bytes of a string. A doubled quote begins a second string, which is as good.
fn literal(rest: &str, escapes: bool) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if escapes => escaped = true,
            '\'' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The bytes of a comment, which may hold others.
fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Less than every value of the type, or than every one but itself; none where the type has no such value.
pub(crate) fn smallest(type_sql: &str) -> Option<&'static str> {
    let value = match type_sql {
        "smallint" => "-32768",
        "integer" => "-2147483648",
        "bigint" => "-9223372036854775808",
        "numeric" | "real" | "double precision" => "-Infinity",
        "text" | "character varying" | "bpchar" | "bytea" => "",
        "uuid" => "00000000-0000-0000-0000-000000000000",
        "date" | "timestamp without time zone" | "timestamp with time zone" => "-infinity",
        _ => return None,
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{Key, bound};
    use crate::key::KeyColumn;

    fn key(columns: usize) -> Key {
        let column = |at| KeyColumn {
            name: format!("k{at}"),
            type_sql: "int".to_owned(),
        };
        Key {
            columns: (1..=columns).map(column).collect(),
        }
    }

    #[test]
    fn the_ends_are_put_in_and_nothing_else_is_touched() {
        let keep = "UPDATE t SET a = ':from', b = E'\\':to', c = \"x:to\", d = $$:from$$, e = $q$ $$ :to $q$, f = 1::int, g = x[1:fromage]\
                    /* :from /* :to */ :to */ -- :from\n WHERE id > ";
        let sql = format!("{keep}:from AND id <= :to");
        let expected = format!("{keep}(($1::text[])[1]::int) AND id <= (($2::text[])[1]::int)");
        assert_eq!(bound("b.sql", &sql, &key(1)).unwrap(), expected);
        let both = bound(
            "b.sql",
            "SELECT 'é' WHERE (a,b)>:from AND (a,b)<=:to",
            &key(2),
        )
        .unwrap();
        assert!(
            both.ends_with("(a,b)<=(($2::text[])[1]::int, ($2::text[])[2]::int)"),
            "{both}"
        );
    }

    #[test]
    fn a_statement_without_an_end_is_refused() {
        for sql in [
            "UPDATE t SET a = 1",
            "UPDATE t SET a = 1 WHERE id > :from",
            "UPDATE t SET a = ':from' WHERE id <= :to",
            "UPDATE t SET a = 1 WHERE id > :from AND id <= :tother",
        ] {
            let said = bound("b.sql", sql, &key(1)).unwrap_err();
            assert!(said.starts_with("b.sql: "), "{said}");
        }
    }
}
