//! Side effects of a program: every class, with the answer lost after the effect, and every outcome that it may settle.

use std::path::Path;

use aegis_model::Resolution;
use aegis_testkit::process_slot;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Bench, PRELUDE};

/// A program that pays once: it notes each call and each probe, does `on_call` at the first call, and gives what the operation
/// gave as its result.
fn pays(folder: &Path, operation: &str, on_call: &str, found: &str) -> String {
    let at = folder.display();
    format!(
        r#"{PRELUDE}
        printf '%s\n' "$start" >> {at}/starts
        ask '{{"type":"operation","id":1,"name":"pay","key":"o/1",{operation},"request":{{"cents":5}}}}'
        id=1
        while :; do
            case $reply in
            *'"answer":"call"'*)
                echo "call $reply" >> {at}/effects
                id=$((id+1)) n=$(grep -c '^call' {at}/effects)
                if [ "$n" = 1 ]; then
                    {on_call}
                else
                    ask '{{"type":"settle","id":'$id',"name":"pay","key":"o/1","outcome":"succeeded","result":{{"call":'$n'}}}}'
                fi ;;
            *'"answer":"probe"'*)
                echo "probe $reply" >> {at}/effects
                id=$((id+1))
                ask '{{"type":"probed","id":'$id',"name":"pay","key":"o/1",{found}}}' ;;
            *'"answer":"done"'*)
                value=${{reply#*'"result":'}}
                printf '{{"type":"result","value":%s}}\n' "${{value%,'"valid_for_ms"'*}}"
                exit 0 ;;
            *'"answer":"refused"'*|*'"answer":"compensated"'*|*'"answer":"given_up"'*)
                value=${{reply#*'"answer":'}}
                printf '{{"type":"result","value":%s}}\n' "${{value%%,*}}"
                exit 0 ;;
            *)
                echo "$reply" >> {at}/errors
                exit 1 ;;
            esac
        done"#
    )
}

const LOST: &str = "exit 3";
const TIMES: &str = r#""timeout_ms":600,"quiet_ms":100"#;

struct Paid {
    bench: Bench,
    folder: tempfile::TempDir,
    task: Uuid,
    worker: crate::support::Running,
}

impl Paid {
    async fn start(class: &str, on_call: &str, found: &str) -> Self {
        let bench = Bench::new().await;
        let folder = tempfile::tempdir().unwrap();
        let operation = format!(r#""class":"{class}",{TIMES}"#);
        let worker = bench.run(&pays(folder.path(), &operation, on_call, found));
        let task = bench.submit("program", Value::Null).await;
        Self {
            bench,
            folder,
            task,
            worker,
        }
    }

    fn effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("effects")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default()
    }

    /// What was asked of the outside, in order.
    fn words(&self) -> Vec<String> {
        let effects = self.effects();
        let words = effects.iter().filter_map(|line| line.split(' ').next());
        words.map(str::to_owned).collect()
    }

    async fn unknown(&self) {
        self.bench.wait_state(self.task, 4).await;
        let found = self
            .bench
            .store
            .operations(&[4], Some(self.task), 10)
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
    }

    async fn resolve(&self, resolution: Resolution, result: Option<&[u8]>) {
        let id = format!("{}/pay/o%2F1/v1", self.task);
        self.bench
            .store
            .resolve_operation_early(self.task, &id, resolution, result, "ann", "the bank's list")
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_an_idempotent_call_whose_answer_is_lost_is_repeated_under_its_id() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    for class in ["idempotent", "fenced"] {
        let paid = Paid::start(class, LOST, "").await;
        assert_eq!(paid.bench.result(paid.task).await, json!({ "call": 2 }));
        let effects = paid.effects();
        assert_eq!(effects.len(), 2, "{effects:?}");
        let part = |line: &str, name: &str| {
            let reply: Value = serde_json::from_str(line.strip_prefix("call ").unwrap()).unwrap();
            reply[name].clone()
        };
        let id = json!(format!("{}/pay/o%2F1/v1", paid.task));
        assert_eq!(part(&effects[0], "operation"), id);
        assert_eq!(part(&effects[1], "operation"), id);
        assert_eq!(part(&effects[0], "dispatches"), json!(1));
        assert_eq!(part(&effects[1], "dispatches"), json!(2));
        let starts = std::fs::read_to_string(paid.folder.path().join("starts")).unwrap();
        let known: Vec<Value> = starts
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["operations"].clone())
            .collect();
        assert_eq!(
            known,
            [
                json!([]),
                json!([{ "name": "pay", "key": "o/1", "id": id, "class": class, "state": "dispatched", "dispatches": 1 }])
            ],
            "the second attempt knows of the first one's call"
        );
        let epochs: Vec<i64> = effects
            .iter()
            .map(|line| {
                part(line, "fencing_token")
                    .as_str()
                    .unwrap()
                    .rsplit('.')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        assert!(epochs[0] < epochs[1], "a newer token each time: {epochs:?}");
        let valid = part(&effects[0], "valid_for_ms").as_u64().unwrap();
        assert!(
            valid > 0 && valid <= crate::support::LEASE_MS * 4 / 5,
            "{valid}"
        );
        paid.worker.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_queryable_call_is_quiet_and_then_the_program_is_asked_to_probe() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let happened = Paid::start(
        "queryable",
        LOST,
        r#""found":"happened","result":"by probe""#,
    )
    .await;
    assert_eq!(
        happened.bench.result(happened.task).await,
        json!("by probe")
    );
    assert_eq!(happened.words(), ["call", "probe"]);
    let ended = happened
        .bench
        .store
        .task(happened.task)
        .await
        .unwrap()
        .unwrap();
    assert!(
        ended.snoozes >= 1 && ended.failures == 1,
        "quiet is not charged: {ended:?}"
    );
    assert!(
        happened.errors().contains(r#""code":"quiet_period""#)
            && happened.errors().contains(r#""over":true"#)
    );
    happened.worker.drain().await;

    let again = Paid::start("queryable", LOST, r#""found":"did_not_happen""#).await;
    assert_eq!(again.bench.result(again.task).await, json!({ "call": 2 }));
    assert_eq!(again.words(), ["call", "probe", "call"]);
    again.worker.drain().await;

    let nobody = Paid::start("queryable", LOST, r#""found":"cannot_tell""#).await;
    nobody.unknown().await;
    assert!(
        nobody.errors().contains(r#""code":"effect_unknown""#),
        "{}",
        nobody.errors()
    );
    nobody
        .resolve(Resolution::Happened, Some(br#"{"by":"hand"}"#))
        .await;
    assert_eq!(
        nobody.bench.result(nobody.task).await,
        json!({ "by": "hand" })
    );
    assert_eq!(nobody.words(), ["call", "probe"]);
    nobody.worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_blind_call_whose_answer_is_lost_waits_for_a_person() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    for (resolution, result, wanted, calls) in [
        (
            Resolution::Happened,
            Some(&br#"{"by":"hand"}"#[..]),
            json!({ "by": "hand" }),
            1,
        ),
        (Resolution::DidNotHappen, None, json!({ "call": 2 }), 2),
        (Resolution::Compensated, None, json!("compensated"), 1),
    ] {
        let paid = Paid::start("blind", LOST, "").await;
        paid.unknown().await;
        assert_eq!(paid.words(), ["call"]);
        paid.resolve(resolution, result).await;
        assert_eq!(paid.bench.result(paid.task).await, wanted, "{resolution:?}");
        assert_eq!(paid.words().len(), calls, "{resolution:?}");
        paid.worker.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_each_outcome_that_a_program_settles_means_what_it_says() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let settle = |outcome: &str| {
        format!(
            r#"ask '{{"type":"settle","id":'$id',"name":"pay","key":"o/1","outcome":"{outcome}","message":"no","detail":7}}'"#
        )
    };
    for (class, outcome, wanted, calls) in [
        ("blind", "failed", json!("refused"), 1),
        ("blind", "turned_away", json!("refused"), 1),
        ("blind", "not_applied", json!({ "call": 2 }), 2),
        ("idempotent", "doubtful", json!({ "call": 2 }), 2),
    ] {
        let paid = Paid::start(class, &settle(outcome), "").await;
        assert_eq!(
            paid.bench.result(paid.task).await,
            wanted,
            "{class} {outcome}"
        );
        assert_eq!(paid.words().len(), calls, "{class} {outcome}");
        let ended = paid.bench.store.task(paid.task).await.unwrap().unwrap();
        assert_eq!(ended.failures, 0, "within one attempt");
        paid.worker.drain().await;
    }
    let doubtful = Paid::start("blind", &settle("doubtful"), "").await;
    doubtful.unknown().await;
    assert_eq!(doubtful.words(), ["call"]);
    doubtful.worker.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_an_answer_that_comes_after_the_timeout_is_still_an_answer_where_it_may_be() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    // 600 ms are allowed; the settle comes after 1 s, in the round that repeats.
    let late = r#"sleep 1; ask '{"type":"settle","id":'$id',"name":"pay","key":"o/1","outcome":"succeeded","result":"late"}'"#;
    let paid = Paid::start("idempotent", late, "").await;
    assert_eq!(paid.bench.result(paid.task).await, json!("late"));
    assert_eq!(paid.words(), ["call"]);
    paid.worker.drain().await;
    // To a blind one it comes too late: the program is told so, and a person decides.
    let paid = Paid::start("blind", late, "").await;
    paid.unknown().await;
    assert!(
        paid.errors().contains(r#""code":"effect_unknown""#),
        "{}",
        paid.errors()
    );
    paid.worker.drain().await;
}
