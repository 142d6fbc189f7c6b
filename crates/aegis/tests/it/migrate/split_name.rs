//! The guide "splitting a column while two versions write": its script is run as it stands, with fewer rows, and what it shows for
//! Kubernetes names commands that exist.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use aegis_testkit::{TestDb, process_slot};
use serde_json::Value;

use crate::support::{BINARY, command, run};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/split-name")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(example().join(name)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_the_script_splits_the_name_while_both_programs_write() {
    let _slot = process_slot();
    let db = TestDb::empty().await;
    let mut script = std::process::Command::new(example().join("run.sh"));
    script
        .env("AEGIS_DATABASE_URL", db.url())
        .env("AEGIS", BINARY)
        .env("ROWS", "20000")
        .stdin(Stdio::null());
    let ran = run(script).await;
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    let columns = "SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'app.users'::regclass AND attnum > 0 AND NOT attisdropped";
    let left: String = db.admin.query_one(columns, &[]).await.unwrap().get(0);
    assert_eq!(left, "id first_name last_name");
    let rows = "SELECT count(*), count(*) FILTER (WHERE first_name IS NULL) FROM app.users";
    let row = db.admin.query_one(rows, &[]).await.unwrap();
    // Both programs insert, too.
    assert!(row.get::<_, i64>(0) > 20_000, "{}", ran.stdout);
    assert_eq!(row.get::<_, i64>(1), 0, "{}", ran.stdout);
}

/// Each shell block of the guide stands in the script, command by command.
#[test]
fn the_guide_shows_the_commands_of_the_script() {
    let guide = example().join("../../docs/guides/split-a-column.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let script = text("run.sh").replace("\"$AEGIS\" migrate", "aegis migrate");
    let mut commands = 0;
    let mut is_open = false;
    for line in guide.lines() {
        if line.starts_with("```") {
            is_open = line == "```sh";
        } else if is_open && line.starts_with("aegis migrate") {
            commands += 1;
            let command = line.split(" #").next().unwrap_or_default().trim();
            assert!(script.contains(command), "the script has no: {command}");
        }
    }
    assert!(commands >= 10, "{commands}");
}

fn container<'a>(object: &'a Value, list: &str) -> &'a Value {
    &object["spec"]["template"]["spec"][list][0]
}

#[test]
fn mg_37_the_presync_job_is_deleted_before_the_next_one_only() {
    let job: Value = yaml_serde::from_str(&text("deploy/presync-job.yaml")).unwrap();
    let notes = &job["metadata"]["annotations"];
    assert_eq!(notes["argocd.argoproj.io/hook"], "PreSync");
    assert_eq!(
        notes["argocd.argoproj.io/hook-delete-policy"],
        "BeforeHookCreation"
    );
    let deployment: Value = yaml_serde::from_str(&text("deploy/deployment.yaml")).unwrap();
    // One digest for the hook and the check: what was reviewed is what runs.
    assert_eq!(
        container(&job, "containers")["image"],
        container(&deployment, "initContainers")["image"]
    );
}

/// The documents of the collector's file, by their kind.
fn collector(kind: &str) -> Value {
    let text = text("deploy/collector.yaml");
    let documents = text.split("\n---\n").map(yaml_serde::from_str);
    let mut found = documents
        .map(Result::unwrap)
        .filter(|one: &Value| one["kind"] == kind);
    let one = found.next().unwrap();
    assert!(found.next().is_none(), "two of {kind}");
    one
}

#[test]
fn the_collector_may_list_and_nothing_else_and_looks_often_enough() {
    let role = collector("Role");
    let mut resources = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        assert_eq!(rule["verbs"], serde_json::json!(["get", "list"]));
        for resource in rule["resources"].as_array().unwrap() {
            resources.push(resource.as_str().unwrap().to_owned());
        }
    }
    let job = collector("CronJob");
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    // It asks for what it may list, all of it, and never for one page.
    let asks = pod["initContainers"][0]["args"][0].as_str().unwrap();
    for resource in &resources {
        assert!(asks.contains(resource.as_str()), "{asks}");
    }
    assert!(asks.contains("--chunk-size=0"), "{asks}");
    let account = &collector("ServiceAccount")["metadata"]["name"];
    assert_eq!(&pod["serviceAccountName"], account);
    let binding = collector("RoleBinding");
    assert_eq!(&binding["subjects"][0]["name"], account);
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    // Every two minutes, one at a time, each ended before the next: the default of bundle_max_age_s is 300.
    assert_eq!(job["spec"]["schedule"], "*/2 * * * *");
    assert_eq!(job["spec"]["concurrencyPolicy"], "Forbid");
    let deadline = &job["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"];
    assert!(deadline.as_i64().unwrap() < 120);
    for list in ["initContainers", "containers"] {
        for container in pod[list].as_array().unwrap() {
            let limits = &container["securityContext"];
            assert_eq!(limits["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(limits["readOnlyRootFilesystem"], true, "{container}");
            let image = container["image"].as_str().unwrap();
            assert!(image.contains("@sha256:"), "{image}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn process_the_commands_in_the_manifests_exist() {
    let _slot = process_slot();
    let job: Value = yaml_serde::from_str(&text("deploy/presync-job.yaml")).unwrap();
    let deployment: Value = yaml_serde::from_str(&text("deploy/deployment.yaml")).unwrap();
    let cron_job = collector("CronJob");
    let pod = &cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    for container in [
        container(&job, "containers"),
        container(&deployment, "initContainers"),
        &pod["initContainers"][1],
        &pod["containers"][0],
    ] {
        let words = container["args"].as_array().unwrap();
        let mut words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).collect();
        words.insert(0, "migrate");
        words.push("--print-config");
        let ran = run(command(None, &words)).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
    }
}
