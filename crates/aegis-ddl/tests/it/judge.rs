//! The judge beside a real server: every form of the table of facts, with what hangs on its column, in a database that is really so.
//! What the server was measured to do with it is what the judge has to say: a scan or a rewrite under a strong lock, the locks, an
//! error. Sizes are not read, so it is large; of a small size the same scans are let pass.

use std::collections::BTreeMap;

use aegis_catalog::{Catalog, Scope, Size};
use aegis_ddl::{Class, Context, Level, LockMode, SourceFile, Verdict};
use aegis_testkit::TestDb;
use serde_json::Value;

const FORMS: &str = include_str!("../../facts/forms.toml");

/// Forms that hold others up without a scan: their rule is about the wait for the lock.
const WAITS: &[&str] = &[
    "drop-index",
    "reindex",
    "reindex.table",
    "lock-table",
    "detach-partition",
    "detach-partition.default-partition",
    "cluster",
    "vacuum-full",
    "refresh",
    // Rows are their own rule.
    "update-all",
    "delete-all",
    // The server looks into the function's body and finds nothing volatile; here its mark counts.
    "add-column.default-own-volatile",
];

/// Forms that are long under a strong lock, and are told by another rule: every row goes, or nobody writes there.
const OTHERWISE: &[&str] = &["truncate", "truncate.cascade", "refresh.concurrently"];

/// Forms whose class says no in any case, or whose tables no class depends on.
const LOCKS_NOT_TOLD: &[&str] = &["cluster", "vacuum-full"];

struct Case {
    form: String,
    with: Option<String>,
    setup: String,
    statement: String,
}

fn cases(major: i64) -> Vec<Case> {
    let forms: toml::Table = FORMS.parse().unwrap();
    let text = |table: &toml::Table, key: &str, other: &str| {
        table
            .get(key)
            .and_then(toml::Value::as_str)
            .unwrap_or(other)
            .to_owned()
    };
    let setup = text(&forms, "setup", "");
    let hang = forms["hang"].as_table().unwrap();
    let mut cases = Vec::new();
    for form in forms["form"].as_array().unwrap() {
        let form = form.as_table().unwrap();
        if form.get("since").and_then(toml::Value::as_integer) > Some(major) {
            continue;
        }
        let (data_type, value) = (text(form, "type", "text"), text(form, "value", "'a'"));
        let fill = |text: &str| {
            text.replace("{type}", &data_type)
                .replace("{value}", &value)
        };
        let with = form.get("with").and_then(toml::Value::as_array);
        let with = with.into_iter().flatten().map(|one| one.as_str());
        for with in std::iter::once(None).chain(with) {
            let hung = with.map_or_else(String::new, |with| text(hang, with, ""));
            cases.push(Case {
                form: text(form, "id", ""),
                with: with.map(str::to_owned),
                setup: fill(&format!("{setup};\n{};\n{hung}", text(form, "setup", ""))),
                statement: text(form, "statement", ""),
            });
        }
    }
    cases
}

fn facts(major: i64) -> BTreeMap<(String, Option<String>), Value> {
    let path = format!("{}/facts/pg{major}.json", env!("CARGO_MANIFEST_DIR"));
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    facts["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let with = row["with"].as_str().map(str::to_owned);
            (
                (row["form"].as_str().unwrap().to_owned(), with),
                row.clone(),
            )
        })
        .collect()
}

fn judged(sql: &str, catalog: &Catalog) -> Verdict {
    let file = SourceFile {
        path: "a.sql".to_owned(),
        script: aegis_ddl::read(sql).unwrap(),
        phase: None,
        atomic: None,
        proven: false,
    };
    let context = Context {
        server: catalog.server_major(),
        catalog: Some(catalog),
        schema: "f",
        fresh: false,
        compatible: &[],
    };
    aegis_ddl::judge(&[file], &context).verdicts.remove(0)
}

fn mode(name: &str) -> Option<LockMode> {
    Some(match name {
        "ShareUpdateExclusiveLock" => LockMode::ShareUpdateExclusive,
        "ShareLock" => LockMode::Share,
        "ShareRowExclusiveLock" => LockMode::ShareRowExclusive,
        "ExclusiveLock" => LockMode::Exclusive,
        "AccessExclusiveLock" => LockMode::AccessExclusive,
        _ => return None,
    })
}

#[tokio::test]
async fn the_judge_says_what_the_server_was_measured_to_do() {
    let db = TestDb::empty().await;
    let version: String = db
        .admin
        .query_one("SHOW server_version_num", &[])
        .await
        .unwrap()
        .get(0);
    let major = version.parse::<i64>().unwrap() / 10_000;
    let facts = facts(major);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in cases(major) {
        let Some(row) = facts.get(&(case.form.clone(), case.with.clone())) else {
            wrong.push(format!("{} {:?}: not measured", case.form, case.with));
            continue;
        };
        let fresh = "SET client_min_messages = error; SET search_path = f; DROP SCHEMA IF EXISTS f CASCADE; CREATE SCHEMA f";
        db.admin.batch_execute(fresh).await.unwrap();
        db.admin.batch_execute(&case.setup).await.unwrap();
        let scope = Scope::schemas(["f".to_owned()]).structure_only();
        let mut catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
        seen += 1;
        let verdict = judged(&case.statement, &catalog);
        let mut say = |what: String| {
            let rules: Vec<_> = verdict.findings.iter().map(|one| one.rule).collect();
            wrong.push(format!(
                "{} {}: {what}: {} ({})",
                case.form,
                case.with.as_deref().unwrap_or(""),
                verdict.class,
                rules.join(" ")
            ));
        };
        for relation in &mut catalog.relations {
            relation.size = Some(Size {
                table_bytes: 8192,
                total_bytes: 16384,
                rows: Some(300.0),
            });
        }
        let small = judged(&case.statement, &catalog);
        let of_size = |one: &Verdict| {
            one.findings
                .iter()
                .any(|one| one.class == Class::B && one.level > Level::Notice)
        };
        let moved = ["scans", "rewrites", "rebuilds"]
            .iter()
            .any(|what| row[what].as_array().is_some_and(|all| !all.is_empty()));
        if moved && of_size(&small) {
            say(format!("small, and not let pass: {}", small.class));
        }
        let warns = verdict
            .findings
            .iter()
            .any(|one| matches!(one.class, Class::B | Class::E) && one.level > Level::Notice);
        if row["sqlstate"].is_string() {
            if verdict.class == Class::A || verdict.class == Class::C {
                say(format!("refused ({}) and let pass", row["sqlstate"]));
            }
            continue;
        }
        let long = moved && row["blocks_writes"] == true;
        if long && !warns && !OTHERWISE.contains(&case.form.as_str()) {
            say("long, and let pass".to_owned());
        }
        if !long && warns && !WAITS.contains(&case.form.as_str()) {
            say("short, and a false alarm".to_owned());
        }
        for (relation, measured) in row["locks"].as_object().unwrap() {
            let is_table = catalog
                .relations
                .iter()
                .any(|one| one.name.name == *relation);
            let Some(measured) = mode(measured.as_str().unwrap()).filter(|_| is_table) else {
                continue;
            };
            let said = verdict
                .locks
                .iter()
                .find(|one| one.relation.name == *relation);
            // SHARE UPDATE EXCLUSIVE holds up no program: where it is told it has to be right.
            let silent = measured == LockMode::ShareUpdateExclusive && said.is_none()
                || LOCKS_NOT_TOLD.contains(&case.form.as_str());
            if !silent && said.map(|one| one.mode) != Some(measured) {
                say(format!(
                    "locks {relation} {measured}, said {:?}",
                    said.map(|one| one.mode)
                ));
            }
        }
        for said in &verdict.locks {
            if said.mode >= LockMode::Share && row["locks"].get(&said.relation.name).is_none() {
                say(format!("does not lock {}", said.relation));
            }
        }
    }
    assert!(seen > 300, "{seen} cases");
    assert!(
        wrong.is_empty(),
        "{} of {seen} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
