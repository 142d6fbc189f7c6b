//! What the judge says of a file without a catalog.

use aegis_ddl::{Class, Context, Phase, SourceFile, Verdict, judge, read};

/// The worst class of a file of a plain folder without a catalog, and the rules that gave it.
pub(super) fn class_of(sql: &str, server: u32) -> (Class, String) {
    class_in(sql, server, None)
}

/// The same in a part of a change, without a proof of what is opaque and without a reason for what a version before meets.
pub(super) fn class_in(sql: &str, server: u32, phase: Option<Phase>) -> (Class, String) {
    let verdicts = judged(&[sql], server, phase);
    let worst = verdicts
        .iter()
        .max_by_key(|verdict| "ACDBE".find(&format!("{}", verdict.class)))
        .unwrap_or_else(|| panic!("no statement in {sql}"));
    let rules: Vec<_> = worst.findings.iter().map(|finding| finding.rule).collect();
    (worst.class, rules.join(" "))
}

/// What is said of each statement of these files.
pub(super) fn judged(files: &[&str], server: u32, phase: Option<Phase>) -> Vec<Verdict> {
    let files: Vec<_> = files
        .iter()
        .map(|sql| SourceFile {
            path: "a.sql".to_owned(),
            script: read(sql).unwrap_or_else(|error| panic!("{sql}: {error}")),
            phase,
            atomic: phase.map(|_| false),
            proven: false,
        })
        .collect();
    let context = Context {
        server,
        catalog: None,
        schema: "public",
        fresh: false,
        compatible: &[],
    };
    judge(&files, &context).verdicts
}
