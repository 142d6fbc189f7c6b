//! The index of the error pages, from their headings.
//!
//! That each code has its page and each page its code is the business of `cargo xtask tidy`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

/// A table: code with a link, meaning.
pub(super) fn index(root: &Path) -> anyhow::Result<String> {
    let folder = root.join("docs/errors");
    let listing = || format!("cannot list {}", folder.display());
    let mut codes = Vec::new();
    for entry in fs::read_dir(&folder).with_context(listing)? {
        let name = entry.with_context(listing)?.file_name();
        let code = name.to_str().and_then(|name| name.strip_suffix(".md"));
        codes.extend(
            code.filter(|code| code.starts_with("AEG-"))
                .map(str::to_owned),
        );
    }
    codes.sort_unstable();
    let mut table = String::from("| code | meaning |\n| --- | --- |\n");
    for code in &codes {
        let page = folder.join(format!("{code}.md"));
        let text =
            fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let Some(meaning) = meaning(&text, code) else {
            bail!("{} does not open with `# {code}: …`", page.display());
        };
        writeln!(table, "| [{code}]({code}.md) | {meaning} |")?;
    }
    Ok(table)
}

fn meaning<'a>(page: &'a str, code: &str) -> Option<&'a str> {
    let heading = page.lines().next()?.strip_prefix("# ")?;
    let meaning = heading.strip_prefix(code)?.strip_prefix(": ")?.trim();
    (!meaning.is_empty()).then_some(meaning)
}

#[cfg(test)]
mod tests {
    //! Headings and folders.

    use std::fs;

    use super::{index, meaning};

    #[test]
    fn a_heading_is_code_colon_meaning() {
        assert_eq!(
            meaning("# AEG-0001: too large\n", "AEG-0001"),
            Some("too large")
        );
        for bad in [
            "",
            "AEG-0001: a",
            "# AEG-0002: a",
            "# AEG-0001 a",
            "# AEG-0001: ",
        ] {
            assert_eq!(meaning(bad, "AEG-0001"), None, "{bad}");
        }
    }

    #[test]
    fn pages_are_listed_in_the_order_of_their_codes() {
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("docs/errors");
        fs::create_dir_all(&pages).unwrap();
        for (name, text) in [
            ("AEG-0002.md", "# AEG-0002: second\n"),
            ("README.md", "# Errors\n"),
            ("AEG-0001.md", "# AEG-0001: first\n"),
        ] {
            fs::write(pages.join(name), text).unwrap();
        }
        assert_eq!(
            index(folder.path()).unwrap(),
            "| code | meaning |\n| --- | --- |\n\
             | [AEG-0001](AEG-0001.md) | first |\n| [AEG-0002](AEG-0002.md) | second |\n"
        );
        fs::write(pages.join("AEG-0003.md"), "# Third\n").unwrap();
        let error = index(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("does not open with `# AEG-0003: …`"),
            "{error}"
        );
    }
}
