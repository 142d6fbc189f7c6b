//! The format of a change: what is read, what is refused with which words, and what is hashed.

use std::time::Duration;

use aegis_migrate::change::{BothChanged, OnUnknown, Part, Phase};
use aegis_migrate::contract::need::Need;

use crate::folder::{Folder, SPLIT_ID};

const TOML: &str = "20261129T1030_split_name/change.toml";

#[test]
fn the_change_of_the_design_page_is_read_whole() {
    let change = Folder::split().change(SPLIT_ID).unwrap();
    assert_eq!(change.schema, "app");
    assert_eq!(change.run_as.as_deref(), Some("app_owner"));
    let sync = change.sync.as_ref().unwrap();
    assert_eq!(sync.both_changed, BothChanged::New);
    assert_eq!(sync.forward["first_name"], "split_first(name)");
    assert_eq!(change.backfill_table(), Some("users"));
    assert_eq!(change.throttle.max_lag_bytes, Some(67_108_864));
    assert_eq!(change.throttle.on_unknown, OnUnknown::Pause);
    let contract = change.contract.as_ref().unwrap();
    assert_eq!(contract.observe.0, Duration::from_hours(72));
    assert_eq!(contract.evidence, Need::ALL);
    assert_eq!(change.compatible(Phase::Expand)[0].rule, "add-column");
}

#[test]
fn parts_come_in_the_order_of_execution() {
    let folder = Folder::split()
        .edited(
            TOML,
            "[backfill]",
            "[migrate]\nsql = \"index.sql\"\nafter_backfill = \"validate.sql\"\n[backfill]",
        )
        .with(
            "20261129T1030_split_name/index.sql",
            "CREATE INDEX CONCURRENTLY a ON users (id);\n",
        )
        .with(
            "20261129T1030_split_name/validate.sql",
            "ALTER TABLE users VALIDATE CONSTRAINT c;\n",
        );
    let change = folder.change(SPLIT_ID).unwrap();
    let names = |phase| -> Vec<&'static str> {
        let parts = change.parts(phase).into_iter();
        parts
            .map(|part| match part {
                Part::Sql { key, .. } => key,
                Part::Sync(_) => "sync",
                Part::EndSync(_) => "end of sync",
                Part::Backfill(_) => "backfill",
                Part::Reconcile(_) => "reconcile",
            })
            .collect()
    };
    assert_eq!(names(Phase::Expand), ["expand.sql", "sync"]);
    assert_eq!(
        names(Phase::Migrate),
        [
            "migrate.sql",
            "backfill",
            "reconcile",
            "migrate.after_backfill"
        ]
    );
    assert_eq!(
        names(Phase::Contract),
        ["contract.tighten", "end of sync", "contract.sql"]
    );
}

/// What stands in the file, what stands there instead, and what has to be told.
#[test]
fn each_mistake_is_told_with_file_line_key_and_a_way_out() {
    let cases = [
        (
            "format = 1",
            "format = 2",
            "migrations/20261129T1030_split_name/change.toml:1: `format`: it is 2; this binary reads format 1; write format = 1",
        ),
        ("format = 1\n", "", "change.toml: `format`: it is missing"),
        (
            "id = \"20261129T1030_split_name\"",
            "id = \"20261129T1031_other\"",
            "change.toml:2: `id`: `20261129T1031_other` is not the name of its folder",
        ),
        (
            "id = \"20261129T1030_split_name\"",
            "id = \"Split\"",
            "change.toml:2: `id`: `Split` is no id of a change; write YYYYMMDDThhmm_words",
        ),
        (
            "schema = \"app\"",
            "schema = \"pg_catalog\"",
            "change.toml:3: `schema`: `pg_catalog` belongs to the server",
        ),
        (
            "schema = \"app\"",
            "schema = ''",
            "change.toml:3: `schema`: `` has 0 bytes; write a name of 1 to 63 bytes",
        ),
        (
            "schema = \"app\"",
            "schema = '\"App\"'",
            "`schema`: \"App\" has quotes around it; write the name as the catalog has it",
        ),
        (
            "schema = \"app\"",
            "schema = app",
            "change.toml:3: this is no TOML",
        ),
        (
            "run_as = \"app_owner\"",
            "run_az = \"app_owner\"",
            "change.toml:4: `run_az`: unknown field `run_az`, expected one of",
        ),
        (
            "run_as = \"app_owner\"",
            "run_as = 7",
            "change.toml:4: `run_as`: invalid type: integer `7`, expected a string",
        ),
        (
            "[expand]",
            "requires = [\"20261101T0900_users\"]\n[expand]",
            "change.toml:5: `requires`: `20261101T0900_users` is not ID:PHASE",
        ),
        (
            "[expand]",
            "requires = [\"20261129T1030_split_name:expand\"]\n[expand]",
            "`requires`: a change cannot require itself",
        ),
        (
            "sql = \"expand.sql\"",
            "sql = \"../expand.sql\"",
            "change.toml:6: `expand.sql`: `../expand.sql` is not the name of an .sql file in the change's folder",
        ),
        (
            "sql = \"expand.sql\"",
            "sql = \"expnd.sql\"",
            "change.toml:6: `expand.sql`: there is no file `expnd.sql` in migrations/20261129T1030_split_name",
        ),
        (
            "sql = \"expand.sql\"",
            "sql = \"tighten.sql\"",
            "`contract.tighten`: `tighten.sql` is named by another key too",
        ),
        (
            "reason = \"clients name their columns\"",
            "reason = \" \"",
            "change.toml:7: `expand.compatible`: the reason for `add-column` is blank",
        ),
        (
            "reason = \"clients name their columns\"",
            "why = \"x\"",
            "change.toml:7: `expand.compatible`: unknown field `why`, expected `rule` or `reason`",
        ),
        (
            "old = [\"name\"]",
            "old = []",
            "change.toml:10: `sync.old`: the list is empty",
        ),
        (
            "old = [\"name\"]",
            "old = [\"name\", \"name\"]",
            "`sync.old`: `name` stands there twice",
        ),
        (
            "old = [\"name\"]",
            "old = [\"first_name\"]",
            "`sync.new`: `first_name` is an old column too",
        ),
        (
            "both_changed = \"new\"",
            "both_changed = \"old\"",
            "change.toml:12: `sync.both_changed`: unknown variant `old`, expected `new` or `reject`",
        ),
        (
            "last_name = \"split_last(name)\"\n",
            "",
            "`sync.forward`: no expression for the new column `last_name`",
        ),
        (
            "last_name = \"split_last(name)\"",
            "last_nam = \"split_last(name)\"",
            "change.toml:15: `sync.forward.last_nam`: `last_nam` is not one of the new columns",
        ),
        (
            "first_name = \"split_first(name)\"",
            "first_name = \"\"",
            "change.toml:14: `sync.forward.first_name`: the expression is blank",
        ),
        (
            "key = [\"id\"]",
            "key = []",
            "change.toml:19: `backfill.key`: the list is empty",
        ),
        (
            "set = \"sync.forward\"",
            "set = \"forward\"",
            "change.toml:20: `backfill.set`: `forward` is nothing to set",
        ),
        (
            "set = \"sync.forward\"\n",
            "",
            "`backfill`: it does not say what to write",
        ),
        (
            "start = 1000",
            "start = 0",
            "`backfill.batch`: start 0 and max 50000 rows; write 1 <= start <= max <= 1000000",
        ),
        (
            "start = 1000",
            "start = -1",
            "change.toml:21: `backfill.batch",
        ),
        (
            "target_ms = 500",
            "target_ms = 0",
            "`backfill.batch`: target_ms is 0; write 10 to 60000",
        ),
        (
            "target_ms = 500",
            "pause_ms = 500",
            "unknown field `pause_ms`, expected one of `start`, `max`, `target_ms`",
        ),
        (
            "max_lag_bytes = 67108864",
            "max_lag_bytes = 0",
            "change.toml:23: `throttle.max_lag_bytes`: 0 would stop it for ever",
        ),
        (
            "on_unknown = \"pause\"",
            "on_unknown = \"ignore\"",
            "change.toml:24: `throttle.on_unknown`: unknown variant `ignore`",
        ),
        (
            "compare = \"sync\"",
            "compare = \"rows\"",
            "change.toml:26: `reconcile.compare`: `rows` is nothing to compare",
        ),
        (
            "compare = \"sync\"\n",
            "",
            "`reconcile`: it wants either compare or sql",
        ),
        (
            "max_age = \"24h\"",
            "max_age = \"1 day\"",
            "change.toml:27: `reconcile.max_age`: `1 day` is no length of time: write a number above 0 and s, m, h or d",
        ),
        (
            "reads = [\"old\", \"new\"]",
            "reads = [\"both\"]",
            "change.toml:29: `switch.reads`: `both` is no side",
        ),
        (
            "cache_ttl_ms = 5000",
            "cache_ttl_ms = 600001",
            "`switch.cache_ttl_ms`: 600001 ms is longer than ten minutes",
        ),
        (
            "sql = \"contract.sql\"\n",
            "",
            "`contract`: missing field `sql`",
        ),
        (
            "observe = \"72h\"",
            "observe = \"10s\"",
            "change.toml:36: `contract.observe`: 10s is too short to see anything",
        ),
        (
            "evidence = [\"reconciled\", ",
            "evidence = [\"reconsiled\", ",
            "change.toml:37: `contract.evidence`: unknown variant `reconsiled`, expected one of",
        ),
        (
            "evidence = [\"reconciled\", ",
            "evidence = [\"sightings\", ",
            "`contract.evidence`: `sightings` stands there twice",
        ),
        (
            "[reconcile]\ncompare = \"sync\"\nmax_age = \"24h\"\n",
            "",
            "`contract.evidence`: `reconciled` cannot be shown without [reconcile]",
        ),
        (
            "[switch]",
            "[swich]",
            "change.toml:28: `swich`: unknown field `swich`",
        ),
        (
            "[switch]",
            "[expand]",
            "change.toml:28: this is no TOML: duplicate key",
        ),
    ];
    for (from, to, told) in cases {
        let refused = Folder::split().edited(TOML, from, to).refused();
        assert!(
            refused.contains(told),
            "{to}\n  told:   {refused}\n  wanted: {told}"
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once_in_the_order_of_their_lines() {
    let refused = Folder::split()
        .edited(TOML, "key = [\"id\"]", "key = []")
        .edited(TOML, "observe = \"72h\"", "observe = \"1s\"")
        .edited(TOML, "old = [\"name\"]", "old = []")
        .refused();
    let keys: Vec<&str> = refused
        .lines()
        .map(|line| line.split('`').nth(1).unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "sync.old",
            "sync.backward.name",
            "backfill.key",
            "contract.observe"
        ],
        "{refused}"
    );
}

#[test]
fn files_that_would_never_run_are_told() {
    let refused = Folder::split()
        .with("20261129T1030_split_name/down.sql", "DROP TABLE users;\n")
        .refused();
    assert!(
        refused.contains("down.sql: change.toml does not name it, so it would never run"),
        "{refused}"
    );
    let refused = Folder::split()
        .with("20261129T1030_split_name/expand.sql", " \n")
        .refused();
    assert!(
        refused.contains("`expand.sql`: `expand.sql` is empty"),
        "{refused}"
    );
    // Notes of people are nobody's business.
    Folder::split()
        .with("20261129T1030_split_name/README.md", "why")
        .change(SPLIT_ID)
        .unwrap();
}

#[test]
fn what_is_not_utf_8_is_told_with_its_line() {
    let refused = Folder::split()
        .with(
            "20261129T1030_split_name/expand.sql",
            &b"SELECT 1;\nSELECT '\xe9';\n"[..],
        )
        .refused();
    assert_eq!(
        refused,
        "migrations/20261129T1030_split_name/expand.sql:2: it is not UTF-8; save it as UTF-8"
    );
    let refused = Folder::split()
        .with(TOML, &b"format = 1\nid = \"\xe9\"\n"[..])
        .refused();
    assert!(
        refused.ends_with("change.toml:2: it is not UTF-8; save it as UTF-8"),
        "{refused}"
    );
}

#[test]
fn a_folder_without_change_toml_and_an_empty_change_are_refused() {
    let refused = Folder::split().without(TOML).refused();
    assert!(refused.contains("no change.toml in it"), "{refused}");
    let id = "20261129T1031_nothing";
    let nothing = Folder::default().with(
        &format!("{id}/change.toml"),
        format!("format = 1\nid = \"{id}\"\nschema = \"app\"\n"),
    );
    let refused = nothing.change(id).unwrap_err().to_string();
    assert!(refused.contains("the change does nothing"), "{refused}");
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    let plain = Folder::split().change(SPLIT_ID).unwrap();
    let toml = format!("\u{feff}{}", crate::folder::SPLIT.replace('\n', "\r\n"));
    let other = Folder::split()
        .with(TOML, toml)
        .with(
            "20261129T1030_split_name/expand.sql",
            "\u{feff}ALTER TABLE users ADD COLUMN first_name text, ADD COLUMN last_name text;\r\n",
        )
        .change(SPLIT_ID)
        .unwrap();
    for phase in Phase::ALL {
        assert_eq!(other.sha256(phase), plain.sha256(phase), "{phase}");
        assert!(plain.sha256(phase).is_some());
    }
}

/// Every line of the file moves the hash of its phase and of no other; `[throttle]` moves none.
#[test]
fn each_phase_is_hashed_by_what_decides_it() {
    let plain = Folder::split().change(SPLIT_ID).unwrap();
    let (e, m, c) = (Phase::Expand, Phase::Migrate, Phase::Contract);
    let cases: [(&str, &str, &[Phase]); 14] = [
        ("schema = \"app\"", "schema = \"other\"", &[e, m, c]),
        ("run_as = \"app_owner\"\n", "", &[e, m, c]),
        ("\"clients name their columns\"", "\"another reason\"", &[e]),
        ("split_last(name)", "upper(name)", &[e]),
        ("both_changed = \"new\"", "both_changed = \"reject\"", &[e]),
        ("start = 1000", "start = 1001", &[m]),
        ("max_age = \"24h\"", "max_age = \"25h\"", &[m]),
        ("max_age = \"24h\"", "max_age = \"1d\"", &[]),
        ("cache_ttl_ms = 5000", "cache_ttl_ms = 5001", &[m]),
        ("observe = \"72h\"", "observe = \"71h\"", &[c]),
        ("max_lag_bytes = 67108864", "max_lag_bytes = 1", &[]),
        ("on_unknown = \"pause\"", "on_unknown = \"continue\"", &[]),
        ("[sync]", "# a comment\n[sync]", &[]),
        (
            "[sync]\ntable = \"users\"\nold = [\"name\"]",
            "[sync]\nold = [\"name\"]\ntable = \"users\"",
            &[],
        ),
    ];
    for (from, to, moved) in cases {
        let change = Folder::split()
            .edited(TOML, from, to)
            .change(SPLIT_ID)
            .unwrap();
        for phase in Phase::ALL {
            let differs = change.sha256(phase) != plain.sha256(phase);
            assert_eq!(differs, moved.contains(&phase), "{from} -> {to}: {phase}");
        }
    }
    for (file, phase) in [("expand.sql", e), ("tighten.sql", c), ("contract.sql", c)] {
        let name = format!("{SPLIT_ID}/{file}");
        let change = Folder::split()
            .with(&name, "SELECT 1;\n")
            .change(SPLIT_ID)
            .unwrap();
        for other in Phase::ALL {
            let differs = change.sha256(other) != plain.sha256(other);
            assert_eq!(differs, other == phase, "{file}: {other}");
        }
    }
}

/// Hashes that are in locks of the world: they never change.
#[test]
fn the_hashes_of_the_design_page_are_these_for_ever() {
    let change = Folder::split().change(SPLIT_ID).unwrap();
    let hashes = Phase::ALL.map(|phase| change.sha256(phase).unwrap());
    assert_eq!(
        hashes,
        [
            "120d7241845267e07be4926cbfc3e79930c81503bacaaeb75e5edf11fa39715e",
            "274ef2b5cb89a7ebb4d78aa694e7aac45d3cee78f6fd366d50987340a3615be7",
            "ad69b9f69e460d949e1d21c7dbbaf16acc50eeab5c4b763cca69d549d180acc4",
        ]
    );
}

#[test]
fn a_contract_is_added_later_without_moving_what_was_applied() {
    let (before, contract) = crate::folder::SPLIT.split_once("[contract]").unwrap();
    assert!(contract.contains("contract.sql"));
    let early = Folder::split()
        .with(TOML, before)
        .without("20261129T1030_split_name/tighten.sql")
        .without("20261129T1030_split_name/contract.sql")
        .change(SPLIT_ID)
        .unwrap();
    let late = Folder::split().change(SPLIT_ID).unwrap();
    assert_eq!(early.sha256(Phase::Expand), late.sha256(Phase::Expand));
    assert_eq!(early.sha256(Phase::Migrate), late.sha256(Phase::Migrate));
    assert_eq!(early.sha256(Phase::Contract), None);
}

#[test]
fn a_baseline_is_structure_and_nothing_else() {
    let id = "20261129T1030_adopted";
    let toml = |from: &str, more: &str| {
        format!(
            "format = 1\nid = \"{id}\"\nschema = \"app\"\n[baseline]\nfrom = \"{from}\"\n[expand]\nsql = \"expand.sql\"\n{more}"
        )
    };
    let folder = |toml: String| Folder::small(id).with(&format!("{id}/change.toml"), toml);
    folder(toml("sqlx", "")).change(id).unwrap();
    for (toml, told) in [
        (
            toml("make", ""),
            "`baseline.from`: `make` is no tool; write changes, sqlx",
        ),
        (
            toml("changes", ""),
            "squashed.lock and from = \"changes\" belong together",
        ),
        (
            toml(
                "sqlx",
                "[switch]\nreads = [\"old\"]\nwrites = [\"old\"]\ncache_ttl_ms = 1\n",
            ),
            "`baseline`: a baseline has [expand] and nothing else",
        ),
    ] {
        let refused = folder(toml).change(id).unwrap_err().to_string();
        assert!(refused.contains(told), "{refused}");
    }
    let hash = "0".repeat(64);
    let squash =
        |lock: String| folder(toml("changes", "")).with(&format!("{id}/squashed.lock"), lock);
    let one = squash(format!("20261128T1030_a expand {hash}\n"))
        .change(id)
        .unwrap();
    let two = squash(format!("20261128T1030_b expand {hash}\n"))
        .change(id)
        .unwrap();
    assert_ne!(one.sha256(Phase::Expand), two.sha256(Phase::Expand));
    let refused = squash("20261128T1030_b expand\n".to_owned())
        .change(id)
        .unwrap_err();
    assert!(
        refused.to_string().contains("squashed.lock:1: 2 words"),
        "{refused}"
    );
}
