//! Makes mutants of SQL text: each is one small mistake that a person could make and no compiler would see.
//!
//! It knows words, brackets, strings and comments, no grammar: enough to find where a condition begins and ends.

use std::ops::Range;

/// A text with one mistake.
#[derive(Debug, Clone)]
pub(super) struct Mutant {
    /// What was done and where, the same at every run: what the list of survivors names.
    pub(super) what: String,
    pub(super) text: String,
    /// Where in the text.
    pub(super) at: usize,
}

/// Replacements of words; each occurrence alone.
const SWAPS: [(&str, &str); 12] = [
    ("clock_timestamp()", "now()"),
    (" > ", " >= "),
    (" >= ", " > "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" AS MATERIALIZED", " AS"),
    (" SKIP LOCKED", ""),
    ("FOR NO KEY UPDATE", ""),
    ("rev + 1", "rev"),
    ("epoch + 1", "epoch"),
    ("state + 0", "state"),
    ("ORDER BY k.id", ""),
];

/// How the rows to write are addressed: [M08] by ctid, [M05] by a join that the planner may turn into a scan.
const ADDRESS: &str = "t.id = ANY (ARRAY(SELECT l.id FROM l";

/// All mutants of a text, in its order.
pub(super) fn mutants(text: &str) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (at, neutral) in conditions(text) {
        let gone = squeeze(&text[at.clone()]);
        all.push((
            at.start,
            replaced(text, at, neutral),
            format!("`{gone}` is {neutral}"),
        ));
    }
    for (word, other) in SWAPS {
        for (start, _) in text.match_indices(word) {
            let end = start + word.len();
            // A lock that is not taken skips nothing either.
            let end = if word == "FOR NO KEY UPDATE" && text[end..].starts_with(" SKIP LOCKED") {
                end + " SKIP LOCKED".len()
            } else {
                end
            };
            let what = format!(
                "`{}` becomes `{}` in `{}`",
                word.trim(),
                other.trim(),
                line_of(text, start)
            );
            all.push((start, replaced(text, start..end, other), what));
        }
    }
    for (start, _) in text.match_indices(ADDRESS) {
        let line = line_of(text, start);
        let by_ctid = replaced(
            text,
            start..start + ADDRESS.len(),
            "t.ctid = ANY (ARRAY(SELECT l.at FROM l",
        );
        let by_ctid = by_ctid.replace(
            "SELECT * FROM aegis.task t",
            "SELECT t.ctid AS at, t.* FROM aegis.task t",
        );
        all.push((start, by_ctid, format!("rows by ctid in `{line}`")));
        let joined = replaced(
            text,
            start..start + ADDRESS.len(),
            "t.id IN ((SELECT l.id FROM l",
        );
        all.push((start, joined, format!("rows by a plain join in `{line}`")));
    }
    all.sort_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
    let mut made: Vec<Mutant> = Vec::new();
    for (at, text, what) in all {
        let same = made
            .iter()
            .filter(|one| one.what == what || one.what.starts_with(&format!("{what} #")))
            .count();
        let what = if same == 0 {
            what
        } else {
            format!("{what} #{}", same + 1)
        };
        made.push(Mutant { what, text, at });
    }
    made
}

fn replaced(text: &str, at: Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &text[..at.start], &text[at.end..])
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_of(text: &str, at: usize) -> String {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let end = text[at..].find('\n').map_or(text.len(), |n| at + n);
    squeeze(&text[start..end])
}

/// A word or a sign, and how many brackets are open around it.
struct Token<'a> {
    at: Range<usize>,
    word: &'a str,
    depth: usize,
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let (mut found, mut n, mut depth) = (Vec::new(), 0, 0_usize);
    while n < bytes.len() {
        let start = n;
        match bytes[n] {
            b'-' if bytes.get(n + 1) == Some(&b'-') => {
                n = text[n..].find('\n').map_or(bytes.len(), |more| n + more);
                continue;
            }
            b'/' if bytes.get(n + 1) == Some(&b'*') => {
                n = text[n..]
                    .find("*/")
                    .map_or(bytes.len(), |more| n + more + 2);
                continue;
            }
            b'\'' => {
                n = text[n + 1..]
                    .find('\'')
                    .map_or(bytes.len(), |more| n + more + 2);
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
                while n < bytes.len() && (bytes[n].is_ascii_alphanumeric() || bytes[n] == b'_') {
                    n += 1;
                }
            }
            byte => {
                n += 1;
                if byte.is_ascii_whitespace() {
                    continue;
                }
                if byte == b')' {
                    depth = depth.saturating_sub(1);
                }
            }
        }
        found.push(Token {
            at: start..n,
            word: &text[start..n],
            depth,
        });
        if &text[start..n] == "(" {
            depth += 1;
        }
    }
    found
}

/// Words that end a condition.
const ENDS: [&str; 24] = [
    "AND",
    "OR",
    "THEN",
    "AS",
    "FROM",
    "FOR",
    "GROUP",
    "ORDER",
    "RETURNING",
    "LIMIT",
    "UNION",
    "JOIN",
    "LEFT",
    "CROSS",
    "SET",
    "OFFSET",
    "ELSE",
    "END",
    "LOOP",
    "WHERE",
    "ON",
    ",",
    ";",
    "CASE",
];

/// Each condition and what makes it say nothing: `true` among AND, `false` among OR.
fn conditions(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (n, token) in tokens.iter().enumerate() {
        let next = tokens.get(n + 1).map_or("", |next| next.word);
        let opens = match token.word {
            "WHERE" | "AND" | "OR" | "IF" | "ELSIF" | "WHEN" | "SELECT" | "RETURN" => true,
            "ON" => !["CONFLICT", "true"].contains(&next),
            _ => false,
        };
        if !opens || (token.word == "AND" && is_between(&tokens[..n], token.depth)) {
            continue;
        }
        let rest = &tokens[n + 1..];
        let distinct = |at: usize| at > 0 && rest[at - 1].word == "DISTINCT";
        let end = (0..rest.len())
            .find(|&at| {
                let one = &rest[at];
                (one.word == ")" && one.depth < token.depth)
                    || (one.depth == token.depth
                        && ENDS.contains(&one.word)
                        && !(one.word == "FROM" && distinct(at)))
            })
            .unwrap_or(rest.len());
        let by = rest.get(end).map_or("", |one| one.word);
        let is_part = by == "AND" || by == "OR";
        if end == 0 || by == "CASE" || (["SELECT", "RETURN"].contains(&token.word) && !is_part) {
            continue;
        }
        let at = rest[0].at.start..rest[end - 1].at.end;
        let neutral = if token.word == "OR" || by == "OR" {
            "false"
        } else {
            "true"
        };
        found.push((at, neutral));
    }
    found
}

fn is_between(before: &[Token<'_>], depth: usize) -> bool {
    let same = before.iter().rev().filter(|token| token.depth == depth);
    let mut words = same.map(|token| token.word);
    words.find(|word| ["BETWEEN", "AND", "OR", "WHERE", "SELECT"].contains(word)) == Some("BETWEEN")
}

/// A maker that finds nothing would let everything pass.
#[test]
fn the_maker_finds_each_condition_once() {
    let text = "SELECT a FROM t WHERE a = 1 AND (b > 2 OR c IS DISTINCT FROM d) -- AND not this\n AND e = ' AND ' FOR NO KEY UPDATE SKIP LOCKED";
    let whats: Vec<String> = mutants(text).into_iter().map(|one| one.what).collect();
    let line =
        "in `SELECT a FROM t WHERE a = 1 AND (b > 2 OR c IS DISTINCT FROM d) -- AND not this`";
    assert_eq!(
        whats,
        [
            "`a = 1` is true".to_owned(),
            "`(b > 2 OR c IS DISTINCT FROM d)` is true".to_owned(),
            format!("`>` becomes `>=` {line}"),
            "`c IS DISTINCT FROM d` is false".to_owned(),
            "`e = ' AND '` is true".to_owned(),
            "`FOR NO KEY UPDATE` becomes `` in `AND e = ' AND ' FOR NO KEY UPDATE SKIP LOCKED`"
                .to_owned(),
            "`SKIP LOCKED` becomes `` in `AND e = ' AND ' FOR NO KEY UPDATE SKIP LOCKED`"
                .to_owned(),
        ]
    );
}
