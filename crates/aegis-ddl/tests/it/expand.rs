//! The files of all lists once more, as `[expand]` of a change: there a warning counts, what a version before meets wants a reason, and
//! what is opaque wants a proof; each statement has a transaction of its own. `expand.txt` holds each whose class is another one there,
//! and why.
//!
//! `UPDATE_GOLDEN=1 cargo test -p aegis-ddl --test it expand` writes it again; read what changed.

use std::fmt::Write as _;

use aegis_ddl::Phase;

use crate::classes::{class_in, class_of};

const GOLDEN: &str = include_str!("expand.txt");

/// Title, server and text of each file.
fn files() -> Vec<(String, u32, String)> {
    let server = |text: &str| -> (u32, String) {
        match text.strip_prefix('@') {
            Some(rest) => {
                let (major, rest) = rest.split_once(' ').unwrap();
                (major.parse().unwrap(), rest.to_owned())
            }
            None => (18, text.to_owned()),
        }
    };
    let lines = [crate::plain::CORPUS, crate::hostile::CORPUS]
        .into_iter()
        .flat_map(str::lines);
    let mut all: Vec<(String, u32, String)> = lines
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (major, sql) = server(line.split_once(' ').unwrap().1);
            (sql.clone(), major, sql)
        })
        .collect();
    for (list, text) in crate::real::LISTS {
        for entry in text.split("-- >>> ").skip(1) {
            let (head, sql) = entry.split_once('\n').unwrap();
            let (major, title) = server(head.split_once(' ').unwrap().1);
            all.push((format!("{list}: {title}"), major, sql.to_owned()));
        }
    }
    all
}

#[test]
fn each_class_that_is_another_one_in_expand_is_listed() {
    let (mut other, mut count) = (String::new(), 0);
    for (title, server, sql) in files() {
        count += 1;
        let (plain, _) = class_of(&sql, server);
        let (in_expand, rules) = class_in(&sql, server, Some(Phase::Expand));
        if plain != in_expand {
            writeln!(other, "{plain}>{in_expand} ({rules}) {title}").unwrap();
        }
    }
    assert!(count > 600, "{count} files");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/expand.txt");
        std::fs::write(path, &other).unwrap();
        return;
    }
    let differs: Vec<_> = other
        .lines()
        .filter(|line| !GOLDEN.lines().any(|other| other == *line))
        .chain(
            GOLDEN
                .lines()
                .filter(|line| !other.lines().any(|other| other == *line)),
        )
        .collect();
    assert!(differs.is_empty(), "{}", differs.join("\n"));
}
