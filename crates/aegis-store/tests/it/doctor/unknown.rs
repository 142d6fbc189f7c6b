//! A check that could not run is unknown, for every check and every cause, and stops no other.

use std::time::Duration;

use aegis_store::Config;
use aegis_store::doctor::{self, CHECKS, Severity};

use super::{Patient, examine};
use crate::support::Bed;

#[tokio::test]
async fn every_check_that_cannot_look_is_unknown() {
    let patient = Patient::new().await;
    // In this database alone.
    patient
        .bed
        .sql("revoke execute on function pg_catalog.set_config(text, text, boolean) from public")
        .await;
    let findings = patient.examine(&[]).await;
    assert_eq!(findings.len(), CHECKS.len());
    for finding in &findings {
        // The pooler is looked for without a transaction.
        if finding.check == "pooler" {
            continue;
        }
        assert_eq!(finding.severity, Severity::Unknown, "{finding:?}");
        assert!(
            finding.seen.contains("could not run") && !finding.todo.is_empty(),
            "{finding:?}"
        );
    }
    assert_eq!(doctor::worst(&findings), Severity::Unknown);
    assert_eq!(
        doctor::worst(&[]),
        Severity::Unknown,
        "nothing was looked at"
    );
}

#[tokio::test]
async fn without_rights_what_needs_them_is_unknown_and_the_rest_is_judged() {
    let patient = Patient::new().await;
    patient
        .bed
        .sql("revoke usage on schema aegis from aegis_reader")
        .await;
    let findings = patient.examine(&[]).await;
    let of = |id: &str| findings.iter().find(|finding| finding.check == id).unwrap();
    for id in [
        "schema",
        "lineage",
        "workers",
        "stranded",
        "expired-running",
        "unknown-operations",
        "oldest-snapshot",
        "housekeeping",
    ] {
        assert_eq!(of(id).severity, Severity::Unknown, "{:?}", of(id));
        assert!(of(id).todo[0].contains("GRANT"), "{:?}", of(id));
    }
    for id in ["server-version", "role-settings"] {
        assert_eq!(of(id).severity, Severity::Ok, "{:?}", of(id));
    }
}

#[tokio::test]
async fn a_check_that_hangs_ends_by_its_own_limit_and_the_next_one_runs() {
    let patient = Patient::new().await;
    let mut blocker = patient.bed.db.connect().await;
    let transaction = blocker.transaction().await.unwrap();
    transaction
        .batch_execute("lock table aegis.pause in access exclusive mode")
        .await
        .unwrap();
    let config = Config::from_url(&patient.bed.db.url_as("aegis_reader")).unwrap();
    let checks: Vec<_> = ["pauses", "twice"]
        .iter()
        .map(|id| doctor::find(id).unwrap())
        .collect();
    let findings = doctor::examine(config, Duration::from_secs(1), &checks)
        .await
        .unwrap();
    assert_eq!(findings[0].severity, Severity::Unknown, "{:?}", findings[0]);
    assert!(
        findings[0].todo[0].contains("--timeout 4"),
        "{:?}",
        findings[0]
    );
    assert_eq!(findings[1].severity, Severity::Ok, "{:?}", findings[1]);
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn a_database_without_the_schema_is_critical_and_nothing_of_it_is_ok() {
    let db = aegis_testkit::TestDb::empty().await;
    // The roles are there when another test's database has made them.
    drop(Bed::new().await);
    let findings = examine(&db.url(), &[]).await;
    let schema = findings
        .iter()
        .find(|finding| finding.check == "schema")
        .unwrap();
    assert_eq!(schema.severity, Severity::Critical, "{schema:?}");
    for id in [
        "workers",
        "stranded",
        "partitions",
        "indexes",
        "dead-rows",
        "twice",
        "housekeeping",
        "oldest-snapshot",
    ] {
        let finding = findings.iter().find(|finding| finding.check == id).unwrap();
        assert_eq!(finding.severity, Severity::Unknown, "{finding:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_an_error_and_no_verdict() {
    let config = Config::from_url("postgresql://nobody@127.0.0.1:1/none").unwrap();
    let checks: Vec<_> = CHECKS.iter().collect();
    let error = doctor::examine(config, Duration::from_secs(1), &checks)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
