//! How deep a text is nested, before the parser sees it: the parser goes down by one call for each level, and so does the end of its
//! tree.
//!
//! Invariants: what stands in strings, quoted names and comments does not count; what is behind AS, DO, EXECUTE and LANGUAGE in dollar
//! quotes is a body and counts; a text within the bounds is read on a stack that holds it.

use crate::statement::SyntaxError;

/// Most levels: brackets, CASE, blocks of PL/pgSQL, bodies in bodies.
const LEVELS_MAX: usize = 500;
/// Most words and operators in one place, without a comma between: each can be a level of the tree, as in `NOT NOT a` and `a + b + c`.
const LINKS_MAX: usize = 50_000;
/// Most bodies in bodies.
const BODIES_MAX: usize = 16;
/// Beyond this the usual stack may be too small.
const USUAL: usize = 300;
/// A stack for what is within the bounds: a level was measured to take up to 1,100 bytes without optimisation. Only what is used of
/// it is taken from the machine.
const STACK_BYTES: usize = 256 * 1024 * 1024;

/// Does something with a text that is within the bounds, on a stack that is large enough for it.
///
/// # Errors
/// The place from which on it is nested too deep.
pub(super) fn within<T: Send>(
    sql: &str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, SyntaxError> {
    let mut scan = Scan::new(sql);
    if let Err((at, what)) = scan.run(0, sql.len(), 0) {
        return Err(SyntaxError::at(sql, at, what));
    }
    if scan.deepest <= USUAL {
        return Ok(work());
    }
    let failed = || {
        SyntaxError::at(
            sql,
            0,
            "no thread could be started to read what is nested in it".to_owned(),
        )
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("deep-sql".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|_| failed())?;
        thread.join().map_err(|_| failed())
    })
}

/// What a level was opened by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    Bracket,
    Word,
}

struct Level {
    by: Opened,
    /// Since the last comma or semicolon in it.
    links: usize,
}

struct Scan<'a> {
    sql: &'a str,
    /// Never empty.
    levels: Vec<Level>,
    /// Of all levels.
    links: usize,
    deepest: usize,
}

type Refused = (usize, String);

impl<'a> Scan<'a> {
    const fn new(sql: &'a str) -> Self {
        Self {
            sql,
            levels: Vec::new(),
            links: 0,
            deepest: 0,
        }
    }

    /// A stretch of the text; `bodies` is how many bodies it lies in.
    fn run(&mut self, mut at: usize, end: usize, bodies: usize) -> Result<(), Refused> {
        let bytes = self.sql.as_bytes();
        let floor = self.levels.len();
        self.open(Opened::Word, at)?;
        // The last word, in lower case, and whether a statement of PL/pgSQL may begin here.
        let mut last = String::new();
        let mut begins = true;
        while at < end {
            let byte = bytes[at];
            let start = at;
            at += 1;
            match byte {
                b'-' if bytes[at..end].first() == Some(&b'-') => {
                    at = find(bytes, at, end, |rest| rest[0] == b'\n');
                    continue;
                }
                b'/' if bytes[at..end].first() == Some(&b'*') => {
                    at = comment(bytes, at + 1, end);
                    continue;
                }
                b'\'' => {
                    let escapes =
                        last == "e" && start > 0 && bytes[start - 1].eq_ignore_ascii_case(&b'e');
                    at = string(bytes, at, end, b'\'', escapes);
                }
                b'"' => at = string(bytes, at, end, b'"', false),
                b'$' if let Some((from, to, after)) = dollar(self.sql, start, end) => {
                    if is_body(&last) {
                        if bodies >= BODIES_MAX {
                            return Err((
                                start,
                                format!(
                                    "bodies are nested more than {BODIES_MAX} deep, which is the limit"
                                ),
                            ));
                        }
                        self.run(from, to, bodies + 1)?;
                    }
                    at = after;
                }
                b'(' | b'[' => {
                    self.open(Opened::Bracket, start)?;
                    last.clear();
                    begins = false;
                    continue;
                }
                b')' | b']' => {
                    self.close(Opened::Bracket, floor + 1);
                    self.link(start)?;
                }
                b',' | b';' => {
                    self.forget();
                    begins = byte == b';';
                    last.clear();
                    continue;
                }
                b'.' => self.link(start)?,
                _ if is_operator(byte) => {
                    while at < end && is_operator(bytes[at]) && !matches!(bytes[at], b'-' | b'/') {
                        at += 1;
                    }
                    self.link(start)?;
                    // The end of a label, <<a>>.
                    begins = &bytes[start..at] == b">>";
                    continue;
                }
                _ if is_word(byte) => {
                    while at < end && (is_word(bytes[at]) || bytes[at] == b'$') {
                        at += 1;
                    }
                    let word = self.sql[start..at].to_ascii_lowercase();
                    self.word(&word, &last, begins, start, floor + 1)?;
                    begins = matches!(word.as_str(), "then" | "else" | "begin" | "loop");
                    last = word;
                    continue;
                }
                _ => continue,
            }
            begins = false;
            last.clear();
        }
        self.levels.truncate(floor);
        self.links = self.levels.iter().map(|level| level.links).sum();
        Ok(())
    }

    fn word(
        &mut self,
        word: &str,
        last: &str,
        begins: bool,
        at: usize,
        floor: usize,
    ) -> Result<(), Refused> {
        match word {
            "case" | "loop" | "begin" if last != "end" => self.open(Opened::Word, at),
            "if" if begins && last != "end" => self.open(Opened::Word, at),
            "end" => {
                self.close(Opened::Word, floor);
                Ok(())
            }
            "when" | "then" | "else" => {
                self.forget();
                Ok(())
            }
            _ if word.starts_with(|one: char| one.is_ascii_digit()) => Ok(()),
            _ => self.link(at),
        }
    }

    fn open(&mut self, by: Opened, at: usize) -> Result<(), Refused> {
        self.levels.push(Level { by, links: 0 });
        if self.levels.len() > LEVELS_MAX {
            let said = format!(
                "it is nested more than {LEVELS_MAX} deep, which is the limit: write it flatter"
            );
            return Err((at, said));
        }
        self.see();
        Ok(())
    }

    /// Ends the innermost level of this kind, and what was left open in it.
    fn close(&mut self, by: Opened, floor: usize) {
        let Some(found) = self.levels.iter().rposition(|level| level.by == by) else {
            return;
        };
        if found < floor {
            return;
        }
        while self.levels.len() > found {
            self.forget();
            self.levels.pop();
        }
    }

    fn link(&mut self, at: usize) -> Result<(), Refused> {
        if let Some(level) = self.levels.last_mut() {
            level.links += 1;
            self.links += 1;
        }
        if self.links > LINKS_MAX {
            let said = format!(
                "more than {LINKS_MAX} words and operators are nested in one place, which is the limit: write it as a list, or in several statements"
            );
            return Err((at, said));
        }
        self.see();
        Ok(())
    }

    /// What follows begins anew at this level.
    fn forget(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            self.links -= level.links;
            level.links = 0;
        }
    }

    fn see(&mut self) {
        self.deepest = self.deepest.max(self.levels.len() + self.links);
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

const fn is_operator(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-'
            | b'*'
            | b'/'
            | b'<'
            | b'>'
            | b'='
            | b'~'
            | b'!'
            | b'@'
            | b'#'
            | b'%'
            | b'^'
            | b'&'
            | b'|'
            | b'`'
            | b'?'
            | b':'
    )
}

fn is_body(last: &str) -> bool {
    matches!(last, "as" | "do" | "execute" | "plpgsql" | "sql")
}

fn find(bytes: &[u8], mut at: usize, end: usize, is: impl Fn(&[u8]) -> bool) -> usize {
    while at < end && !is(&bytes[at..end]) {
        at += 1;
    }
    at
}

/// Behind a comment, which may hold comments; `at` is behind its first mark.
fn comment(bytes: &[u8], mut at: usize, end: usize) -> usize {
    let mut open = 1_usize;
    while at < end {
        match &bytes[at..end] {
            [b'*', b'/', ..] => {
                open -= 1;
                at += 2;
                if open == 0 {
                    return at;
                }
            }
            [b'/', b'*', ..] => {
                open += 1;
                at += 2;
            }
            _ => at += 1,
        }
    }
    end
}

/// Behind a string or a quoted name; `at` is behind its first quote.
fn string(bytes: &[u8], mut at: usize, end: usize, quote: u8, escapes: bool) -> usize {
    while at < end {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote => {
                if bytes.get(at + 1).filter(|_| at + 1 < end) == Some(&quote) {
                    at += 2;
                } else {
                    return at + 1;
                }
            }
            _ => at += 1,
        }
    }
    end
}

/// What a dollar quote holds: from, to, and where it is behind.
fn dollar(sql: &str, start: usize, end: usize) -> Option<(usize, usize, usize)> {
    let rest = sql.get(start..end)?;
    let tag_end = 1 + rest.get(1..)?.find('$')?;
    let inside = &rest[1..tag_end];
    let is_tag =
        !inside.starts_with(|one: char| one.is_ascii_digit()) && inside.bytes().all(is_word);
    if !is_tag {
        return None;
    }
    let tag = &rest[..=tag_end];
    let from = start + tag.len();
    // What never ends is the parser's to tell.
    let to = sql.get(from..end)?.find(tag).map_or(end, |at| from + at);
    Some((from, to, end.min(to + tag.len())))
}
