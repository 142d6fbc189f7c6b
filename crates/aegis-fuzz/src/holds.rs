//! The rules that all targets share.

use std::fmt::{Debug, Display};

use aegis_migrate::change::Problems;

/// What a refusal may say beside what was refused.
const WORDS_BYTES_MAX: usize = 8 * 1024;

/// A refusal has words, and no endless ones: it may show what it was given once, with each byte at its longest escape. What
/// prints it takes out what a terminal would obey.
pub(crate) fn says(error: &impl Display, given: &[u8]) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "a refusal without words");
    let most = given.len() * "\\u{ff}".len() + WORDS_BYTES_MAX;
    assert!(
        text.len() <= most,
        "a refusal of {} bytes for {}",
        text.len(),
        given.len()
    );
}

/// Several at once: each.
pub(crate) fn each_says(problems: &Problems, given: &[u8]) {
    assert!(!problems.all().is_empty(), "refused without a reason");
    for problem in problems.all() {
        says(problem, given);
    }
}

/// A refusal that goes into a log as it is: it is also short whatever it was given, and holds nothing that moves a cursor or turns text around.
pub(crate) fn harmless(error: &impl Display) {
    says(error, &[]);
    let text = error.to_string();
    let harm = text.chars().find(|c| harms(*c));
    assert!(harm.is_none(), "a refusal with {harm:?}: {text:?}");
}

fn harms(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What was accepted is the same after writing and reading.
pub(crate) fn same<T: PartialEq + Debug>(one: &T, again: &T) {
    assert!(
        one == again,
        "written and read again it is another:\n{one:?}\n{again:?}"
    );
}

/// Bytes as text, where they are.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
