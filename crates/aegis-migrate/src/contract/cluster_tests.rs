//! Lists as `kubectl get pods,replicasets,deployments,cronjobs,jobs -A -o json` prints them: what is old, what is unknown, what says nothing.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::cluster::{Asked, Known, seen};
use super::need::Need;

const REPO: &str = "registry.example/shop";
const NEW: &str = "sha256:2222";
const AGE: SignedDuration = SignedDuration::from_secs(300);

fn now() -> Timestamp {
    "2026-12-01T10:00:00Z".parse().unwrap()
}

fn asked() -> Asked {
    Asked {
        labels: vec![("app.kubernetes.io/name".to_owned(), "shop".to_owned())],
        repositories: vec![REPO.to_owned()],
        known: vec![Known::read(NEW), Known::read("aegis.dev/release=r2")],
        allow_idle: false,
    }
}

fn meta(name: &str, owner: Option<(&str, &str)>) -> Value {
    let owners: Vec<Value> = owner
        .iter()
        .map(|(kind, name)| json!({ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true }))
        .collect();
    json!({ "name": name, "namespace": "shop", "labels": { "app.kubernetes.io/name": "shop" }, "ownerReferences": owners,
        "creationTimestamp": "2026-12-01T09:00:00Z", "resourceVersion": "71" })
}

fn pod(name: &str, digest: &str, owner: Option<(&str, &str)>) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": meta(name, owner),
        "spec": { "containers": [{ "name": "shop", "image": format!("{REPO}:r") }, { "name": "proxy", "image": "mesh/proxy:1" }] },
        "status": { "phase": "Running", "containerStatuses": [
            { "name": "proxy", "image": "mesh/proxy:1", "imageID": "mesh/proxy@sha256:9999" },
            { "name": "shop", "image": format!("{REPO}:r"), "imageID": format!("docker-pullable://{REPO}@{digest}") }] } })
}

fn replica_set(name: &str, digest: &str, replicas: i64) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta(name, None),
        "spec": { "replicas": replicas, "template": { "metadata": { "labels": { "app.kubernetes.io/name": "shop" } },
            "spec": { "containers": [{ "name": "shop", "image": format!("{REPO}@{digest}") }] } } },
        "status": { "replicas": replicas } })
}

fn cron_job(name: &str, release: &str, suspend: bool) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta(name, None),
        "spec": { "schedule": "0 3 * * *", "suspend": suspend, "jobTemplate": { "spec": { "template": {
            "metadata": { "annotations": { "aegis.dev/release": release } },
            "spec": { "containers": [{ "name": "night", "image": format!("{REPO}:{release}") }] } } } } }, "status": {} })
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "" }, "items": items })
}

fn says(need: Need, list: &Value) -> (Option<bool>, String) {
    with(need, &list.to_string(), &asked(), now())
}

fn with(need: Need, text: &str, asked: &Asked, at: Timestamp) -> (Option<bool>, String) {
    let seen = seen(need, text, asked, at, now(), AGE);
    (seen.holds, seen.detail)
}

#[test]
fn every_workload_must_be_known_to_be_new() {
    let (new, set) = (
        pod("a", NEW, Some(("ReplicaSet", "two"))),
        replica_set("two", NEW, 1),
    );
    let whole = list(&[new.clone(), set.clone()]);
    assert_eq!(says(Need::Pods, &whole).0, Some(true), "{whole}");
    // One that nobody has heard of is old, and so is one that is being deleted.
    let mut going = pod("b", "sha256:1111", Some(("ReplicaSet", "two")));
    going["metadata"]["deletionTimestamp"] = json!("2026-12-01T09:59:00Z");
    let (holds, detail) = says(
        Need::Pods,
        &list(&[new.clone(), set.clone(), going.clone()]),
    );
    assert_eq!(holds, Some(false));
    assert!(
        detail.contains("Pod shop/b (registry.example/shop:r)"),
        "{detail}"
    );
    // It has ended.
    going["status"]["phase"] = json!("Failed");
    assert_eq!(
        says(Need::Pods, &list(&[new.clone(), set.clone(), going])).0,
        Some(true)
    );
    // Another application's is none of ours.
    let mut other = pod("c", "sha256:1111", None);
    other["metadata"]["labels"] = json!({ "app.kubernetes.io/name": "till" });
    other["spec"]["containers"][0]["image"] = json!("registry.example/shopping:r");
    assert_eq!(
        says(Need::Pods, &list(&[new.clone(), set.clone(), other])).0,
        Some(true)
    );
    // Our image under another label is ours.
    let mut hidden = pod("d", "sha256:1111", None);
    hidden["metadata"]["labels"] = json!({});
    assert_eq!(says(Need::Pods, &list(&[new, set, hidden])).0, Some(false));
}

#[test]
fn what_could_be_brought_back_counts_unless_it_is_allowed() {
    let items = [pod("a", NEW, None), replica_set("one", "sha256:1111", 0)];
    let (holds, detail) = says(Need::Pods, &list(&items));
    assert_eq!(holds, Some(false));
    assert!(
        detail.contains("ReplicaSet shop/one") && detail.contains("brought back"),
        "{detail}"
    );
    let mut allowing = asked();
    allowing.allow_idle = true;
    let (holds, detail) = with(Need::Pods, &list(&items).to_string(), &allowing, now());
    assert_eq!(holds, Some(true));
    assert!(detail.contains("not counted"), "{detail}");
    let running = [pod("a", NEW, None), replica_set("one", "sha256:1111", 1)];
    assert_eq!(
        with(Need::Pods, &list(&running).to_string(), &allowing, now()).0,
        Some(false)
    );
    let night = [cron_job("night", "r1", true)];
    assert_eq!(says(Need::Cronjobs, &list(&night)).0, Some(false));
    // It is allowed, and still nothing is known of any that is new.
    assert_eq!(
        with(Need::Cronjobs, &list(&night).to_string(), &allowing, now()).0,
        Some(true)
    );
}

#[test]
fn cron_jobs_and_their_jobs_are_told_by_label_annotation_or_image() {
    assert_eq!(
        says(Need::Cronjobs, &list(&[cron_job("night", "r2", false)])).0,
        Some(true)
    );
    let (holds, detail) = says(
        Need::Cronjobs,
        &list(&[cron_job("night", "r2", false), cron_job("day", "r1", false)]),
    );
    assert_eq!(holds, Some(false));
    assert!(detail.contains("CronJob shop/day"), "{detail}");
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": meta("night-1", Some(("CronJob", "night"))),
        "spec": { "template": { "spec": { "containers": [{ "name": "night", "image": format!("{REPO}:r1") }] } } },
        "status": { "active": 1 } });
    let (holds, detail) = says(
        Need::Cronjobs,
        &list(&[cron_job("night", "r2", false), job.clone()]),
    );
    assert_eq!(holds, Some(false));
    assert!(detail.contains("Job shop/night-1"), "{detail}");
    let mut done = job;
    done["status"] = json!({ "succeeded": 1, "completionTime": "2026-12-01T09:30:00Z" });
    assert_eq!(
        says(
            Need::Cronjobs,
            &list(&[cron_job("night", "r2", false), done])
        )
        .0,
        Some(true)
    );
    // A list of Pods says nothing of CronJobs.
    assert_eq!(says(Need::Cronjobs, &list(&[pod("a", NEW, None)])).0, None);
}

#[test]
fn a_list_that_is_malformed_partial_empty_or_old_says_nothing() {
    let whole = list(&[pod("a", NEW, None)]);
    let nothing = |text: &str, at: Timestamp, why: &str| {
        let (holds, detail) = with(Need::Pods, text, &asked(), at);
        assert_eq!(holds, None, "{why}: {detail}");
        assert!(detail.contains(why), "{why}: {detail}");
    };
    let text = whole.to_string();
    assert_eq!(with(Need::Pods, &text, &asked(), now()).0, Some(true));
    nothing("", now(), "cannot be read");
    nothing(&text[..text.len() / 2], now(), "cannot be read");
    let status = json!({ "kind": "Status", "status": "Failure", "message": "pods is forbidden", "items": [] });
    nothing(&status.to_string(), now(), "no list");
    nothing(&list(&[]).to_string(), now(), "no Pod of the application");
    for page in [
        json!({ "continue": "abc" }),
        json!({ "remainingItemCount": 3 }),
    ] {
        let mut partial = whole.clone();
        partial["metadata"] = page;
        nothing(&partial.to_string(), now(), "one page of several");
    }
    let orphan = list(&[pod("a", NEW, Some(("ReplicaSet", "two")))]);
    nothing(&orphan.to_string(), now(), "which the list has not");
    let mut bare = whole.clone();
    bare["items"][0]["spec"] = json!({});
    nothing(&bare.to_string(), now(), "no container");
    nothing(
        &text,
        now() - SignedDuration::from_secs(301),
        "it may be 300 s old",
    );
    nothing(
        &text,
        now() + SignedDuration::from_secs(61),
        "it may be 300 s old",
    );
    let mut future = whole;
    future["items"][0]["metadata"]["creationTimestamp"] = json!("2026-12-01T10:02:00Z");
    nothing(&future.to_string(), now(), "a clock is wrong");
}
