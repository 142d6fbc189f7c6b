//! What a catalog tells: statements that the server refuses, and drops of what is not there. Each is run on the server too.

use aegis_catalog::{Catalog, Scope};
use aegis_ddl::{Class, Context, SourceFile, Verdict};
use aegis_testkit::TestDb;

const SETUP: &str = "CREATE SCHEMA f; SET search_path = f; SET client_min_messages = error;
    CREATE TABLE users (id bigint PRIMARY KEY, a bigint, b bigint NOT NULL DEFAULT 1, c bigint NOT NULL, e text);
    CREATE TABLE others (id bigint PRIMARY KEY);
    CREATE INDEX plain ON users (e); CREATE UNIQUE INDEX part ON users (e) WHERE a > 1;
    CREATE UNIQUE INDEX of_others ON others (id); CREATE UNIQUE INDEX whole ON users (e);
    CREATE MATERIALIZED VIEW bare AS SELECT id FROM users;
    CREATE MATERIALIZED VIEW keyed AS SELECT id FROM users; CREATE UNIQUE INDEX keyed_id ON keyed (id)";

fn judged(sql: &str, catalog: &Catalog) -> Verdict {
    let file = SourceFile {
        path: "a.sql".to_owned(),
        script: aegis_ddl::read(sql).unwrap(),
        phase: None,
        atomic: None,
        proven: false,
    };
    let context = Context {
        server: catalog.server_major(),
        catalog: Some(catalog),
        schema: "f",
        fresh: false,
        compatible: &[],
    };
    aegis_ddl::judge(&[file], &context).verdicts.remove(0)
}

#[tokio::test]
async fn what_the_server_refuses_by_what_is_there_is_an_error() {
    let db = TestDb::empty().await;
    db.admin.batch_execute(SETUP).await.unwrap();
    let scope = Scope::schemas(["f".to_owned()]).structure_only();
    let catalog = aegis_catalog::read(&db.admin, &scope).await.unwrap();
    for (sql, refused) in [
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY bare", true),
        ("REFRESH MATERIALIZED VIEW CONCURRENTLY keyed", false),
        ("DROP INDEX CONCURRENTLY users_pkey", true),
        (
            "ALTER TABLE users ALTER a ADD GENERATED ALWAYS AS IDENTITY",
            true,
        ),
        (
            "ALTER TABLE users ALTER b ADD GENERATED ALWAYS AS IDENTITY",
            true,
        ),
        (
            "ALTER TABLE users ALTER c ADD GENERATED ALWAYS AS IDENTITY",
            false,
        ),
        ("ALTER TABLE users ADD UNIQUE USING INDEX plain", true),
        ("ALTER TABLE users ADD UNIQUE USING INDEX part", true),
        ("ALTER TABLE users ADD UNIQUE USING INDEX of_others", true),
        ("ALTER TABLE users ADD UNIQUE USING INDEX whole", false),
        ("DROP INDEX IF EXISTS never_was", false),
        ("ALTER TABLE others DROP CONSTRAINT IF EXISTS nope", false),
    ] {
        let verdict = judged(sql, &catalog);
        assert_eq!(verdict.class == Class::E, refused, "{sql}: {verdict:?}");
        assert_eq!(db.admin.batch_execute(sql).await.is_err(), refused, "{sql}");
        if sql.contains("IF EXISTS") {
            assert_eq!(verdict.class, Class::A, "{sql}: {verdict:?}");
        }
    }
    let there = "ALTER TABLE others DROP CONSTRAINT IF EXISTS others_pkey";
    assert_eq!(judged(there, &catalog).class, Class::D);
}
