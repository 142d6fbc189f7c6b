//! The whole help, as one golden file: what a person reads changes only on purpose.
//!
//! `UPDATE_GOLDEN=1 cargo test -p aegis --test it help` writes it again.

use std::fmt::Write as _;
use std::path::Path;

use aegis_testkit::process_slot;

use crate::support::{command, run};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/golden/help.txt");

#[tokio::test]
async fn process_the_whole_help_is_as_it_was_read() {
    let _slot = process_slot();
    let mut text = String::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).chain(["-h"]).collect();
        let mut command = command(None, &words);
        // What clap takes for the width where there is no terminal.
        command.env_remove("COLUMNS");
        let ran = run(command).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
        let help = if path.is_empty() {
            ran.stdout.clone()
        } else {
            own(&ran.stdout)
        };
        writeln!(text, "$ aegis {}\n{}\n", words.join(" "), help.trim_end()).unwrap();
        let mut below: Vec<Vec<String>> = verbs(&ran.stdout)
            .map(|verb| [path.clone(), vec![verb]].concat())
            .collect();
        below.reverse();
        open.extend(below);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(Path::new(GOLDEN).parent().unwrap()).unwrap();
        std::fs::write(GOLDEN, &text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let differs = text
        .lines()
        .zip(golden.lines())
        .position(|(now, then)| now != then);
    assert!(
        text == golden,
        "the help changed at line {:?} of {GOLDEN}; read it, then run with UPDATE_GOLDEN=1",
        differs.map(|line| line + 1)
    );
}

/// Without what every command has, which stands in the first.
fn own(help: &str) -> String {
    let blocks = help
        .split("\n\n")
        .filter(|block| !block.starts_with("For all commands:"));
    blocks.collect::<Vec<_>>().join("\n\n")
}

/// The names below `Commands:`.
fn verbs(help: &str) -> impl Iterator<Item = String> {
    let commands = help
        .split_once("\nCommands:\n")
        .map_or("", |(_, rest)| rest);
    let block = commands.split("\n\n").next().unwrap_or_default();
    let names = block.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?;
        (!name.starts_with(' ')).then(|| name.split_whitespace().next().map(str::to_owned))?
    });
    names
        .filter(|name| name != "help")
        .collect::<Vec<_>>()
        .into_iter()
}
