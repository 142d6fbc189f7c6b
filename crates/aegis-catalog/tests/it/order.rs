//! One aim, two ways: the fingerprint does not know the way. And how long a large database takes, printed.

use aegis_catalog::{Difference, Scope, read};
use aegis_testkit::TestDb;

use crate::zoo::{all, run};

#[tokio::test]
async fn two_orders_of_the_same_changes_have_one_fingerprint() {
    let one = TestDb::empty().await;
    let two = TestDb::empty().await;
    run(
        &one.admin,
        "CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL DEFAULT '', age int CHECK (age > 0)); \
         CREATE TABLE orders (id bigint PRIMARY KEY, user_id bigint REFERENCES users); \
         CREATE INDEX by_user ON orders (user_id); CREATE VIEW v AS SELECT id, email FROM users; GRANT SELECT ON v TO PUBLIC",
    )
    .await;
    run(
        &two.admin,
        "CREATE TABLE orders (gone int, user_id bigint, id bigint); CREATE TABLE users (age int, email text, id bigint); \
         ALTER TABLE orders DROP COLUMN gone; CREATE INDEX by_user ON orders (user_id); \
         ALTER TABLE users ADD PRIMARY KEY (id); ALTER TABLE orders ADD PRIMARY KEY (id); \
         ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users NOT VALID; \
         ALTER TABLE orders VALIDATE CONSTRAINT orders_user_id_fkey; \
         ALTER TABLE users ADD CHECK (age > 0); ALTER TABLE users ALTER COLUMN email SET DEFAULT ''; \
         ALTER TABLE users ALTER COLUMN email SET NOT NULL; CREATE VIEW v AS SELECT users.id, users.email FROM users; \
         GRANT SELECT, INSERT ON v TO PUBLIC; REVOKE INSERT ON v FROM PUBLIC; GRANT ALL ON users TO CURRENT_USER",
    )
    .await;
    let (one, two) = (
        all(&one.admin).await.structure(),
        all(&two.admin).await.structure(),
    );
    let differences = one.compare(&two).unwrap();
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(
        !differences.iter().any(Difference::is_wrong),
        "{}",
        lines.join("\n")
    );
    assert_eq!(one.fingerprint(), two.fingerprint());
    // The order of columns is told.
    assert!(
        lines
            .iter()
            .any(|line| line.contains("relation public.users: order of columns")),
        "{lines:?}"
    );
}

/// Printed, not judged: `cargo test -p aegis-catalog --test it -- --ignored --nocapture ten_thousand`.
#[tokio::test]
#[ignore = "makes 10,000 tables: a figure for people, not a check"]
async fn ten_thousand_tables_are_read() {
    let db = TestDb::empty().await;
    for part in 0..10 {
        let sql = format!(
            "DO $$ BEGIN FOR n IN {}..{} LOOP EXECUTE format('CREATE TABLE t_%s (id bigint PRIMARY KEY, a text NOT NULL DEFAULT %L, \
             b int CHECK (b > 0), c timestamptz DEFAULT now(), d numeric(10, 2)); CREATE INDEX ON t_%s (a) WHERE b > 1', n, 'x', n); END LOOP; END $$",
            part * 1000,
            part * 1000 + 999
        );
        run(&db.admin, &sql).await;
    }
    for (what, scope) in [
        ("with sizes and rates", Scope::everything()),
        ("structure only", Scope::everything().structure_only()),
        (
            "one table",
            Scope::objects([aegis_catalog::Name::new("public", "t_77")]).structure_only(),
        ),
    ] {
        let begin = std::time::Instant::now();
        let catalog = read(&db.admin, &scope).await.unwrap();
        let read_ms = begin.elapsed().as_millis();
        let structure = catalog.structure();
        let fingerprint = structure.fingerprint();
        let all_ms = begin.elapsed().as_millis();
        eprintln!(
            "{what}: {} tables read in {read_ms} ms, fingerprint {} after {all_ms} ms",
            catalog.relations.len(),
            &fingerprint[..8]
        );
    }
}
