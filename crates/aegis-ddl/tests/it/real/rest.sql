-- What comes up now and then: sessions, foreign data, event triggers, keys by indexes of the same set, what looks like a key.

-- >>> A session: notify and discard
NOTIFY cache_reset, 'orders';
DISCARD PLANS;
-- >>> A foreign: tables of another server
CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SERVER warehouse FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'w');
CREATE USER MAPPING FOR app SERVER warehouse OPTIONS (user 'a');
IMPORT FOREIGN SCHEMA public LIMIT TO (sales) FROM SERVER warehouse INTO remote;
-- >>> A foreign: another address
ALTER SERVER warehouse OPTIONS (SET host 'w2');
-- >>> A events: an event trigger
CREATE EVENT TRIGGER guard ON ddl_command_end EXECUTE FUNCTION guard();
-- >>> D:drop-object roles: what a role owns goes
DROP OWNED BY old_app;
-- >>> E:cluster-wide subscriptions
CREATE SUBSCRIPTION s CONNECTION 'host=a' PUBLICATION p;
-- >>> C keys: a primary key over a column of which nobody knows
CREATE UNIQUE INDEX CONCURRENTLY people_mail ON people (mail);
BEGIN;
ALTER TABLE people ADD CONSTRAINT people_pkey PRIMARY KEY USING INDEX people_mail;
COMMIT;
-- >>> B:dml-bulk rows: empty is no key
UPDATE people SET mail = NULL WHERE mail = '';
-- >>> B:dml-bulk rows: empty is no key, whatever the column is called
UPDATE people SET email = NULL WHERE email = '';
-- >>> B:dml-bulk rows: NULL is no key
UPDATE people SET email = 'x' WHERE email IS NULL;
-- >>> B:dml-bulk rows: a pattern
DELETE FROM people WHERE email LIKE '%@example.com';
-- >>> A rows: by an id in text
UPDATE settings SET value = 'on' WHERE key = 'mail.enabled';
-- >>> A rows: insert or leave
INSERT INTO settings (key, value) VALUES ('mail.enabled', 'on') ON CONFLICT DO NOTHING;
-- >>> A rows: insert unless it is there
INSERT INTO settings (key, value) SELECT 'mail.enabled', 'on' WHERE NOT EXISTS (SELECT 1 FROM settings WHERE key = 'mail.enabled');
-- >>> B:dml-bulk rows: rows of one table for each of another
INSERT INTO memberships (user_id, plan) SELECT id, 'free' FROM users;
-- >>> B:dml-bulk rows: moved by a WITH
WITH moved AS (DELETE FROM events WHERE at < '2024-01-01' RETURNING *) INSERT INTO events_old SELECT * FROM moved;
-- >>> A new table: everything that may stand beside it
CREATE TABLE carts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner uuid NOT NULL, items jsonb NOT NULL DEFAULT '[]', total numeric(12, 2) GENERATED ALWAYS AS (0) STORED);
ALTER TABLE carts ADD CONSTRAINT carts_items CHECK (jsonb_typeof(items) = 'array');
ALTER TABLE carts ADD CONSTRAINT carts_owner UNIQUE (owner);
CREATE INDEX carts_items_gin ON carts USING gin (items);
ALTER TABLE carts ALTER COLUMN owner DROP NOT NULL;
ALTER TABLE carts ALTER COLUMN owner SET NOT NULL;
ALTER TABLE carts CLUSTER ON carts_pkey;
ALTER TABLE carts RENAME COLUMN items TO lines;
-- >>> A new table: partitions with everything
CREATE TABLE metrics (at timestamptz NOT NULL, name text NOT NULL, value double precision) PARTITION BY RANGE (at);
CREATE TABLE metrics_default PARTITION OF metrics DEFAULT;
CREATE TABLE metrics_2026 PARTITION OF metrics FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE INDEX metrics_name ON metrics (name, at);
ALTER TABLE metrics ADD PRIMARY KEY (at, name);
-- >>> B:set-not-null-scan new column: required at once
ALTER TABLE orders ADD COLUMN region text DEFAULT 'eu', ALTER COLUMN region SET NOT NULL;
-- >>> A new column: required from the start, with a value
ALTER TABLE orders ADD COLUMN region text DEFAULT 'eu' NOT NULL;
-- >>> B:add-unique new column: unique beside
ALTER TABLE orders ADD COLUMN code text, ADD CONSTRAINT orders_code UNIQUE (code);
-- >>> B:add-constraint-scan several: one of many
ALTER TABLE orders ADD COLUMN a int, ALTER COLUMN b SET DEFAULT 2, ADD CONSTRAINT c CHECK (b > 0);
-- >>> A rename: the old name is kept by a view
BEGIN;
ALTER TABLE clients RENAME TO customers;
CREATE VIEW clients AS SELECT * FROM customers;
COMMIT;
-- >>> A views: made again, the columns before are not known
DROP VIEW order_list;
CREATE VIEW order_list AS SELECT id, total FROM orders;
-- >>> A comments that look like SQL
-- DROP TABLE users;
/* ALTER TABLE users DROP COLUMN name; */
ALTER TABLE users ADD COLUMN nickname text; -- TRUNCATE users
-- >>> A strings that look like SQL
INSERT INTO notes (id, body) VALUES (1, 'DROP TABLE users; CREATE INDEX x ON y (z)');
COMMENT ON TABLE notes IS 'UPDATE notes SET body = 1';
-- >>> A case and quotes
aLtEr TaBlE "Weird Table" aDd CoLuMn "Select" InTeGeR;
-- >>> A schema: made and granted
CREATE SCHEMA IF NOT EXISTS billing AUTHORIZATION app;
GRANT USAGE ON SCHEMA billing TO app;
ALTER DEFAULT PRIVILEGES IN SCHEMA billing GRANT SELECT ON TABLES TO app;
-- >>> B:create-index-not-concurrent extensions: a trigram index
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX users_name_trgm ON users USING gin (name gin_trgm_ops);
-- >>> C extensions: the same, concurrently
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX CONCURRENTLY users_name_trgm ON users USING gin (name gin_trgm_ops);
-- >>> A functions: drop of what this file made
CREATE FUNCTION pg_temp.slug(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT lower(t) $$;
DROP FUNCTION pg_temp.slug(text);
-- >>> A rights: what everybody has of a new function goes
CREATE FUNCTION secret(a int, b text) RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ SELECT 1 $$;
REVOKE ALL ON FUNCTION secret(int, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION secret(int, text) TO app;
-- >>> A rights: of a new table and a new schema
CREATE SCHEMA billing;
REVOKE ALL ON SCHEMA billing FROM PUBLIC;
CREATE TABLE billing.cards (id bigint PRIMARY KEY);
REVOKE ALL ON billing.cards FROM PUBLIC;
REVOKE UPDATE (id) ON TABLE billing.cards FROM app;
-- >>> D:revoke rights: of a function that was there
REVOKE EXECUTE ON FUNCTION secret(int, text) FROM PUBLIC;
-- >>> D:revoke rights: of a new table and of one that was there
CREATE TABLE cards (id bigint PRIMARY KEY);
REVOKE SELECT ON cards, users FROM reporting;
-- >>> D:revoke rights: a role of another
REVOKE reporting FROM app;
-- >>> A triggers: off and on around one row
BEGIN;
ALTER TABLE orders DISABLE TRIGGER audit_orders;
UPDATE orders SET total = 1 WHERE id = 7;
ALTER TABLE orders ENABLE TRIGGER audit_orders;
COMMIT;
-- >>> D:disable-trigger triggers: off, and another one on
ALTER TABLE orders DISABLE TRIGGER audit_orders;
ALTER TABLE orders ENABLE TRIGGER other;
-- >>> D:replace-function functions: dropped, and made with one more argument
DROP FUNCTION IF EXISTS price(integer);
CREATE FUNCTION price(book integer, vat numeric) RETURNS numeric LANGUAGE sql AS $$ SELECT 1 $$;
-- >>> A functions: dropped, and made with one that may be left out
DROP FUNCTION IF EXISTS price(integer);
CREATE FUNCTION price(book integer, vat numeric DEFAULT 0.2) RETURNS numeric LANGUAGE sql AS $$ SELECT 1 $$;
-- >>> A functions: dropped, and made with another result
DROP FUNCTION price(integer);
CREATE OR REPLACE FUNCTION price(book integer, OUT net numeric, OUT gross numeric) LANGUAGE sql AS $$ SELECT 1, 2 $$;
-- >>> D:drop-object functions: dropped, and another one made
DROP FUNCTION price(integer);
CREATE FUNCTION price_of(book integer) RETURNS numeric LANGUAGE sql AS $$ SELECT 1 $$;
-- >>> A proven: the last step of the safe way, alone
ALTER TABLE users ALTER COLUMN name SET NOT NULL;
ALTER TABLE users DROP CONSTRAINT users_name_null;
-- >>> B:set-not-null-scan proven: a constraint of another column goes
ALTER TABLE users ALTER COLUMN name SET NOT NULL;
ALTER TABLE users DROP CONSTRAINT users_mail_null;
-- >>> B:set-not-null-scan proven: it goes too early
ALTER TABLE users DROP CONSTRAINT users_name_null;
ALTER TABLE users ALTER COLUMN name SET NOT NULL;
-- >>> B:set-not-null-scan proven: it goes in the same statement, and the server drops first
ALTER TABLE users ALTER COLUMN name SET NOT NULL, DROP CONSTRAINT users_name_null;
