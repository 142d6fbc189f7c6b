//! The reach of each statement is wide enough: after each, the sum of the steps is what is there.

use aegis_catalog::{Scope, read};
use aegis_migrate::structure::{Reach, expected};

use super::{account, step};

const STATEMENTS: &str = "
CREATE TYPE mood AS ENUM ('a', 'b');
CREATE DOMAIN percent AS int CHECK (VALUE < 100);
CREATE SEQUENCE counter;
CREATE TABLE users (id bigserial PRIMARY KEY, email text, m mood, p percent);
CREATE TABLE app.orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id bigint NOT NULL, status text DEFAULT 'new');
ALTER TABLE orders ADD CONSTRAINT u FOREIGN KEY (user_id) REFERENCES users NOT VALID;
ALTER TABLE orders VALIDATE CONSTRAINT u;
CREATE UNIQUE INDEX email ON users (lower(email)) WHERE email <> '';
ALTER INDEX email RENAME TO email_2;
CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE FUNCTION f(a int, b text) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TRIGGER g BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION f();
ALTER TABLE users DISABLE TRIGGER g;
CREATE VIEW v AS SELECT id, email FROM users;
CREATE OR REPLACE VIEW v AS SELECT id, email, m FROM users;
CREATE MATERIALIZED VIEW mv AS SELECT count(*) AS n FROM orders;
CREATE POLICY own ON orders USING (user_id > 1);
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER POLICY own ON orders USING (user_id > 2);
CREATE RULE r AS ON DELETE TO orders DO INSTEAD NOTHING;
GRANT SELECT ON v TO PUBLIC;
REVOKE EXECUTE ON FUNCTION f(int, text) FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT SELECT ON TABLES TO PUBLIC;
CREATE STATISTICS s (dependencies) ON user_id, status FROM orders;
ALTER TYPE mood ADD VALUE 'c' AFTER 'a';
ALTER DOMAIN percent ADD CONSTRAINT more CHECK (VALUE > -1);
ALTER SEQUENCE counter INCREMENT 3;
COMMENT ON TABLE users IS 'people';
ALTER TABLE users RENAME COLUMN email TO mail;
ALTER TABLE users RENAME TO people;
ALTER TABLE orders ALTER COLUMN status SET NOT NULL, ALTER COLUMN status SET DEFAULT 'x';
CREATE TABLE events (id int, at date) PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE events_2 (id int, at date);
CREATE INDEX events_id ON events (id);
ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
ALTER TABLE events ADD COLUMN note text;
ALTER TABLE events DETACH PARTITION events_1;
CREATE TABLE base (a int);
CREATE TABLE kid () INHERITS (base);
ALTER TABLE base ADD COLUMN b int;
ALTER TABLE kid NO INHERIT base;
CREATE TABLE copy AS SELECT id FROM people;
DO $$ BEGIN EXECUTE 'CREATE TABLE dynamic (a int)'; END $$;
ALTER TABLE dynamic SET SCHEMA other;
CREATE SCHEMA third;
CREATE PUBLICATION pub FOR TABLE orders;
INSERT INTO orders (user_id) SELECT 1 WHERE false;
DROP FUNCTION f(int, text);
DROP POLICY own ON orders;
DROP TRIGGER g ON people;
DROP RULE r ON orders;
DROP STATISTICS s;
DROP INDEX email_2;
DROP MATERIALIZED VIEW mv;
DROP TABLE people CASCADE;
DROP TYPE mood CASCADE;
DROP TABLE events;
DROP SEQUENCE counter;
DROP PUBLICATION pub;
DROP SCHEMA other CASCADE;
";

#[tokio::test]
async fn after_each_statement_the_sum_is_what_is_there() {
    let db = account().await;
    let client = &db.admin;
    let script = aegis_ddl::read(STATEMENTS).unwrap();
    assert_eq!(
        script.statements.len(),
        STATEMENTS
            .lines()
            .filter(|line| line.contains(';') && !line.is_empty())
            .count()
    );
    super::run(client, "CREATE SCHEMA other").await;
    let scope = Scope::everything().structure_only();
    let before = read(client, &scope).await.unwrap().structure();
    for (number, statement) in script.statements.iter().enumerate() {
        let reach = Reach::of(statement, "app");
        step(client, &number.to_string(), &statement.text, &reach).await;
        let mut live = read(client, &scope).await.unwrap().structure();
        let sum = expected(
            client,
            aegis_migrate::ledger::LedgerName::Application,
            live.server_major,
        )
        .await
        .unwrap()
        .unwrap()
        .structure;
        // What was there before the first step is no step's.
        live.elements
            .retain(|key, shape| before.elements.get(key) != Some(shape));
        let differences = sum.compare(&live).unwrap();
        let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
        assert!(
            lines.is_empty(),
            "{} ({reach:?}):\n{}",
            statement.text,
            lines.join("\n")
        );
    }
}
