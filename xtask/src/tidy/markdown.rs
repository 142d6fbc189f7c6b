//! The little Markdown that checks read: tables, code spans, links, headings.

/// A row of a table, with its cells trimmed and its line from 1. Separator rows are left out.
pub(super) struct Row<'a> {
    pub(super) line: usize,
    pub(super) cells: Vec<&'a str>,
    /// The cells of the table's head.
    pub(super) head: Vec<&'a str>,
}

/// All rows of all tables but their heads.
pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    let mut head: Option<Vec<&str>> = None;
    for (line, text) in prose_lines(text) {
        let Some(inner) = text.trim().strip_prefix('|') else {
            head = None;
            continue;
        };
        let cells: Vec<&str> = inner
            .strip_suffix('|')
            .unwrap_or(inner)
            .split('|')
            .map(str::trim)
            .collect();
        match &head {
            None => head = Some(cells),
            Some(_) if cells.iter().all(|cell| is_rule(cell)) => {}
            Some(head) => rows.push(Row {
                line,
                cells,
                head: head.clone(),
            }),
        }
    }
    rows
}

fn is_rule(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|char| matches!(char, '-' | ':'))
}

/// Lines outside fenced code, from 1.
pub(super) fn prose_lines(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let fence = text.trim_start().starts_with("```");
        fenced ^= fence;
        if !fenced && !fence {
            lines.push((line, text));
        }
    }
    lines
}

/// What stands between backticks in a line.
pub(super) fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Targets of `[text](target)` and `[name]: target` in a line, outside code.
pub(super) fn link_targets(line: &str) -> Vec<String> {
    // Code is blanked, not cut, so that `[`a`](b)` stays a link.
    let prose: String = line
        .split('`')
        .enumerate()
        .map(|(at, part)| {
            if at % 2 == 0 {
                part.to_owned()
            } else {
                "x".repeat(part.len())
            }
        })
        .collect();
    let mut targets = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let rest = &prose[at + 2..];
        let end = rest.find(')').unwrap_or(rest.len());
        targets.extend(rest[..end].split_whitespace().next().map(str::to_owned));
    }
    if let Some((_, target)) = prose
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
    {
        targets.extend(target.split_whitespace().next().map(str::to_owned));
    }
    targets
}

/// The anchors of a page as GitHub makes them.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose_lines(text) {
        if let Some(heading) = line.strip_prefix('#') {
            let slug = slug(heading.trim_start_matches('#'));
            let again = anchors.iter().filter(|known| **known == slug).count();
            anchors.push(slug.clone());
            if again > 0 {
                anchors.push(format!("{slug}-{again}"));
            }
        }
        for mark in ["id=\"", "name=\""] {
            anchors.extend(
                line.split(mark)
                    .skip(1)
                    .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())),
            );
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|char| char.is_alphanumeric() || matches!(char, '-' | '_' | ' '))
        .map(|char| if char == ' ' { '-' } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    //! Each of the four.

    use super::{anchors, code_spans, link_targets, rows};

    #[test]
    fn tables_lose_their_heads_and_rules() {
        let text = "| a | b |\n|---|:-:|\n| 1 | 2 |\n\n```\n| no |\n```\n| c |\n| - |\n| 3 |\n";
        let rows: Vec<_> = rows(text)
            .into_iter()
            .map(|row| (row.line, row.cells, row.head))
            .collect();
        assert_eq!(
            rows,
            [
                (3, vec!["1", "2"], vec!["a", "b"]),
                (10, vec!["3"], vec!["c"])
            ]
        );
    }

    #[test]
    fn spans_and_links_are_told_apart() {
        assert_eq!(code_spans("a `b` c `d e`"), ["b", "d e"]);
        assert_eq!(
            link_targets("[a](b.md#c) and [`d`](e \"t\") not `[f](g)`"),
            ["b.md#c", "e"]
        );
        assert_eq!(link_targets("[a]: ../b.md"), ["../b.md"]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# Who uses it?\n## `make` & friends\n## Who uses it?\n<a id=\"x\"></a>\n";
        assert_eq!(
            anchors(text),
            [
                "who-uses-it",
                "make--friends",
                "who-uses-it",
                "who-uses-it-1",
                "x"
            ]
        );
    }
}
