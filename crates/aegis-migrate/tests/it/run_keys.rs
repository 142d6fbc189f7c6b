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
    let more = migrate.map_or("", |_| "[migrate]\nsql = \"migrate.sql\"\ncompatible = [{ rule = \"new-write-restriction\", reason = \"codes are unique\" }]\n");
    let toml = format!(
        "format = 1\nid = \"{ID}\"\nschema = \"app\"\n[expand]\nsql = \"expand.sql\"\ncompatible = [{{ rule = \"add-column\", reason = \"named\" }}]\n\
         {more}[backfill]\ntable = \"t\"\nkey = [\"{key}\"]\nstatement = \"b.sql\"\n"
    );
    let folder = Folder::default()
        .with(&format!("{ID}/change.toml"), toml)
        .with(&format!("{ID}/expand.sql"), expand.to_owned())
        .with(
            &format!("{ID}/b.sql"),
            format!("UPDATE t SET done = true WHERE {key} > :from AND {key} <= :to;\n"),
        );
    sealed(&match migrate {
        None => folder,
        Some(sql) => folder.with(&format!("{ID}/migrate.sql"), sql.to_owned()),
    })
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
