//! Blanks comments and the inside of literals, and leaves every line where it was.

/// `text` with comments, strings and characters blanked. Lines keep their numbers, not their columns.
pub(super) fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut masker = Masker {
        chars: &chars,
        next: 0,
        out: String::with_capacity(text.len()),
    };
    while masker.next < chars.len() {
        masker.step();
    }
    masker.out
}

struct Masker<'a> {
    chars: &'a [char],
    next: usize,
    out: String,
}

impl Masker<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.next + ahead).copied().unwrap_or('\0')
    }

    fn keep(&mut self, count: usize) {
        for _ in 0..count {
            self.out.extend(self.chars.get(self.next));
            self.next += 1;
        }
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            match self.chars.get(self.next) {
                Some('\n') => self.out.push('\n'),
                Some(_) => self.out.push(' '),
                None => {}
            }
            self.next += 1;
        }
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => {
                while !matches!(self.peek(0), '\n' | '\0') {
                    self.blank(1);
                }
            }
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('r', '"' | '#') if !self.after_word() || self.after_prefix() => self.raw_string(),
            ('\'', _) => self.character(),
            _ => self.keep(1),
        }
    }

    /// Whether a word ends here, as in `var"`.
    fn after_word(&self) -> bool {
        self.out.ends_with(is_word)
    }

    /// Whether all of that word is the `b` or `c` of `br"…"`, `cr"…"`.
    fn after_prefix(&self) -> bool {
        let mut before = self.out.chars().rev();
        matches!(before.next(), Some('b' | 'c')) && !before.next().is_some_and(is_word)
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.next < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => {
                    depth += 1;
                    self.blank(2);
                }
                ('*', '/') => {
                    depth -= 1;
                    self.blank(2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.blank(1),
            }
        }
    }

    fn string(&mut self) {
        self.keep(1);
        while self.next < self.chars.len() {
            match self.peek(0) {
                '\\' => self.blank(2),
                '"' => return self.keep(1),
                _ => self.blank(1),
            }
        }
    }

    fn raw_string(&mut self) {
        let hashes = self.chars[self.next + 1..]
            .iter()
            .take_while(|&&char| char == '#')
            .count();
        if self.peek(1 + hashes) != '"' {
            // A raw identifier, `r#type`.
            return self.keep(1);
        }
        self.keep(2 + hashes);
        while self.next < self.chars.len() {
            if self.peek(0) == '"' && (1..=hashes).all(|at| self.peek(at) == '#') {
                return self.keep(1 + hashes);
            }
            self.blank(1);
        }
    }

    /// A character, unless it is a lifetime.
    fn character(&mut self) {
        if self.peek(1) == '\\' {
            self.keep(1);
            self.blank(2);
            while !matches!(self.peek(0), '\'' | '\0') {
                self.blank(1);
            }
            self.keep(1);
        } else if self.peek(2) == '\'' {
            self.keep(1);
            self.blank(1);
            self.keep(1);
        } else {
            self.keep(1);
        }
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    //! Each literal, and what resembles one.

    use super::mask;

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(
            mask("a // b\nc /* d /* e */\n */ f"),
            "a     \nc             \n    f"
        );
        assert_eq!(mask(r#"a "b \" c" d"#), r#"a "      " d"#);
        assert_eq!(mask("r\"a\\\" b r#\"c\"d\"# e"), "r\"  \" b r#\"   \"# e");
        assert_eq!(mask("br\"a\" b\"c\""), "br\" \" b\" \"");
        assert_eq!(
            mask("'a' '\\'' '\\u{1f}' '\"' x"),
            "' ' '  ' '      ' ' ' x"
        );
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        for code in [
            "fn f<'a>(x: &'a str)",
            "r#type.unwrap()",
            "for r in x",
            "var\"",
            "'outer: loop {}",
        ] {
            assert_eq!(mask(code), code);
        }
    }
}
