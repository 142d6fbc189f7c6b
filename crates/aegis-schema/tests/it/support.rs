//! A database, the installer of before, and sets that are shorter or longer than this binary's.

use std::fmt::Write as _;

use aegis_catalog::{Scope, Structure, read};
use aegis_migrate::change::{Files, Phase};
use aegis_migrate::set::Set;
use aegis_store::Config;
use aegis_store::install::{FILES, FOLDER, OLD_STEPS};
use aegis_testkit::TestDb;
use tokio_postgres::Client;

pub(crate) fn config(db: &TestDb) -> Config {
    Config::from_url(&db.url()).unwrap()
}

pub(crate) fn engine(db: &TestDb) -> Config {
    Config::from_url(&db.url_as("aegis_engine")).unwrap()
}

/// The first lines only, as an earlier release had them.
pub(crate) fn through(lines: usize) -> Set {
    let mut set = aegis_schema::set().unwrap();
    set.lock = set.lock.through(lines);
    set
}

/// This binary's changes and one more, as the next release has them.
pub(crate) fn with_next(sql: &str) -> Set {
    const ID: &str = "20990101T0000_next";
    let toml = format!(
        "format = 1\nid = \"{ID}\"\nschema = \"aegis\"\n[expand]\nsql = \"expand.sql\"\natomic = true\n"
    );
    changed(&[
        (&format!("{ID}/change.toml"), toml.as_bytes()),
        (&format!("{ID}/expand.sql"), sql.as_bytes()),
    ])
}

/// This binary's files with others in their place or beside them, sealed as they are now.
pub(crate) fn changed(files: &[(&str, &[u8])]) -> Set {
    let kept = FILES.iter().copied().filter(|(name, _)| {
        *name != "migrations.lock" && !files.iter().any(|(new, _)| new == name)
    });
    let all: Vec<(&str, &[u8])> = kept.chain(files.iter().copied()).collect();
    let unsealed = Set::of(Files::embedded(FOLDER, all.iter().copied())).unwrap();
    let mut lock = String::new();
    for change in unsealed.changes.values() {
        let hash = change.sha256(Phase::Expand).unwrap();
        writeln!(lock, "{} expand {hash}", change.id).unwrap();
    }
    let lock = ("migrations.lock", lock.as_bytes());
    Set::of(Files::embedded(FOLDER, all.into_iter().chain([lock]))).unwrap()
}

/// What the installer of before did: its ledger, its steps with their checksums, in one transaction.
pub(crate) async fn install_as_before(client: &mut Client, steps: usize) {
    let text = |id: &str| {
        let name = format!("{id}/expand.sql");
        let (_, bytes) = FILES.iter().find(|(known, _)| *known == name).unwrap();
        std::str::from_utf8(bytes).unwrap()
    };
    let set = aegis_schema::set().unwrap();
    let transaction = client.transaction().await.unwrap();
    for (at, (line, old)) in set.lock.lines.iter().zip(OLD_STEPS).take(steps).enumerate() {
        transaction
            .batch_execute(text(line.at.id.as_str()))
            .await
            .unwrap();
        let version = i32::try_from(at + 1).unwrap();
        transaction
            .execute(
                "INSERT INTO aegis.schema_step (version, name, checksum) VALUES ($1, $2, $3)",
                &[&version, &old.name, &old.checksum],
            )
            .await
            .unwrap();
        transaction
            .execute("UPDATE aegis.schema_version SET schema = $1", &[&version])
            .await
            .unwrap();
    }
    transaction
        .batch_execute("SELECT aegis.switch_inline(); SELECT aegis.make_partitions(2)")
        .await
        .unwrap();
    transaction.commit().await.unwrap();
}

/// What is in the engine's schema.
pub(crate) async fn structure(client: &Client) -> Structure {
    let scope = Scope::schemas(vec!["aegis".to_owned()]).structure_only();
    read(client, &scope).await.unwrap().structure()
}

pub(crate) async fn one<T>(client: &Client, sql: &str) -> T
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    client.query_one(sql, &[]).await.unwrap().get(0)
}
