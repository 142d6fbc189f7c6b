//! From a statement's text to the text that PostgreSQL gets: `:name` becomes `$n`, comments go.
//!
//! Invariants: nothing inside quotes is changed; parameters are numbered by their first appearance; every
//! character of the output still knows where it came from, so that a position in an error leads to its line.

use super::Mistake;
use super::names::is_snake_case;
use super::source::{Char, Origin};

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Param {
    pub(super) name: String,
    /// `:name?`: the value may be NULL.
    pub(super) optional: bool,
    /// `:name[?]`: elements of the array may be NULL.
    pub(super) optional_elements: bool,
}

/// A scanned text.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) text: String,
    /// One for each character of `text`.
    pub(super) origins: Vec<Origin>,
    pub(super) params: Vec<Param>,
    /// Whether `:batch!` stands in it.
    pub(super) uses_batch: bool,
}

struct Scanner<'a> {
    chars: &'a [Char],
    next: usize,
    batch: Option<usize>,
    /// Output, with whether the character stands inside quotes.
    out: Vec<(char, Origin, bool)>,
    params: Vec<Param>,
    uses_batch: bool,
}

/// Scans a text; `batch` is what `:batch!` stands for.
pub(super) fn scan(chars: &[Char], batch: Option<usize>) -> Result<Scanned, Mistake> {
    let mut scanner = Scanner {
        chars,
        next: 0,
        batch,
        out: Vec::with_capacity(chars.len()),
        params: Vec::new(),
        uses_batch: false,
    };
    while scanner.next < chars.len() {
        scanner.step()?;
    }
    Ok(scanner.finish())
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars
            .get(self.next + ahead)
            .map_or('\0', |char| char.value)
    }

    fn previous(&self) -> char {
        self.next
            .checked_sub(1)
            .and_then(|at| self.chars.get(at))
            .map_or('\0', |char| char.value)
    }

    fn mistake(&self, what: impl Into<String>) -> Mistake {
        self.chars[self.next.min(self.chars.len() - 1)]
            .origin
            .mistake(what)
    }

    fn copy(&mut self, count: usize, quoted: bool) {
        let end = (self.next + count).min(self.chars.len());
        for char in &self.chars[self.next..end] {
            self.out.push((char.value, char.origin.clone(), quoted));
        }
        self.next = end;
    }

    fn emit(&mut self, text: &str, origin: &Origin) {
        self.out
            .extend(text.chars().map(|char| (char, origin.clone(), false)));
    }

    fn step(&mut self) -> Result<(), Mistake> {
        match (self.peek(0), self.peek(1)) {
            ('-', '-') => {
                while !matches!(self.peek(0), '\n' | '\0') {
                    self.next += 1;
                }
                Ok(())
            }
            ('/', '*') => self.block_comment(),
            ('\'', _) => {
                let escapes = matches!(self.previous(), 'e' | 'E') && !self.is_word(2);
                self.quoted('\'', escapes)
            }
            ('"', _) => self.quoted('"', false),
            ('$', next) if !is_word(self.previous()) => self.dollar(next),
            (':', ':' | '=') => {
                self.copy(2, false);
                Ok(())
            }
            (':', next) if next.is_alphabetic() || next == '_' => self.param(),
            _ => {
                self.copy(1, false);
                Ok(())
            }
        }
    }

    /// Whether the character `back` places before this one belongs to a word.
    fn is_word(&self, back: usize) -> bool {
        self.next
            .checked_sub(back)
            .is_some_and(|at| is_word(self.chars[at].value))
    }

    fn block_comment(&mut self) -> Result<(), Mistake> {
        let start = self.next;
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => (depth, self.next) = (depth + 1, self.next + 2),
                ('*', '/') => (depth, self.next) = (depth - 1, self.next + 2),
                _ if self.next >= self.chars.len() => {
                    return Err(self.chars[start].origin.mistake("this comment never ends"));
                }
                _ => self.next += 1,
            }
            if depth == 0 {
                // A comment parts two words, as PostgreSQL has it.
                let origin = self.chars[start].origin.clone();
                self.emit(" ", &origin);
                return Ok(());
            }
        }
    }

    fn quoted(&mut self, quote: char, escapes: bool) -> Result<(), Mistake> {
        let start = self.next;
        self.copy(1, true);
        loop {
            match self.peek(0) {
                '\\' if escapes => self.copy(2, true),
                // A doubled quote ends one text and begins the next: the same thing here.
                char if char == quote => {
                    self.copy(1, true);
                    return Ok(());
                }
                _ if self.next >= self.chars.len() => {
                    return Err(self.chars[start].origin.mistake("this quote never ends"));
                }
                _ => self.copy(1, true),
            }
        }
    }

    fn dollar(&mut self, next: char) -> Result<(), Mistake> {
        if next.is_ascii_digit() {
            return Err(
                self.mistake("write parameters as :name; numbers are given by the generator")
            );
        }
        let rest = &self.chars[self.next + 1..];
        let length = rest.iter().take_while(|char| is_word(char.value)).count();
        if rest.get(length).is_none_or(|char| char.value != '$') {
            self.copy(1, false);
            return Ok(());
        }
        let start = self.next;
        let tag: Vec<char> = self.chars[start..start + length + 2]
            .iter()
            .map(|char| char.value)
            .collect();
        self.copy(tag.len(), true);
        loop {
            let here = &self.chars[self.next..];
            if here.len() < tag.len() {
                return Err(self.chars[start]
                    .origin
                    .mistake("this dollar quote never ends"));
            }
            if here
                .iter()
                .map(|char| char.value)
                .take(tag.len())
                .eq(tag.iter().copied())
            {
                self.copy(tag.len(), true);
                return Ok(());
            }
            self.copy(1, true);
        }
    }

    fn param(&mut self) -> Result<(), Mistake> {
        if is_word(self.previous()) || matches!(self.previous(), ')' | ']') {
            return Err(self.mistake(
                "a parameter cannot follow a word directly; write an array slice as `a[lo : hi]`",
            ));
        }
        let start = self.next;
        self.next += 1;
        let mut name = String::new();
        while is_word(self.peek(0)) {
            name.push(self.peek(0));
            self.next += 1;
        }
        let origin = self.chars[start].origin.clone();
        if !is_snake_case(&name) {
            return Err(origin.mistake(format!("parameter `:{name}` is not in snake_case")));
        }
        if self.peek(0) == '!' && self.peek(1) != '=' {
            return self.batch_literal(&name, &origin);
        }
        let optional = self.peek(0) == '?';
        let optional_elements = self.peek(0) == '[' && self.peek(1) == '?' && self.peek(2) == ']';
        self.next += if optional_elements {
            3
        } else {
            usize::from(optional)
        };

        let known = self.params.iter().position(|param| param.name == name);
        let number = known.unwrap_or_else(|| {
            self.params.push(Param {
                name,
                optional: false,
                optional_elements: false,
            });
            self.params.len() - 1
        });
        self.params[number].optional |= optional;
        self.params[number].optional_elements |= optional_elements;
        self.emit(&format!("${}", number + 1), &origin);
        Ok(())
    }

    fn batch_literal(&mut self, name: &str, origin: &Origin) -> Result<(), Mistake> {
        match self.batch {
            Some(size) if name == "batch" => {
                self.next += 1;
                self.uses_batch = true;
                self.emit(&size.to_string(), origin);
                Ok(())
            }
            _ => Err(origin.mistake(format!(
                "`:{name}!` is a literal: only `:batch!` is known, and the head must say `batch: …`"
            ))),
        }
    }

    /// Drops lines that hold nothing (any more), blanks before a line's end, and the last semicolon.
    fn finish(self) -> Scanned {
        let mut scanned = Scanned {
            params: self.params,
            uses_batch: self.uses_batch,
            ..Scanned::default()
        };
        let mut kept: Vec<(char, Origin, bool)> = Vec::with_capacity(self.out.len());
        for char in self.out {
            // Behind a quoted newline stands its quote, or more quoted text: both stay.
            if char.0 == '\n' {
                trim_blanks(&mut kept);
                if kept.last().is_none_or(|last| last.0 == '\n' && !last.2) {
                    continue;
                }
            }
            kept.push(char);
        }
        while kept
            .last()
            .is_some_and(|last| last.0.is_whitespace() || last.0 == ';')
        {
            kept.pop();
        }
        for (char, origin, _) in kept {
            scanned.text.push(char);
            scanned.origins.push(origin);
        }
        scanned
    }
}

fn trim_blanks(kept: &mut Vec<(char, Origin, bool)>) {
    while kept
        .last()
        .is_some_and(|last| matches!(last.0, ' ' | '\t' | '\r') && !last.2)
    {
        kept.pop();
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
