-- What other tools have applied before, and the door that keeps them from going on.

-- Their ledgers as they were when this tool took over.
CREATE TABLE IF NOT EXISTS aegis_migrate.adopted (
    tool        text NOT NULL,
    -- The other tool's table, quoted.
    ledger      text NOT NULL,
    -- Empty for what has none, such as Flyway's repeatable files.
    version     text NOT NULL,
    description text NOT NULL,
    checksum    text,
    applied_at  timestamptz,
    adopted_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (ledger, version, description)
);

-- The other tool writes its ledger in the transaction of its migration: refused there, the migration is rolled back too.
CREATE OR REPLACE FUNCTION aegis_migrate.refuse_other_runner() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'this database is migrated by aegis migrate; the ledger %.% is closed', TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'AEG10', HINT = 'make a change with `aegis migrate new`; to go back to the other tool: `aegis migrate adopt --undo`';
END;
$$;

-- Lines of the lock that count as applied though this tool has executed nothing of them. Added, never edited.
CREATE TABLE IF NOT EXISTS aegis_migrate.baseline (
    change text NOT NULL,
    phase  text NOT NULL CHECK (phase IN ('expand', 'migrate', 'contract')),
    -- The hash of the line.
    sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    -- adopted: another tool had done it; compared: the structure was what the lock makes.
    how    text NOT NULL CHECK (how IN ('adopted', 'compared')),
    actor  text NOT NULL,
    reason text NOT NULL,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (change, phase)
);
