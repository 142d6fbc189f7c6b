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
