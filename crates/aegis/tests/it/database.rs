//! `aegis db`, and what every command says about its database.

use std::process::Stdio;
use std::time::Duration;

use aegis_testkit::{TestDb, process_slot, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Place, command, run};

#[tokio::test]
async fn process_install_status_maintain_and_adopt() {
    let _slot = process_slot();
    let db = TestDb::empty().await;
    let place = Place { url: db.url(), db };
    let early = place.run(&["task", "list"]).await;
    assert_eq!(early.code, 5, "{early:?}");
    let first = place.json(&["db", "install", "--days-ahead", "2"]).await;
    assert!(!first["applied"].as_array().unwrap().is_empty(), "{first}");
    let again = place.json(&["db", "install", "--days-ahead", "2"]).await;
    assert!(again["applied"].as_array().unwrap().is_empty(), "{again}");
    assert_eq!(
        (&again["schema"], &again["partitions"]),
        (&first["schema"], &0.into())
    );

    let engine = Place {
        url: place.db.url_as("aegis_engine"),
        db: place.db,
    };
    let status = engine.json(&["db", "status"]).await;
    assert_eq!(status["schema"], first["schema"]);
    assert_eq!(status["adopted"], true);
    let table = engine.run(&["db", "status"]).await;
    assert!(
        table.stdout.contains("lineage") && table.stdout.contains("PostgreSQL"),
        "{table:?}"
    );

    let owner = Place {
        url: engine.db.url(),
        db: engine.db,
    };
    let made = owner.json(&["db", "maintain", "--days-ahead", "3"]).await;
    assert!(made["made"].as_i64().unwrap() > 0, "{made}");
    assert_eq!(
        owner.run(&["db", "adopt"]).await.code,
        2,
        "without --yes nothing is adopted"
    );
}

/// Killed between two changes: no program takes what is there for a schema, and the next install goes on where it was cut.
#[tokio::test]
async fn process_a_killed_install_is_ended_by_the_next() {
    let _slot = process_slot();
    let db = TestDb::empty().await;
    let whole = async || -> i64 {
        let there = "select to_regclass('aegis_ledger.phase') is not null";
        let there = db.admin.query_one(there, &[]).await.unwrap();
        if !there.get::<_, bool>(0) {
            return 0;
        }
        let count = "select count(*) from aegis_ledger.phase";
        db.admin.query_one(count, &[]).await.unwrap().get(0)
    };
    let mut install = command(Some(&db.url()), &["db", "install"]);
    install.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = install.spawn().unwrap();
    let bound = Duration::from_mins(1);
    wait_until("the tables are there", bound, async || whole().await > 0).await;
    // The eighth change needs this table: it cannot come further.
    let mut other = db.connect().await;
    let lock = other.transaction().await.unwrap();
    lock.batch_execute("lock table aegis.worker_lease in access share mode")
        .await
        .unwrap();
    wait_until("it stands before the eighth", bound, async || {
        whole().await == 7
    })
    .await;
    kill(
        Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGKILL,
    )
    .unwrap();
    tokio::task::spawn_blocking(move || child.wait())
        .await
        .unwrap()
        .unwrap();
    lock.rollback().await.unwrap();
    let engine = Place {
        url: db.url_as("aegis_engine"),
        db,
    };
    let early = engine.run(&["task", "list"]).await;
    assert_eq!(early.code, 5, "{early:?}");
    assert!(early.stderr.contains("has schema 0"), "{early:?}");
    let place = Place {
        url: engine.db.url(),
        db: engine.db,
    };
    let next = place.json(&["db", "install"]).await;
    assert_eq!(next["applied"], serde_json::json!([8, 9, 10]), "{next}");
    assert_eq!(next["schema"], aegis_store::install::SCHEMA);
}

/// A database that a release from before schema 7 installed.
#[tokio::test]
async fn process_switch_names_the_workers_that_stand_in_its_way() {
    let _slot = process_slot();
    let db = TestDb::new().await;
    db.admin
        .batch_execute(
            "UPDATE aegis.schema_version SET min_schema = 0;
             INSERT INTO aegis.worker (id, slots, pid, registered_at, name, host, release, build, digest)
             VALUES (gen_random_uuid(), 1, 1, now(), 'elder', 'h', '0.9', 'b', 'd')",
        )
        .await
        .unwrap();
    let place = Place { url: db.url(), db };
    assert_eq!(place.run(&["db", "switch"]).await.code, 2, "without --yes");
    let refused = place.run(&["db", "switch", "--yes"]).await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(
        refused.stderr.contains("AEG-0007") && refused.stderr.contains("elder (release 0.9)"),
        "{refused:?}"
    );
    let gone = "UPDATE aegis.worker SET state = 2, ended_at = now()";
    place.db.admin.batch_execute(gone).await.unwrap();
    for switched in [true, false] {
        let answer = place.json(&["db", "switch", "--yes"]).await;
        assert_eq!(answer["switched"], switched);
    }
}

#[tokio::test]
async fn process_adopt_raises_the_floor() {
    let _slot = process_slot();
    let db = TestDb::new().await;
    // The superuser's session has JIT on, which the store refuses; an owner has the role's settings.
    let place = Place {
        url: db.url_as("aegis_engine"),
        db,
    };
    let before = place.json(&["db", "status"]).await["floor"]
        .as_i64()
        .unwrap();
    let words = [
        "db",
        "adopt",
        "--yes",
        "--actor",
        "ada",
        "--reason",
        "restored from Monday",
    ];
    let adopted = place.json(&words).await;
    assert_eq!(adopted["floor"].as_i64().unwrap(), before + 1);
    let kept = &place.json(&["db", "changes"]).await[0];
    assert_eq!(
        (&kept["what"], &kept["actor"], &kept["reason"]),
        (
            &"adopt".into(),
            &"ada".into(),
            &"restored from Monday".into()
        )
    );
}

#[tokio::test]
async fn process_a_database_that_is_not_there_is_exit_code_5() {
    let _slot = process_slot();
    for words in [
        vec!["task", "list"],
        vec!["db", "status"],
        vec!["operation", "list"],
        vec!["worker", "list"],
        vec!["demo", "verify", "--record", "/dev/null"],
    ] {
        // Nobody listens on a port of 1.
        let ran = run(command(
            Some("postgresql://nobody@127.0.0.1:1/none"),
            &words,
        ))
        .await;
        assert_eq!(ran.code, 5, "{words:?}: {ran:?}");
        assert!(
            ran.stderr.contains("127.0.0.1 port 1"),
            "it says where: {ran:?}"
        );
        assert!(ran.stdout.is_empty(), "{ran:?}");
    }
}

#[tokio::test]
async fn process_without_a_database_or_with_wrong_words_it_is_exit_code_2() {
    let _slot = process_slot();
    for words in [
        vec!["task", "list"],
        vec!["task", "nonsense"],
        vec!["--nonsense"],
        vec!["task", "list", "--state", "nonsense"],
        vec!["operation", "resolve", "x"],
        vec!["db", "install", "--days-ahead", "0"],
    ] {
        let ran = run(command(None, &words)).await;
        assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{ran:?}");
    }
    let bad = run(command(Some("nonsense"), &["task", "list"])).await;
    assert_eq!(bad.code, 2, "{bad:?}");
}
