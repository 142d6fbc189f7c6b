//! The engine's changes under the same judge as anybody's.

use aegis_ddl::{Class, Context, judge};
use aegis_migrate::change::{Part, Phase};
use aegis_migrate::plan::source;
use aegis_schema::set;
use aegis_testkit::TestDb;

use crate::support::structure;

#[test]
fn the_set_is_what_was_sealed() {
    let set = set().unwrap();
    set.sealed().unwrap();
    assert_eq!(set.unsealed(), []);
    for change in set.changes.values() {
        assert_eq!(change.schema, "aegis");
        assert!(
            change.expand.as_ref().is_some_and(|expand| expand.atomic),
            "{}",
            change.id
        );
    }
}

/// What may not run on a database in use, of all that was released: on a new one it runs in one go.
#[test]
fn three_statements_need_a_fresh_database() {
    let set = set().unwrap();
    let mut refused = Vec::new();
    let mut all = 0;
    for (line, change) in set.lines() {
        for part in change.parts(line.at.phase) {
            let Part::Sql { key, file } = part else {
                continue;
            };
            let file = source(change, key, file).unwrap();
            let compatible: Vec<aegis_ddl::Compatible> = change
                .compatible(Phase::Expand)
                .iter()
                .map(|one| aegis_ddl::Compatible {
                    rule: one.rule.clone(),
                    reason: one.reason.clone(),
                    phase: None,
                })
                .collect();
            let context = Context {
                server: 18,
                catalog: None,
                schema: "aegis",
                fresh: false,
                compatible: &compatible,
            };
            let lines: Vec<usize> = file.script.statements.iter().map(|one| one.line).collect();
            for (verdict, at) in judge(&[file], &context).verdicts.iter().zip(lines) {
                all += 1;
                assert_ne!(verdict.class, Class::D, "{}:{at}", line.at.id);
                if !verdict.passes {
                    refused.push(format!("{} line {at}: {}", line.at.id, verdict.class));
                }
            }
        }
    }
    assert_eq!(
        refused,
        [
            "20261129T2244_functions line 253: B",
            "20261129T2247_views_roles line 35: E",
            "20261130T0206_look line 5: B",
        ]
    );
    assert_eq!(all, 129);
}

/// The structure that is compared when a database of before is taken over is what the lock made when it was sealed.
#[tokio::test]
async fn an_installed_database_is_what_was_sealed_for_its_server() {
    let db = TestDb::new().await;
    let found = structure(&db.admin).await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../aegis-store/migrations");
    let path = format!("{folder}/schema.{}.json", found.server_major);
    let sealed =
        aegis_catalog::Structure::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    let wrong: Vec<String> = sealed
        .compare(&found)
        .unwrap()
        .iter()
        .filter(|one| one.is_wrong())
        .map(ToString::to_string)
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}
