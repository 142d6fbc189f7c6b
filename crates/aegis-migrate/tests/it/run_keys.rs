//! A key that cannot walk its table is told before the expand that its rows belong to, by a run and by a plan, in one sentence.

use aegis_catalog::{Scope, read};
use aegis_migrate::change::Phase;
use aegis_migrate::plan::{What, plan};
use aegis_migrate::set::Set;
use aegis_testkit::TestDb;

use crate::folder::Folder;
use crate::run::{ran, sealed};

const ID: &str = "20261129T1030_done";

/// A change that moves rows by this key, with statements of its own before that.
fn moves_by(key: &str, expand: &str, migrate: Option<&str>) -> Set {
    let rows = format!("[backfill]\ntable = \"t\"\nkey = [\"{key}\"]\nstatement = \"b.sql\"\n");
    let statement = format!("UPDATE t SET done = true WHERE {key} > :from AND {key} <= :to;\n");
    sealed(&moving(&rows, expand, migrate).with(&format!("{ID}/b.sql"), statement))
}

/// One whose rows are moved by its `[sync]`, each partition by itself.
fn carries_by(key: &str, migrate: Option<&str>) -> Set {
    let rows = format!(
        "[sync]\ntable = \"t\"\nold = [\"code\"]\nnew = [\"label\"]\n[sync.forward]\nlabel = \"code\"\n[sync.backward]\ncode = \"label\"\n\
         [backfill]\nkey = [\"{key}\"]\nset = \"sync.forward\"\n"
    );
    let expand = "ALTER TABLE t ADD COLUMN label text;\n";
    sealed(&moving(&rows, expand, migrate))
}

fn moving(rows: &str, expand: &str, migrate: Option<&str>) -> Folder {
    let more = migrate.map_or("", |_| "[migrate]\nsql = \"migrate.sql\"\ncompatible = [{ rule = \"new-write-restriction\", reason = \"codes are unique\" }]\n");
    let toml = format!(
        "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\ncompatible = [{{ rule = \"add-column\", reason = \"named\" }}]\n{more}{rows}"
    );
    let folder = Folder::default()
        .with(&format!("{ID}/change.toml"), toml)
        .with(&format!("{ID}/expand.sql"), expand.to_owned());
    match migrate {
        None => folder,
        Some(sql) => folder.with(&format!("{ID}/migrate.sql"), sql.to_owned()),
    }
}

async fn in_use() -> TestDb {
    let db = TestDb::empty().await;
    let tables = "CREATE SCHEMA app; CREATE TABLE app.t (id bigint PRIMARY KEY, code text NOT NULL, nick text);
        INSERT INTO app.t VALUES (1, 'a', 'b')";
    db.admin.batch_execute(tables).await.unwrap();
    db
}

/// What a plan says of the backfill's key.
async fn planned(db: &TestDb, set: &Set) -> Option<String> {
    let scope = Scope::schemas(["app".to_owned()]);
    let catalog = read(&db.admin, &scope).await.unwrap();
    let change = &set.changes[&ID.parse().unwrap()];
    let phases = [(change, Phase::Expand), (change, Phase::Migrate)];
    let items = plan(&phases, Some(&catalog), catalog.server_major()).unwrap();
    // Without a catalog nobody knows.
    for item in plan(&phases, None, 15).unwrap() {
        assert!(
            !matches!(
                item.what,
                What::Backfill {
                    key_fault: Some(_),
                    ..
                }
            ),
            "{item:?}"
        );
    }
    items.into_iter().find_map(|item| match item.what {
        What::Backfill { key_fault, .. } => key_fault,
        _ => None,
    })
}

const ADD: &str = "ALTER TABLE t ADD COLUMN done boolean;\n";

#[tokio::test]
async fn a_wrong_key_is_told_before_the_first_statement_of_expand_and_by_a_plan() {
    let db = in_use().await;
    for (key, said) in [
        (
            "nope",
            "app.t has no column nope, which [backfill] key names",
        ),
        ("nick", "app.t.nick may be NULL"),
        (
            "code",
            "app.t has no valid unique index on exactly (code), in that order",
        ),
    ] {
        let set = moves_by(key, ADD, None);
        let error = ran(&db, &set, Phase::Expand).await.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.exit_code(), 21, "{text}");
        assert!(text.contains(said), "{said}: {text}");
        assert!(
            text.contains("20261129T1030_done/change.toml: [backfill]"),
            "{text}"
        );
        let planned = planned(&db, &set).await.unwrap();
        assert!(text.contains(&planned), "{planned}: {text}");
        let added = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'app.t'::regclass AND attname = 'done'";
        let added: i64 = db.admin.query_one(added, &[]).await.unwrap().get(0);
        assert_eq!(added, 0, "{key}");
    }
    let right = moves_by("id", ADD, None);
    assert_eq!(planned(&db, &right).await, None);
    ran(&db, &right, Phase::Expand).await.unwrap();
    ran(&db, &right, Phase::Migrate).await.unwrap();
}

#[tokio::test]
async fn a_key_that_the_change_makes_itself_is_waited_for() {
    let index = "CREATE UNIQUE INDEX CONCURRENTLY t_code ON t (code);\n";
    let db = in_use().await;
    let set = moves_by("code", ADD, Some(index));
    assert_eq!(planned(&db, &set).await, None);
    ran(&db, &set, Phase::Expand).await.unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
}

/// A table of two partitions; the statements make keys.
async fn partitioned(keys: &str) -> TestDb {
    let db = TestDb::empty().await;
    let tables = "CREATE SCHEMA app; SET search_path = app;
        CREATE TABLE t (id bigint NOT NULL, code text NOT NULL) PARTITION BY RANGE (id);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
        CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20);
        INSERT INTO t VALUES (1, 'a'), (11, 'b');";
    let all = format!("{tables} {keys}; RESET search_path");
    db.admin.batch_execute(&all).await.unwrap();
    db
}

const OF_LEAVES: &str = "CREATE UNIQUE INDEX ON t1 (id); CREATE UNIQUE INDEX ON t2 (id)";

/// A run of expand is refused with these words, which a plan says too.
async fn told(db: &TestDb, set: &Set, said: &str) {
    let planned = planned(db, set).await.unwrap();
    assert!(planned.starts_with(said), "{planned}");
    let error = ran(db, set, Phase::Expand).await.unwrap_err();
    assert_eq!(error.exit_code(), 21, "{error}");
    assert!(error.to_string().contains(&planned), "{error}");
}

#[tokio::test]
async fn a_statement_needs_the_key_of_the_whole_table_and_a_sync_that_of_each_partition() {
    let db = partitioned(OF_LEAVES).await;
    told(
        &db,
        &moves_by("id", ADD, None),
        "app.t has no valid unique index on exactly (id)",
    )
    .await;
    let right = carries_by("id", None);
    assert_eq!(planned(&db, &right).await, None);
    ran(&db, &right, Phase::Expand).await.unwrap();
    ran(&db, &right, Phase::Migrate).await.unwrap();

    // One of the whole table is one of each partition.
    let db = partitioned("CREATE UNIQUE INDEX ON t (id)").await;
    assert_eq!(planned(&db, &carries_by("id", None)).await, None);
    let right = moves_by("id", ADD, None);
    assert_eq!(planned(&db, &right).await, None);
    ran(&db, &right, Phase::Expand).await.unwrap();
    ran(&db, &right, Phase::Migrate).await.unwrap();

    let db = partitioned("CREATE UNIQUE INDEX ON t1 (id)").await;
    told(
        &db,
        &carries_by("id", None),
        "app.t2 has no valid unique index on exactly (id)",
    )
    .await;
}

#[tokio::test]
async fn a_key_that_the_change_makes_on_a_partition_is_waited_for() {
    let db = partitioned("CREATE UNIQUE INDEX ON t2 (id)").await;
    let index = "CREATE UNIQUE INDEX CONCURRENTLY t1_id ON t1 (id);\n";
    let set = carries_by("id", Some(index));
    assert_eq!(planned(&db, &set).await, None);
    ran(&db, &set, Phase::Expand).await.unwrap();
    ran(&db, &set, Phase::Migrate).await.unwrap();
}

#[tokio::test]
async fn nothing_is_said_of_a_key_where_a_statement_may_make_it() {
    let db = partitioned("").await;
    for (sql, may) in [
        ("CREATE UNIQUE INDEX CONCURRENTLY i ON t2 (id)", true),
        ("ALTER TABLE t2 ALTER COLUMN id SET NOT NULL", true),
        ("ALTER TABLE t2 ADD CONSTRAINT k UNIQUE (id)", true),
        ("ALTER TABLE t DETACH PARTITION t1", true),
        ("DROP TABLE t1", true),
        ("CREATE TABLE t3 PARTITION OF t DEFAULT", true),
        ("ALTER INDEX t_id ATTACH PARTITION t1_id", true),
        ("REINDEX INDEX CONCURRENTLY t1_id", true),
        ("CALL make_keys()", true),
        ("SELECT make_keys()", true),
        ("DO $$ BEGIN PERFORM make_keys(); END $$", true),
        ("SET search_path = app, other", true),
        // None of these makes one.
        ("CREATE UNIQUE INDEX CONCURRENTLY i ON u (id)", false),
        ("CREATE INDEX CONCURRENTLY i ON t1 (id)", false),
        ("ALTER TABLE t2 ALTER COLUMN code SET NOT NULL", false),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0) NOT VALID",
            false,
        ),
        ("INSERT INTO t VALUES (3, 'c')", false),
        ("SELECT 1", false),
    ] {
        let set = carries_by("id", Some(&format!("{sql};\n")));
        let said = planned(&db, &set).await;
        assert_eq!(said.is_none(), may, "{sql}: {said:?}");
    }
}
