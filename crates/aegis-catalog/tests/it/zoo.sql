-- One of everything, with names that need quotes. %SUFFIX% makes roles of this database's own.
CREATE ROLE "Zoo Owner %SUFFIX%";
CREATE ROLE zoo_reader_%SUFFIX%;
CREATE SCHEMA app;
CREATE SCHEMA "We""ird.Schema";
SET search_path = app, pg_catalog;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE point3 AS (x double precision, y double precision, label text COLLATE "C");
CREATE DOMAIN percent AS integer DEFAULT 50 CONSTRAINT in_range CHECK (VALUE >= 0 AND VALUE <= 100);
CREATE DOMAIN strict_percent AS percent NOT NULL;
CREATE TYPE span AS RANGE (subtype = double precision);
CREATE SEQUENCE counter AS integer INCREMENT 5 MINVALUE 10 MAXVALUE 1000 START 20 CACHE 3 CYCLE;

CREATE FUNCTION slug(t text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS 'SELECT lower(t)';
CREATE FUNCTION standard(a integer, b integer DEFAULT 2) RETURNS integer LANGUAGE sql BEGIN ATOMIC SELECT a + b; END;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
    -- reads users.email as text
    PERFORM email FROM app.users WHERE false;
    RETURN NEW;
END $$;
CREATE PROCEDURE tidy(INOUT n integer) LANGUAGE plpgsql AS 'BEGIN n := n + 1; END';
CREATE AGGREGATE total(integer) (SFUNC = int4pl, STYPE = integer, INITCOND = '0');

CREATE TABLE users (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    legacy serial,
    email text COLLATE "C" NOT NULL,
    name varchar(40) DEFAULT 'nobody',
    feeling mood DEFAULT 'ok',
    score percent,
    slugged text GENERATED ALWAYS AS (lower(email)) STORED,
    seen timestamptz DEFAULT '2026-01-02 03:04:05+06',
    waits interval DEFAULT '1 day 02:03:04',
    bytes bytea DEFAULT '\xdeadbeef',
    gone integer,
    tags text[],
    place point3,
    CONSTRAINT email_has_at CHECK (email LIKE '%@%'),
    CONSTRAINT name_or_email UNIQUE (name, email) DEFERRABLE INITIALLY DEFERRED
) WITH (fillfactor = 80, autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE users DROP COLUMN gone;
ALTER TABLE users ALTER COLUMN email SET STORAGE EXTERNAL;
ALTER TABLE users ALTER COLUMN name SET COMPRESSION pglz;
ALTER TABLE users ADD CONSTRAINT score_small CHECK (score < 90) NOT VALID;

CREATE TABLE orders (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'new',
    valid_in tsrange,
    total numeric(12, 2),
    EXCLUDE USING gist (valid_in WITH &&)
);
CREATE INDEX orders_user ON orders (user_id) INCLUDE (status);
CREATE UNIQUE INDEX orders_open ON orders (user_id, lower(status) COLLATE "C" text_pattern_ops DESC NULLS LAST)
    WHERE status = 'new' AND total > 0;
CREATE INDEX orders_total ON orders USING brin (total) WITH (pages_per_range = 16);
CREATE STATISTICS order_stats (dependencies, ndistinct) ON user_id, status FROM orders;
CREATE UNLOGGED TABLE scratch (a int, b int);
ALTER TABLE scratch REPLICA IDENTITY FULL;
CREATE TABLE parent (a int CHECK (a > 0) NO INHERIT);
CREATE TABLE child (b int) INHERITS (parent);

CREATE TABLE events (id bigint NOT NULL, at timestamptz NOT NULL, kind text, user_id bigint, PRIMARY KEY (id, at),
                     CONSTRAINT kind_known CHECK (kind <> ''))
    PARTITION BY RANGE (at);
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE events_rest PARTITION OF events DEFAULT PARTITION BY RANGE (at);
CREATE TABLE events_rest_a PARTITION OF events_rest FOR VALUES FROM ('2030-01-01') TO ('2031-01-01');
CREATE INDEX events_kind ON events (kind);
CREATE TRIGGER events_touch BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION touch();
ALTER TABLE events ADD FOREIGN KEY (user_id) REFERENCES users;
CREATE TABLE notes (id int PRIMARY KEY, event_id bigint, event_at timestamptz,
                    FOREIGN KEY (event_id, event_at) REFERENCES events);

CREATE VIEW loud AS SELECT id, upper(email) AS email, now() - interval '1 day' AS since FROM users WHERE seen > '2026-05-05 00:00:00+02';
CREATE VIEW louder WITH (security_barrier = true) AS SELECT * FROM loud WHERE email <> '' WITH LOCAL CHECK OPTION;
CREATE MATERIALIZED VIEW counted AS SELECT user_id, count(*) AS n FROM orders GROUP BY user_id WITH NO DATA;
CREATE UNIQUE INDEX counted_user ON counted (user_id);
CREATE RULE quiet AS ON DELETE TO scratch DO INSTEAD NOTHING;

CREATE TRIGGER users_touch BEFORE UPDATE OF email ON users FOR EACH ROW WHEN (OLD.email IS DISTINCT FROM NEW.email)
    EXECUTE FUNCTION touch();
CREATE CONSTRAINT TRIGGER users_later AFTER INSERT ON users DEFERRABLE FOR EACH ROW EXECUTE FUNCTION touch();
ALTER TABLE users DISABLE TRIGGER users_later;
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
ALTER TABLE orders FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON orders AS RESTRICTIVE FOR UPDATE TO zoo_reader_%SUFFIX% USING (total > 1) WITH CHECK (status <> 'x');

GRANT USAGE ON SCHEMA app TO zoo_reader_%SUFFIX%;
GRANT SELECT, INSERT ON orders TO zoo_reader_%SUFFIX% WITH GRANT OPTION;
GRANT SELECT (email), UPDATE (name) ON users TO zoo_reader_%SUFFIX%;
GRANT USAGE ON SEQUENCE counter TO zoo_reader_%SUFFIX%;
REVOKE EXECUTE ON FUNCTION slug(text) FROM PUBLIC;
REVOKE USAGE ON TYPE mood FROM PUBLIC;
ALTER TABLE scratch OWNER TO "Zoo Owner %SUFFIX%";
REVOKE TRUNCATE ON scratch FROM "Zoo Owner %SUFFIX%";
ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT SELECT ON TABLES TO zoo_reader_%SUFFIX%;

CREATE TABLE "We""ird.Schema"."Tab.le ""x""; DROP" ("Col ""umn" int, "select" text);
CREATE INDEX "In.dex ""q""" ON "We""ird.Schema"."Tab.le ""x""; DROP" ("Col ""umn", ("select" || 'é'));
CREATE FUNCTION "We""ird.Schema"."F""n"(a text) RETURNS text LANGUAGE sql AS 'SELECT a';

CREATE PUBLICATION zoo_pub FOR TABLE orders, users WITH (publish = 'insert, update');
CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER zoo_watch ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE') EXECUTE FUNCTION watch();
CREATE COLLATION german (provider = libc, locale = 'C');
CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4eq);
CREATE CAST (mood AS integer) WITH INOUT;
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER far FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE remote (a int) SERVER far OPTIONS (x 'y');
