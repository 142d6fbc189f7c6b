//! A switch to a new side that says more than the old one, and what is told of a history that was edited, of a blank reason and of a
//! count that comes too early.

use aegis_testkit::{TestDb, process_slot};
use serde_json::Value;

use super::folder::Folder;
use crate::support::Ran;

const USERS: &str = "20261128T0900_users";
const SPLIT: &str = "20261129T1030_split";

struct Place {
    folder: Folder,
    db: TestDb,
}

impl Place {
    /// Three rows, and a sealed change that splits their names: backward of two names may be forward of others.
    async fn new() -> Self {
        let (folder, db) = (Folder::new(), TestDb::empty().await);
        folder.change(
            USERS,
            "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text NOT NULL);\n",
        );
        folder.json(None, &["seal"]).await;
        let place = Self { folder, db };
        place.done(&["run", "--phase", "expand"]).await;
        place
            .sql("INSERT INTO app.users SELECT n, 'Ada L' || n FROM generate_series(1, 3) n")
            .await;
        place.folder.write(
            &format!("{SPLIT}/change.toml"),
            format!(
                "format = 1\nid = \"{SPLIT}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\n\
                 compatible = [{{ rule = \"add-column\", reason = \"clients name their columns\" }}]\n\
                 [sync]\ntable = \"users\"\nold = [\"name\"]\nnew = [\"first\", \"last\"]\n\
                 [sync.forward]\nfirst = \"split_part(name, ' ', 1)\"\nlast = \"substr(name, length(split_part(name, ' ', 1)) + 2)\"\n\
                 [sync.backward]\nname = \"concat_ws(' ', first, last)\"\n\
                 [backfill]\nkey = [\"id\"]\nset = \"sync.forward\"\n[reconcile]\ncompare = \"sync\"\n\
                 [switch]\nreads = [\"old\", \"new\"]\nwrites = [\"old\", \"new\"]\ncache_ttl_ms = 0\n"
            ),
        );
        place.folder.write(
            &format!("{SPLIT}/expand.sql"),
            "ALTER TABLE users ADD COLUMN first text, ADD COLUMN last text;\n",
        );
        place.folder.json(None, &["seal"]).await;
        place
    }

    async fn run(&self, words: &[&str]) -> Ran {
        self.folder.run(Some(&self.db.url()), words).await
    }

    /// What it said last, of a success.
    async fn done(&self, words: &[&str]) -> Value {
        let mut all = words.to_vec();
        all.extend(["--output", "json"]);
        let ran = self.run(&all).await;
        assert_eq!(ran.code, 0, "{words:?}: {ran:?}");
        serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap()
    }

    async fn refused(&self, words: &[&str], code: i32, parts: &[&str]) -> Ran {
        let ran = self.run(words).await;
        assert_eq!(ran.code, code, "{words:?}: {ran:?}");
        for part in parts {
            assert!(ran.stderr.contains(part), "{words:?}: {part}: {ran:?}");
        }
        ran
    }

    /// As if the clock had gone on by so many days since the last count; a pass is not edited by ordinary means.
    async fn days_later(&self, days: i32) {
        self.sql(&format!(
            "SET session_replication_role = replica;
             UPDATE aegis_migrate.reconcile_pass SET started_at = started_at - {days} * interval '1 day';
             RESET session_replication_role"
        ))
        .await;
    }

    async fn sql(&self, sql: &str) {
        self.db.admin.batch_execute(sql).await.unwrap();
    }
}

/// To the new side, with so many rows accepted.
fn accepts(rows: &str) -> [&str; 10] {
    [
        "switch",
        SPLIT,
        "--reads",
        "new",
        "--writes",
        "new",
        "--accept-forward",
        rows,
        "--reason",
        "r2 is everywhere",
    ]
}

#[tokio::test]
async fn process_rows_that_a_new_program_wrote_are_accepted_by_their_number() {
    let _slot = process_slot();
    let place = Place::new().await;
    // There is nothing to count yet.
    let first = ["aegis migrate run --phase expand", SPLIT];
    place.refused(&["reconcile", SPLIT], 21, &first).await;
    place.done(&["run", "--phase", "expand"]).await;
    place
        .sql("UPDATE app.users SET first = 'Mary Ann', last = 'Smith' WHERE id = 1")
        .await;
    place.done(&["run", "--phase", "migrate"]).await;
    let to_new = ["switch", SPLIT, "--reads", "new", "--reason", "r2"];
    let told = [
        "1 mismatching",
        "written on the new side",
        "--accept-forward 1 --reason TEXT",
    ];
    place.refused(&to_new, 18, &told).await;
    place
        .refused(&accepts("2"), 18, &["counted 1", "--accept-forward 2"])
        .await;

    // Neither direction holds in a row: nothing can be accepted.
    place
        .sql("ALTER TABLE app.users DISABLE TRIGGER USER; UPDATE app.users SET first = 'Eve' WHERE id = 2; ALTER TABLE app.users ENABLE TRIGGER USER")
        .await;
    place.refused(&["reconcile", SPLIT], 18, &[]).await;
    let told = place.refused(&to_new, 18, &["2 mismatching"]).await;
    assert!(!told.stderr.contains("--accept-forward"), "{told:?}");
    place
        .refused(&accepts("2"), 18, &["agrees", "1 mismatching"])
        .await;
    place
        .sql("ALTER TABLE app.users DISABLE TRIGGER USER; UPDATE app.users SET first = 'Ada' WHERE id = 2; ALTER TABLE app.users ENABLE TRIGGER USER")
        .await;
    let counted = place.done(&["reconcile", SPLIT]).await;
    assert_eq!(counted["outcome"], "agrees", "{counted}");

    // What was counted may be too old, or from before the trigger was changed.
    place.days_later(9).await;
    place
        .refused(&accepts("1"), 18, &["stale", "aegis migrate reconcile"])
        .await;
    place.days_later(-9).await;
    place
        .sql("ALTER TABLE app.users DISABLE TRIGGER USER")
        .await;
    place
        .refused(&accepts("1"), 18, &["trigger is disabled"])
        .await;
    place.sql("ALTER TABLE app.users ENABLE TRIGGER USER").await;
    place.done(&["reconcile", SPLIT]).await;

    let moved = place.done(&accepts("1")).await;
    assert_eq!(
        (moved["outcome"].as_str(), moved["accepted"].as_i64()),
        (Some("applied"), Some(1)),
        "{moved}"
    );
    let kept = "SELECT s.reason, e.event::text FROM aegis_migrate.switch s, aegis_migrate.event e WHERE e.event->>'event' = 'switched'";
    let row = place.db.admin.query_one(kept, &[]).await.unwrap();
    let (reason, event): (String, String) = (row.get(0), row.get(1));
    assert_eq!(
        reason,
        "r2 is everywhere; accepted: 1 rows whose new side forward does not make"
    );
    assert!(event.contains("\"accepted\": 1"), "{event}");
    // Back, there is nothing to accept.
    let mut back = accepts("1");
    (back[3], back[5]) = ("old", "old");
    place.refused(&back, 2, &["--accept-forward"]).await;
}

#[tokio::test]
async fn process_a_count_that_is_only_too_old_is_made_again_and_nothing_is_mended() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.done(&["run", "--phase", "expand"]).await;
    let to_new = ["switch", SPLIT, "--writes", "new", "--reason", "r2"];
    let again = format!("`aegis migrate reconcile {SPLIT}`");
    let told = place.refused(&to_new, 18, &["missing: ", &again]).await;
    assert!(!told.stderr.contains("mend"), "{told:?}");
    place.done(&["run", "--phase", "migrate"]).await;
    place.days_later(9).await;
    let told = place.refused(&to_new, 18, &["stale: ", &again]).await;
    assert!(!told.stderr.contains("mend"), "{told:?}");
    place
        .refused(&accepts("1"), 18, &["--accept-forward 1", "stale"])
        .await;
    place.done(&["reconcile", SPLIT]).await;
    place
        .refused(&accepts("1"), 18, &["counted 0", "leave it out"])
        .await;
    place.done(&to_new).await;
}

#[tokio::test]
async fn process_verify_and_check_tell_of_an_edited_history_as_status_does() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.done(&["run", "--phase", "expand"]).await;
    place.folder.change(
        USERS,
        "CREATE SCHEMA app;\nCREATE TABLE app.users (id bigint PRIMARY KEY, name text NOT NULL);\nCREATE TABLE app.more (id bigint);\n",
    );
    let line = format!("{USERS}:expand");
    place.folder.json(None, &["seal", "--edited", &line]).await;
    let accept = format!("aegis migrate repair accept-checksum {line} --reason TEXT");
    for words in [
        &["verify"][..],
        &["verify", "--shadow"],
        &["check", "--at-least", &line],
        &["status"],
    ] {
        let told = place.refused(words, 11, &[&accept, "AEG-"]).await;
        assert!(!told.stderr.contains("applies it"), "{told:?}");
    }
}

#[tokio::test]
async fn process_a_blank_reason_is_a_usage_error_of_every_verb_that_asks_for_one() {
    let _slot = process_slot();
    let folder = Folder::new();
    let line = format!("{SPLIT}:expand");
    for verb in [
        &["switch", SPLIT, "--reads", "new"][..],
        &["contract", "reopen", SPLIT],
        &[
            "contract",
            "attest",
            SPLIT,
            "rollback_window",
            "--key",
            "k.pem",
            "--until",
            "2027-01-01T00:00:00Z",
        ],
        &["backfill", "pause", SPLIT],
        &["backfill", "resume", SPLIT],
        &["backfill", "cancel", SPLIT],
        &["backfill", "retry", SPLIT],
        &["abandon", SPLIT],
        &["repair", "accept-checksum", &line],
        &["repair", "mark-applied", &line],
        &["repair", "retry", &line, "--step", "1"],
        &["repair", "sync", SPLIT],
        &["baseline", "--through", &line],
    ] {
        for blank in ["", " \t"] {
            let mut words = verb.to_vec();
            words.extend(["--reason", blank]);
            let ran = folder.run(None, &words).await;
            assert_eq!(ran.code, 2, "{words:?}: {ran:?}");
            assert!(
                ran.stderr.contains("--reason") && ran.stderr.contains("it is blank"),
                "{words:?}: {ran:?}"
            );
        }
    }
}

#[tokio::test]
async fn process_an_init_container_as_the_applications_role_reads_four_tables() {
    let _slot = process_slot();
    let place = Place::new().await;
    place.done(&["run", "--phase", "expand"]).await;
    let role = format!("{}_rw", place.db.name());
    place.sql(&format!("CREATE ROLE {role} LOGIN")).await;
    let line = format!("{SPLIT}:expand");
    let url = place.db.url_as(&role);
    let check = async || {
        let words = ["check", "--at-least", &line];
        place.folder.run(Some(&url), &words).await
    };
    let told = check().await;
    assert!(
        told.code == 20 && told.stderr.contains("permission denied"),
        "{told:?}"
    );
    // As docs/guides/migrate.md has it.
    let guide = include_str!("../../../../../docs/guides/migrate.md");
    let grant = "GRANT SELECT ON aegis_migrate.phase, aegis_migrate.step, aegis_migrate.baseline, aegis_migrate.structure TO app_rw;";
    assert!(guide.contains(grant));
    place.sql(&grant.replace("app_rw", &role)).await;
    let done = check().await;
    place
        .sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
    assert_eq!(done.code, 0, "{done:?}");
}
