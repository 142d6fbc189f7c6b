//! Every rule of `docs/migrate-rules.md` has a form in `facts/forms.toml`, so that a server was asked about it; or it says here why not.

use std::collections::BTreeSet;

use aegis_ddl::rules;

use crate::classes::judged;

const PAGE: &str = include_str!("../../../../docs/migrate-rules.md");
const FORMS: &str = include_str!("../../facts/forms.toml");

/// What is about more than one statement: a form is one.
const SEVERAL: &str = "it is about several statements, and a form is one";
/// What fails whatever the table is like: there is no lock and no scan to measure.
const REFUSED: &str = "the server refuses it, so there is nothing to measure";
/// What is about what programs meet: no lock says anything of it.
const PROGRAMS: &str = "it is about what programs meet, and locks nothing that they use";
/// What stands in a change.toml.
const CHANGE: &str = "it is about the change.toml of a change, not about a statement";

/// Rules without a form, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("already-there", SEVERAL),
    ("backfill-key", CHANGE),
    ("backfill-range", CHANGE),
    (
        "concurrently-if-not-exists",
        "its locks are those of CREATE INDEX CONCURRENTLY, which has a form",
    ),
    ("concurrently-in-transaction", REFUSED),
    (
        "dependent-in-the-way",
        "it needs a catalog: the forms of ALTER TYPE with a view, a policy or a trigger are judged with one in judge.rs",
    ),
    ("foreign-key-target", REFUSED),
    (
        "opaque-sql",
        "nobody can say what it does, so no form can stand for it",
    ),
    ("replace-function", PROGRAMS),
    ("replace-view-columns", REFUSED),
    ("replica-identity", PROGRAMS),
    ("statement-after-strong-lock", SEVERAL),
    ("sync-volatile", CHANGE),
    ("transaction-in-file", SEVERAL),
    ("use-of-new-enum-value", SEVERAL),
    ("validate-in-same-transaction", SEVERAL),
    ("write-to-generated", REFUSED),
];

/// The names in the first column of the table.
fn on_the_page() -> Vec<String> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| "));
    let names = rows
        .skip(1)
        .filter(|row| !row.contains("---"))
        .flat_map(|row| {
            let first = row.split('|').nth(1).unwrap_or_default();
            first
                .split(',')
                .map(|name| name.replace("(old program)", "").trim().to_owned())
                .collect::<Vec<_>>()
        });
    names.collect()
}

/// The rules that speak of at least one measured statement.
fn measured() -> BTreeSet<&'static str> {
    let forms: toml::Table = FORMS.parse().unwrap();
    let mut spoken = BTreeSet::new();
    for form in forms["form"].as_array().unwrap() {
        let text = |key: &str, other: &str| {
            let given = form.get(key).and_then(toml::Value::as_str);
            given.unwrap_or(other).to_owned()
        };
        let (data_type, value) = (text("type", "text"), text("value", "'a'"));
        let statement = text("statement", "")
            .replace("{value}", &value)
            .replace("{type}", &data_type);
        // The table as the forms have it, deployed before.
        let table = format!(
            "CREATE TABLE t (id int PRIMARY KEY, c {data_type}, d int); CREATE INDEX ON t (c)"
        );
        for verdict in judged(&[&table, &statement], 18, None) {
            spoken.extend(verdict.findings.iter().map(|finding| finding.rule));
        }
    }
    // Forms that make a table of this name have it twice here.
    spoken.remove("already-there");
    spoken
}

#[test]
fn every_rule_of_the_page_has_a_measured_form_or_a_reason() {
    let names = on_the_page();
    assert!(names.len() > 50, "{names:?}");
    let measured = measured();
    let mut wrong = Vec::new();
    for name in &names {
        if rules::find(name).is_none() {
            wrong.push(format!(
                "{name}: the page names it, and there is no such rule"
            ));
        }
        let reason = WITHOUT.iter().find(|(rule, _)| rule == name);
        match (measured.contains(name.as_str()), reason) {
            (false, None) => wrong.push(format!("{name}: no form, and no reason")),
            (true, Some(_)) => wrong.push(format!("{name}: it has a form, take its reason out")),
            _ => {}
        }
    }
    for (rule, _) in WITHOUT {
        if !names.iter().any(|name| name == rule) {
            wrong.push(format!("{rule}: the page does not name it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
