//! Tables that fit the terminal.
//!
//! Invariants: a row of a list is one line; on a terminal no line is wider than it; without one nothing is cut. The first
//! column, which names the thing, is cut last. Control characters are shown, not sent.
//!
//! Never: decide what is worth showing.

use comfy_table::{
    Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, presets,
};

use super::look::Look;

/// Narrower than this, a column says nothing.
const COLUMN_MIN: usize = 6;
/// Between two columns.
const GAP: usize = 2;

/// The table, and which columns had no room.
pub(super) fn list(columns: &[&str], rows: Vec<Vec<String>>, look: Look) -> (String, Vec<String>) {
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| row.into_iter().map(|cell| shown(&cell, false)).collect())
        .collect();
    let fits = how_many_fit(columns, &rows, look.width);
    let first_width = content_width(columns, &rows, 0) + GAP;
    let mut table = blank(look);
    let mut header = Row::from(
        columns
            .iter()
            .take(fits)
            .map(|column| {
                let cell = Cell::new(column.to_uppercase());
                if look.colour {
                    cell.add_attribute(Attribute::Bold)
                } else {
                    cell
                }
            })
            .collect::<Vec<_>>(),
    );
    header.max_height(1);
    table.set_header(header);
    for row in rows {
        let cells = row.into_iter().zip(columns).take(fits);
        table.add_row(cells.map(|(text, column)| cell(text, column, look)));
    }
    for row in table.row_iter_mut() {
        row.max_height(1);
    }
    gaps(&mut table);
    if let Some(first) = table.column_mut(0)
        && look
            .width
            .is_none_or(|width| first_width <= usize::from(width))
    {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    let left_out = columns.iter().skip(fits).map(ToString::to_string).collect();
    (table.trim_fmt(), left_out)
}

/// `name  value` lines; a long value goes on below its beginning.
pub(super) fn one(fields: &[(&str, String)], look: Look) -> String {
    let mut table = blank(look);
    for (name, value) in fields {
        let value = cell(shown(value, true), name, look);
        table.add_row([Cell::new(name), value]);
    }
    gaps(&mut table);
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}

fn blank(look: Look) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match look.width {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if look.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table
}

fn gaps(table: &mut Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
}

fn cell(text: String, column: &str, look: Look) -> Cell {
    let colour = if look.colour && column == "state" {
        colour_of(&text)
    } else {
        None
    };
    match colour {
        Some(colour) => Cell::new(text).fg(colour),
        None => Cell::new(text),
    }
}

/// Green is well, yellow wants a look, red wants somebody.
fn colour_of(state: &str) -> Option<Color> {
    Some(match state.split_whitespace().next()? {
        "succeeded" | "accepting" | "resolved" | "open" => Color::Green,
        "running" | "dispatched" => Color::Cyan,
        "draining" | "paused" | "waiting" | "cancelled" | "silent" => Color::Yellow,
        "failed" | "quarantined" | "reconciling" | "unknown" | "lost" | "stranded" => Color::Red,
        _ => return None,
    })
}

/// How many columns, from the left, have room for their least.
fn how_many_fit(columns: &[&str], rows: &[Vec<String>], width: Option<u16>) -> usize {
    let Some(width) = width.map(usize::from) else {
        return columns.len();
    };
    let mut used = 0;
    for index in 0..columns.len() {
        let needed = content_width(columns, rows, index);
        used += if index == 0 {
            needed
        } else {
            needed.min(COLUMN_MIN)
        } + GAP;
        if used > width && index > 0 {
            return index;
        }
    }
    columns.len()
}

/// How wide a column would like to be; in characters, which is enough to decide what is left out.
fn content_width(columns: &[&str], rows: &[Vec<String>], index: usize) -> usize {
    let header = columns
        .get(index)
        .map_or(0, |column| column.chars().count());
    rows.iter()
        .filter_map(|row| row.get(index))
        .map(|text| text.chars().count())
        .fold(header, usize::max)
}

/// The text without anything that a terminal would obey.
pub(super) fn shown(text: &str, lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' if lines => out.push('\n'),
            '\n' | '\t' => out.push(' '),
            other if other.is_control() || is_bidi(other) => out.extend(other.escape_unicode()),
            other => out.push(other),
        }
    }
    out
}

/// Marks that turn what follows around, so that it reads as something else.
fn is_bidi(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 4] = ["id", "state", "error", "submitted"];
    const ID: &str = "01a2298f-f728-794d-b26f-883eeb2f57a9";

    fn rows() -> Vec<Vec<String>> {
        let row = |state: &str, error: &str| {
            [ID, state, error, "2026-11-30 01:02:03.004Z"]
                .map(str::to_owned)
                .to_vec()
        };
        vec![
            row(
                "failed",
                "the service said\nno, and this is a very long text of what it said there",
            ),
            row("succeeded", "日本語日本語日本語日本語日本語日本語日本語"),
        ]
    }

    fn at_width(width: u16) -> (String, Vec<String>) {
        list(
            &COLUMNS,
            rows(),
            Look {
                colour: false,
                width: Some(width),
            },
        )
    }

    #[test]
    fn a_list_fits_any_terminal_on_one_line_a_row() {
        for width in 2..200 {
            let (text, left_out) = at_width(width);
            assert_eq!(text.lines().count(), 3, "at {width}:\n{text}");
            for line in text.lines() {
                assert!(
                    wide(line) <= usize::from(width).max(2),
                    "at {width}:\n{text}"
                );
            }
            assert!(
                width < 62 || left_out.is_empty(),
                "at {width}: {left_out:?}"
            );
            assert!(
                width < 40 || text.contains(ID),
                "the id is whole at {width}:\n{text}"
            );
        }
        assert!(at_width(80).0.contains('…'));
        assert_eq!(at_width(44).1, ["state", "error", "submitted"]);
    }

    /// Columns on a terminal; these characters are two wide.
    fn wide(line: &str) -> usize {
        line.chars()
            .map(|c| {
                if ('\u{3000}'..'\u{a000}').contains(&c) {
                    2
                } else {
                    1
                }
            })
            .sum()
    }

    #[test]
    fn nothing_is_cut_without_a_terminal() {
        let (text, left_out) = list(&COLUMNS, rows(), Look::default());
        assert!(
            text.contains("a very long text of what it said there"),
            "{text}"
        );
        assert!(left_out.is_empty() && !text.contains('…') && !text.contains('\u{1b}'));
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let look = Look {
            colour: true,
            width: None,
        };
        let (text, _) = list(&COLUMNS, rows(), look);
        assert!(text.contains("\u{1b}[38;5;9mfailed"), "{text:?}");
        assert!(one(&[("state", "succeeded".to_owned())], look).contains("\u{1b}["));
        assert!(!one(&[("state", "succeeded".to_owned())], Look::default()).contains('\u{1b}'));
    }

    #[test]
    fn a_stored_text_cannot_command_the_terminal() {
        let evil = "\u{1b}[2Jgone\u{7}\r\u{9b}31m\u{202e}x".to_owned();
        let (text, _) = list(&["id"], vec![vec![evil.clone()]], Look::default());
        assert!(
            !text
                .chars()
                .any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{text:?}"
        );
        assert!(text.contains("\\u{1b}[2Jgone"), "{text}");
        let text = one(&[("error", evil)], Look::default());
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{text:?}"
        );
    }

    #[test]
    fn a_long_value_goes_on_below_its_beginning() {
        let value = "one two three four five six seven eight nine ten".to_owned();
        let look = Look {
            colour: false,
            width: Some(30),
        };
        let text = one(&[("id", "1".to_owned()), ("reason", value.clone())], look);
        assert!(text.lines().count() > 3, "{text}");
        for line in text.lines().skip(2) {
            assert!(line.starts_with("        ") && line.len() <= 30, "{text}");
        }
        assert_eq!(
            text.lines()
                .skip(1)
                .flat_map(str::split_whitespace)
                .skip(1)
                .collect::<Vec<_>>()
                .join(" "),
            value
        );
    }
}
