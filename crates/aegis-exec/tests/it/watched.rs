//! A program, and whatever it started, ends with its attempt: when its worker is killed, when it is frozen, when its own
//! supervisor is killed.

use std::path::Path;

use aegis_testkit::{process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{BOUND, Bench, PRELUDE, Process, lives, pids};

/// A handler with a child, a child in a session of its own, and one that a double fork has left to nobody.
fn with_offspring(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"{PRELUDE}
        case $start in *'"epoch":1,'*) ;; *) echo '{{"type":"result","value":"second"}}'; exit 0 ;; esac
        sh -c 'echo $$ > {folder}/child; exec sleep 1000' &
        setsid sh -c 'echo $$ > {folder}/session; exec sleep 1000 <&- >&- 2>&-' &
        ( setsid sh -c '( trap "" TERM HUP INT; echo $(exec sh -c "echo \$PPID") > {folder}/orphan; while :; do sleep 1; done ) &' & )
        echo $PPID > {folder}/supervisor
        echo $$ > {folder}/handler
        sleep 1000"#
    )
}

const OFFSPRING: [&str; 4] = ["handler", "child", "session", "orphan"];

async fn all_gone(found: &[i32]) {
    wait_until(
        "the end of everything that the handler started",
        BOUND,
        async || found.iter().all(|&pid| !lives(pid)),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_nothing_outlives_a_killed_worker() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let script = with_offspring(folder.path());
    let mut worker = Process::start(&bench, "program", &["sh", "-c", &script]);
    let task = bench.submit("program", Value::Null).await;
    let found = pids(folder.path(), &OFFSPRING).await;
    assert!(found.iter().all(|&pid| lives(pid)), "{found:?}");
    worker.kill();
    all_gone(&found).await;
    // Long before the lease has ended: the closed pipe was enough.
    assert_eq!(bench.store.task(task).await.unwrap().unwrap().state, 2);
    let _second = Process::start(&bench, "program", &["sh", "-c", &script]);
    assert_eq!(bench.result(task).await, json!("second"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_nothing_outlives_the_lease_of_a_frozen_worker() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let script = with_offspring(folder.path());
    let worker = Process::start(&bench, "program", &["sh", "-c", &script]);
    let task = bench.submit("program", Value::Null).await;
    let found = pids(folder.path(), &OFFSPRING).await;
    worker.signal(Signal::SIGSTOP);
    wait_until(
        "the end of everything that the handler started",
        BOUND,
        async || {
            let row = bench
                .db
                .admin
                .query_one(
                    "select lease_until < clock_timestamp() from aegis.worker_lease",
                    &[],
                )
                .await
                .unwrap();
            let lease_over: bool = row.get(0);
            let alive: Vec<i32> = found.iter().copied().filter(|&pid| lives(pid)).collect();
            assert!(
                !lease_over || alive.is_empty(),
                "the lease is over and these live: {alive:?}"
            );
            alive.is_empty()
        },
    )
    .await;
    worker.signal(Signal::SIGCONT);
    assert_eq!(bench.result(task).await, json!("second"));
    let ended = bench.store.task(task).await.unwrap().unwrap();
    assert_eq!(
        (
            ended.failures,
            ended.crashes + ended.interruptions + ended.snoozes
        ),
        (0, 1),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_nothing_outlives_a_killed_supervisor_and_the_attempt_fails() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let script = with_offspring(folder.path());
    let _worker = Process::start(&bench, "program", &["sh", "-c", &script]);
    let task = bench.submit("program", Value::Null).await;
    let found = pids(folder.path(), &OFFSPRING).await;
    let supervisor = pids(folder.path(), &["supervisor"]).await[0];
    kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    all_gone(&found).await;
    assert_eq!(bench.result(task).await, json!("second"));
    let (code, _, _) = bench.error(task).await;
    assert_eq!(code, "exec_supervisor_gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_the_handler_dies_with_its_supervisor_even_when_the_worker_is_frozen() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let script = with_offspring(folder.path());
    let worker = Process::start(&bench, "program", &["sh", "-c", &script]);
    bench.submit("program", Value::Null).await;
    let found = pids(folder.path(), &OFFSPRING).await;
    let supervisor = pids(folder.path(), &["supervisor"]).await[0];
    worker.signal(Signal::SIGSTOP);
    kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    // The handler by the signal at its parent's death; what it started is looked for when the worker goes on.
    all_gone(&found[..1]).await;
    worker.signal(Signal::SIGCONT);
    all_gone(&found).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_program_that_forks_faster_than_one_looks_is_ended_all_the_same() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    // Each generation lives for a moment in a session of its own and leaves the next one behind.
    let script = format!(
        r#"{PRELUDE}
        case $start in *'"input":"look"'*) echo '{{"type":"result","value":"looked"}}'; exit 0 ;; esac
        cat > {at}/hop <<'EOF'
        echo $$ >> {at}/hops
        setsid sh {at}/hop </dev/null >/dev/null 2>&1 &
EOF
        setsid sh {at}/hop </dev/null >/dev/null 2>&1 &
        while [ ! -s {at}/hops ] || [ "$(wc -l < {at}/hops)" -lt 20 ]; do sleep 0.01; done
        echo '{{"type":"result","value":"hops"}}'"#
    );
    let _worker = Process::start(&bench, "program", &["sh", "-c", &script]);
    let task = bench.submit("program", Value::Null).await;
    assert_eq!(bench.result(task).await, json!("hops"));
    // The attempt is over, so the kernel has said that nobody is left. A generation that was missed would go on writing.
    let hops = || {
        let text = std::fs::read_to_string(folder.path().join("hops")).unwrap();
        let numbers: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        numbers
    };
    let before = hops();
    assert!(before.len() >= 20, "too few to be a race: {before:?}");
    assert_eq!(before.iter().filter(|&&pid| lives(pid)).count(), 0);
    // Another attempt takes longer than many a hop.
    let look = bench.submit("program", json!("look")).await;
    assert_eq!(bench.result(look).await, json!("looked"));
    assert_eq!(hops(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn process_a_cgroup_holds_a_program_that_hides_and_is_removed_with_it() {
    let _slot = tokio::task::spawn_blocking(process_slot).await.unwrap();
    let bench = Bench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    // Without its environment, in a session of its own, orphaned: after its supervisor's death only the cgroup knows it.
    let script = format!(
        r#"{PRELUDE}
        case $start in *'"epoch":1,'*) ;; *) echo '{{"type":"result","value":"second"}}'; exit 0 ;; esac
        cp /proc/self/cgroup {at}/cgroup
        ( setsid env -i PATH="$PATH" sh -c 'echo $$ > {at}/hidden; exec sleep 1000' >/dev/null 2>&1 & )
        while [ ! -s {at}/hidden ]; do sleep 0.02; done
        echo $PPID > {at}/supervisor
        sleep 1000"#
    );
    let _worker = Process::start_with(
        &bench,
        "program",
        &["sh", "-c", &script],
        &[("PROGRAM_WORKER_CGROUP", "1")],
    );
    let task = bench.submit("program", Value::Null).await;
    let found = pids(folder.path(), &["supervisor", "hidden"]).await;
    let inside = std::fs::read_to_string(folder.path().join("cgroup")).unwrap();
    let own = inside.lines().find_map(|line| {
        line.strip_prefix("0::")
            .filter(|path| path.contains("/aegis-"))
    });
    kill(Pid::from_raw(found[0]), Signal::SIGKILL).unwrap();
    let Some(own) = own else {
        // No cgroup can be made here: the limit that the guide tells of.
        assert_eq!(bench.result(task).await, json!("second"));
        assert!(
            lives(found[1]),
            "found without a cgroup: say so in the guide"
        );
        kill(Pid::from_raw(found[1]), Signal::SIGKILL).unwrap();
        return;
    };
    all_gone(&found).await;
    assert_eq!(bench.result(task).await, json!("second"));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = mounts
        .lines()
        .find(|line| line.contains(" - cgroup2 "))
        .and_then(|line| line.split(' ').nth(4))
        .unwrap();
    let left = std::path::Path::new(point).join(own.trim_start_matches('/'));
    wait_until("the removal of its cgroup", BOUND, async || !left.exists()).await;
}
