-- The ledger of schema steps. Idempotent: every install runs it first, under the install mutex,
-- so that two installers meet on the same tables. It is not itself a step.

CREATE SCHEMA IF NOT EXISTS aegis;

-- One row per applied step; `checksum` is the SHA-256 of its text, so an edited step is refused.
CREATE TABLE IF NOT EXISTS aegis.schema_step (
    version    int PRIMARY KEY CHECK (version > 0),
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_by text NOT NULL DEFAULT session_user
);

-- What every binary compares itself with. Expand steps raise `schema` and never `min_schema`.
CREATE TABLE IF NOT EXISTS aegis.schema_version (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    schema     int NOT NULL,
    min_schema int NOT NULL,
    CHECK (min_schema <= schema)
);
INSERT INTO aegis.schema_version (schema, min_schema) VALUES (0, 0) ON CONFLICT DO NOTHING;
