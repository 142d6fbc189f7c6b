//! `aegis doctor`: the exit code is the worst verdict, and what is printed says what to do.

use aegis_testkit::process_slot;
use serde_json::Value;

use crate::support::{Place, command, run};

/// A place whose commands run as the reader.
async fn reading() -> Place {
    let place = Place::new().await;
    place
        .db
        .admin
        .batch_execute("select aegis.make_partitions(14)")
        .await
        .unwrap();
    Place {
        url: place.db.url_as("aegis_reader"),
        db: place.db,
    }
}

#[tokio::test]
async fn process_the_worst_verdict_is_the_exit_code() {
    let _slot = process_slot();
    let place = reading().await;
    let look = async |checks: &str| place.run(&["doctor", "--check", checks]).await.code;
    assert_eq!(look("schema,partitions,autovacuum").await, 0);
    // The server of the tests has no standby: a notice.
    assert_eq!(look("sync-standby").await, 0);
    place
        .db
        .admin
        .batch_execute(
            "alter table aegis.task set (autovacuum_enabled = off); revoke select on aegis.parked from aegis_reader",
        )
        .await
        .unwrap();
    assert_eq!(look("schema,autovacuum").await, 20);
    assert_eq!(look("autovacuum,parked").await, 22);
    // The server of the tests does not wait for the disk.
    assert_eq!(look("autovacuum,parked,durability").await, 21);
    // All of them: one that cannot look does not stop the others.
    let all = place.run(&["doctor", "--output", "json"]).await;
    assert_eq!(all.code, 21, "{all:?}");
    let document: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(document["worst"], "critical");
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.len() > 30, "{}", findings.len());
    let parked = findings
        .iter()
        .find(|one| one["check"] == "parked")
        .unwrap();
    assert_eq!(parked["severity"], "unknown", "{parked}");
    assert!(
        parked["todo"][0].as_str().unwrap().contains("GRANT SELECT"),
        "{parked}"
    );
}

#[tokio::test]
async fn process_a_finding_says_what_was_seen_what_it_means_and_what_to_do() {
    let _slot = process_slot();
    let place = reading().await;
    let table = place.run(&["doctor", "--check", "durability,schema"]).await;
    for wanted in [
        "durability",
        "critical",
        "fsync and full_page_writes are off",
        "means: With fsync",
        "do: ALTER SYSTEM SET fsync = on",
        "2 checks: 1 ok, 0 notices, 0 warnings, 0 unknown, 1 critical",
    ] {
        assert!(table.stdout.contains(wanted), "{wanted}: {}", table.stdout);
    }
    let names = place
        .run(&["doctor", "--check", "durability,schema", "--output", "name"])
        .await;
    assert_eq!(names.stdout, "durability\n");
    let yaml = place
        .run(&["doctor", "--check", "schema", "--output", "yaml"])
        .await;
    assert!(yaml.stdout.contains("worst: ok"), "{yaml:?}");
}

#[tokio::test]
async fn process_what_a_doctor_cannot_begin_with_is_no_verdict() {
    let _slot = process_slot();
    let list = run(command(None, &["doctor", "--list", "--output", "name"])).await;
    assert_eq!(list.code, 0, "{list:?}");
    assert!(
        list.stdout.lines().any(|line| line == "stranded"),
        "{list:?}"
    );
    let unknown = run(command(None, &["doctor", "--check", "nonsense"])).await;
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown.stderr.contains("no check `nonsense`") && unknown.stderr.contains("--list"),
        "{unknown:?}"
    );
    let nobody = run(command(
        Some("postgresql://nobody@127.0.0.1:1/none"),
        &["doctor"],
    ))
    .await;
    assert_eq!(nobody.code, 5, "{nobody:?}");
    assert!(
        nobody.stdout.is_empty() && nobody.stderr.contains("127.0.0.1 port 1"),
        "{nobody:?}"
    );
}
