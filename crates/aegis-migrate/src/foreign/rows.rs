//! Rows behind COPY … FROM stdin, as pg_dump and psql write them: they are data, so they are blank.

/// A file without such rows; lines keep their numbers.
pub(super) fn without(text: &str) -> String {
    if !text.to_ascii_lowercase().contains("from stdin") {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut in_rows = false;
    // The beginning of the statement that a line ends.
    let mut before = String::new();
    for line in text.split_inclusive('\n') {
        let plain = line.trim_end_matches(['\r', '\n']);
        if in_rows {
            in_rows = plain != "\\.";
            kept.push_str(&line[plain.len()..]);
            continue;
        }
        kept.push_str(line);
        let said = plain.trim().to_ascii_lowercase();
        if said.is_empty() || said.starts_with("--") {
            continue;
        }
        before.push(' ');
        before.push_str(&said);
        if said.ends_with(';') {
            let words = before.trim_start();
            in_rows = words.starts_with("copy ")
                && words.contains(" from stdin")
                && !words[..words.len() - 1].contains(';');
            before.clear();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn rows_are_blank_and_what_follows_them_is_not() {
        let text = "CREATE TABLE a (b text);\nCOPY public.a (b) FROM stdin;\nit's 1;\n\\N\n\\.\n\nSELECT 1;\n";
        assert_eq!(
            without(text),
            "CREATE TABLE a (b text);\nCOPY public.a (b) FROM stdin;\n\n\n\n\nSELECT 1;\n"
        );
        let split = "COPY a\n  FROM STDIN (FORMAT csv);\n1,2\n\\.\nSELECT 1;";
        assert_eq!(
            without(split),
            "COPY a\n  FROM STDIN (FORMAT csv);\n\n\nSELECT 1;"
        );
        let other = "COPY a FROM '/x';\nSELECT 'from stdin';\nSELECT 2;";
        assert_eq!(without(other), other);
    }
}
