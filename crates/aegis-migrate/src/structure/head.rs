//! The head of a CREATE INDEX, up to its table: what must be another for the same index on an empty copy of the table.
//!
//! Only text that begins exactly so is taken; everything else is "not told", and a person decides.

/// The parts of `CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] name ON [ONLY] table …`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// UNIQUE.
    pub(super) unique: bool,
    /// The index's name, as it is stored.
    pub(super) index: String,
    /// The table's schema, when it is written.
    pub(super) schema: Option<String>,
    /// The table's name, as it is stored.
    pub(super) table: String,
    /// What follows the table: method, keys, INCLUDE, WHERE.
    pub(super) rest: &'a str,
}

/// Reads it.
pub(super) fn head(text: &str) -> Option<Head<'_>> {
    let mut at = Cursor { rest: text };
    at.keyword("create").then_some(())?;
    let unique = at.keyword("unique");
    at.keyword("index").then_some(())?;
    at.keyword("concurrently");
    if at.keyword("if") {
        (at.keyword("not") && at.keyword("exists")).then_some(())?;
    }
    let index = at.identifier()?;
    at.keyword("on").then_some(())?;
    at.keyword("only");
    let first = at.identifier()?;
    let (schema, table) = if at.symbol('.') {
        (Some(first), at.identifier()?)
    } else {
        (None, first)
    };
    Some(Head {
        unique,
        index,
        schema,
        table,
        rest: at.rest,
    })
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    /// Past whitespace and comments, which nest.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(after) = self.rest.strip_prefix("--") {
                self.rest = after.find('\n').map_or("", |end| &after[end + 1..]);
            } else if self.rest.starts_with("/*") {
                self.rest = past_comment(self.rest);
            } else {
                return;
            }
        }
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.skip();
        let end = word_end(self.rest);
        if self.rest[..end].eq_ignore_ascii_case(word) {
            self.rest = &self.rest[end..];
            return true;
        }
        false
    }

    fn symbol(&mut self, symbol: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// An identifier as it is stored: quotes taken off, or folded to lower case.
    fn identifier(&mut self) -> Option<String> {
        self.skip();
        let Some(quoted) = self.rest.strip_prefix('"') else {
            let end = word_end(self.rest);
            let word = &self.rest[..end];
            self.rest = &self.rest[end..];
            let first = word.chars().next()?;
            return (!first.is_ascii_digit()).then(|| word.to_ascii_lowercase());
        };
        let mut name = String::new();
        let mut characters = quoted.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            if c != '"' {
                name.push(c);
            } else if characters.next_if(|(_, next)| *next == '"').is_some() {
                name.push('"');
            } else {
                self.rest = &quoted[at + 1..];
                return Some(name);
            }
        }
        None
    }
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .unwrap_or(text.len())
}

/// What follows a comment that begins here; nothing when it does not end.
fn past_comment(text: &str) -> &str {
    let (mut depth, mut at) = (0_usize, 0_usize);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return &text[at..];
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn the_head_is_read_whatever_stands_between() {
        let text = "create /* a /* b */ c */ UNIQUE index CONCURRENTLY -- now\n if not exists \"I \"\"x\"\".1\" on ONLY App . \"Us.ers\"\n USING btree (a) WHERE a > 1";
        let read = head(text).unwrap();
        assert!(read.unique);
        assert_eq!(read.index, "I \"x\".1");
        assert_eq!(
            (read.schema.as_deref(), read.table.as_str()),
            (Some("app"), "Us.ers")
        );
        assert_eq!(read.rest.trim(), "USING btree (a) WHERE a > 1");
        assert_eq!(head("CREATE INDEX i ON t(a)").unwrap().rest, "(a)");
    }

    #[test]
    fn what_is_no_such_head_is_not_told() {
        for text in [
            "",
            "CREATE INDEX ON t (a)",
            "CREATE TABLE t (a int)",
            "CREATE INDEX \"i ON t (a)",
            "/* CREATE INDEX i ON t (a)",
        ] {
            // Without a name the word ON is taken for one, and then ON is missing.
            assert_eq!(head(text), None, "{text}");
        }
    }
}
