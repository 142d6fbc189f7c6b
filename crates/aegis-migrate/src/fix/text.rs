//! A file of SQL as statements with what leads each: so that one can be replaced or taken out, and every other byte stays.

use std::fmt::Write as _;

use aegis_ddl::Script;

/// A statement with what belongs to it.
#[derive(Debug)]
struct Segment {
    /// Comments and empty lines before it.
    lead: String,
    /// The statement.
    text: String,
    /// The semicolon and the rest of its line.
    tail: String,
}

/// A file, taken apart.
#[derive(Debug)]
pub(super) struct SqlText {
    segments: Vec<Segment>,
    rest: String,
}

impl SqlText {
    pub(super) fn of(sql: &str, script: &Script) -> Self {
        let mut segments = Vec::new();
        let mut at = 0;
        for statement in &script.statements {
            let (start, end) = (statement.span.start.max(at), statement.span.end);
            let after = tail_end(sql, end);
            segments.push(Segment {
                lead: sql[at..start].to_owned(),
                text: sql[start..end].to_owned(),
                tail: sql[end..after].to_owned(),
            });
            at = after;
        }
        Self {
            segments,
            rest: sql[at..].to_owned(),
        }
    }

    pub(super) fn render(&self) -> String {
        let mut sql = String::new();
        for segment in &self.segments {
            sql.push_str(&segment.lead);
            sql.push_str(&segment.text);
            sql.push_str(&segment.tail);
        }
        sql.push_str(&self.rest);
        sql
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Puts statements in place of one; none takes it out. What comes back is the comment that went with what was taken out.
    pub(super) fn replace(&mut self, number: usize, texts: &[String]) -> String {
        if number >= self.segments.len() {
            return String::new();
        }
        let old = self.segments.remove(number);
        if texts.is_empty() {
            let (stays, goes) = own_comment(&old.lead);
            match self.segments.get_mut(number) {
                Some(next) => next.lead.insert_str(0, stays),
                None => self.rest.insert_str(0, stays),
            }
            let beside = old.tail.trim_start_matches(';').trim();
            let mut comment = goes.to_owned();
            if !beside.is_empty() {
                // Into a string: cannot fail.
                writeln!(comment, "{beside}").unwrap_or_default();
            }
            return comment;
        }
        let last = texts.len() - 1;
        for (place, text) in texts.iter().enumerate() {
            let segment = Segment {
                lead: if place == 0 {
                    old.lead.clone()
                } else {
                    String::new()
                },
                text: text.clone(),
                tail: if place == last && (old.tail.contains(';') || self.segments.len() == number)
                {
                    old.tail.clone()
                } else {
                    ";\n".to_owned()
                },
            };
            self.segments.insert(number + place, segment);
        }
        String::new()
    }
}

/// Statements at the end of a file's text.
pub(super) fn append(sql: &str, comment: &str, texts: &[String]) -> String {
    let mut sql = sql.trim_end().to_owned();
    if !sql.is_empty() {
        if !ends_with_semicolon(&sql) {
            // A comment after the last statement would swallow it.
            sql.push_str(if has_comment_in_last_line(&sql) {
                "\n;"
            } else {
                ";"
            });
        }
        sql.push('\n');
    }
    sql.push_str(comment);
    for text in texts {
        sql.push_str(text);
        sql.push_str(";\n");
    }
    sql
}

fn has_comment_in_last_line(sql: &str) -> bool {
    sql.lines()
        .next_back()
        .is_some_and(|line| line.contains("--"))
}

/// Whether the last statement of a text has its end; a comment after it is passed over.
fn ends_with_semicolon(sql: &str) -> bool {
    let Ok(script) = aegis_ddl::read(sql) else {
        return true;
    };
    script
        .statements
        .last()
        .is_none_or(|last| sql[last.span.end..].contains(';'))
}

/// Of what leads a statement: what stays in the file, and the comment right above it.
fn own_comment(lead: &str) -> (&str, &str) {
    let at = lead
        .rfind("\n\n")
        .map(|at| at + 2)
        .or_else(|| lead.rfind("\r\n\r\n").map(|at| at + 4))
        .unwrap_or(0);
    let (stays, goes) = lead.split_at(at);
    (stays, goes.trim_start())
}

/// Past the semicolon, and past the end of the line when nothing but a comment follows on it.
fn tail_end(sql: &str, end: usize) -> usize {
    let Some(semicolon) = sql[end..].find(';').map(|at| end + at + 1) else {
        return end;
    };
    let line = sql[semicolon..]
        .find('\n')
        .map_or(sql.len(), |at| semicolon + at + 1);
    let beside = sql[semicolon..line].trim();
    if beside.is_empty() || beside.starts_with("--") {
        line
    } else {
        semicolon
    }
}

#[cfg(test)]
mod tests {
    use super::SqlText;

    #[test]
    fn what_is_not_touched_stays_byte_for_byte() {
        let sql = "-- head\n\n-- about a\nSELECT 1; -- beside\nSELECT 2;SELECT 3\n-- end\n";
        let script = aegis_ddl::read(sql).unwrap();
        let mut text = SqlText::of(sql, &script);
        assert_eq!(text.render(), sql);
        let comment = text.replace(0, &[]);
        assert_eq!(comment, "-- about a\n-- beside\n");
        assert_eq!(text.render(), "-- head\n\nSELECT 2;SELECT 3\n-- end\n");
        text.replace(0, &["SELECT 4".to_owned(), "SELECT 5".to_owned()]);
        assert_eq!(
            text.render(),
            "-- head\n\nSELECT 4;\nSELECT 5;SELECT 3\n-- end\n"
        );
    }
}
