//! Finds a block on a page and puts another text in its place.

/// A page with its block replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) text: String,
    /// The line of the page, from 1, at which the block stopped being what it should be.
    pub(super) differs_at: Option<usize>,
}

/// Puts `made` into the block `name`; the error says what is wrong with the page.
pub(super) fn replace(page: &str, name: &str, made: &str) -> Result<Replaced, String> {
    let (open, close) = (
        format!("<!-- generated: {name} -->"),
        format!("<!-- end of {name} -->"),
    );
    let lines: Vec<&str> = page.lines().collect();
    let from = only(&lines, &open)?;
    let to = only(&lines, &close)?;
    if to < from {
        return Err(format!("`{close}` stands before `{open}`"));
    }
    // Empty lines around it: Markdown needs them between a comment and a table.
    let wanted: Vec<&str> = std::iter::once("")
        .chain(made.trim_end().lines())
        .chain([""])
        .collect();
    let found = &lines[from + 1..to];
    let same = found
        .iter()
        .zip(&wanted)
        .take_while(|(a, b)| a == b)
        .count();
    let differs = found != wanted.as_slice();
    let mut text = [&lines[..=from], &wanted, &lines[to..]].concat().join("\n");
    text.push('\n');
    Ok(Replaced {
        text,
        differs_at: differs.then_some(from + 2 + same),
    })
}

/// The place of the only line that is `mark`.
fn only(lines: &[&str], mark: &str) -> Result<usize, String> {
    let mut found = lines.iter().enumerate().filter(|(_, line)| **line == mark);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (None, _) => Err(format!("has no line `{mark}`: put the block back")),
        (Some(_), Some((again, _))) => Err(format!("line {} is a second `{mark}`", again + 1)),
    }
}

#[cfg(test)]
mod tests {
    //! Replacing, and what a page can have wrong.

    use super::replace;

    const PAGE: &str = "# A\n<!-- generated: b -->\n\nold\nsame\n\n<!-- end of b -->\nmine\n";

    #[test]
    fn only_the_block_changes_and_the_first_difference_is_told() {
        let replaced = replace(PAGE, "b", "new\nsame\n").unwrap();
        assert_eq!(replaced.text, PAGE.replace("old", "new"));
        assert_eq!(replaced.differs_at, Some(4));
    }

    #[test]
    fn what_is_up_to_date_stays_as_it_is() {
        let replaced = replace(PAGE, "b", "old\nsame").unwrap();
        assert_eq!((replaced.text.as_str(), replaced.differs_at), (PAGE, None));
    }

    #[test]
    fn a_block_that_lost_its_last_lines_differs() {
        let replaced = replace(PAGE, "b", "old\nsame\nmore").unwrap();
        assert_eq!(replaced.differs_at, Some(6));
        let replaced = replace(PAGE, "b", "old").unwrap();
        assert_eq!(replaced.differs_at, Some(5));
    }

    #[test]
    fn pages_without_the_block_are_refused() {
        let complaint = |page: &str| replace(page, "b", "new").unwrap_err();
        assert!(complaint("# A\n").contains("has no line `<!-- generated: b -->`"));
        assert!(complaint("<!-- generated: b -->\n").contains("`<!-- end of b -->`"));
        assert!(complaint(&PAGE.repeat(2)).contains("line 10 is a second"));
        let turned = "<!-- end of b -->\n<!-- generated: b -->\n";
        assert!(complaint(turned).contains("stands before"));
    }
}
