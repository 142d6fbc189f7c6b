-- What people changed in the ledger, with the proof that it rested on. Rows are only added.
CREATE TABLE IF NOT EXISTS aegis_migrate.repair (
    at      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    told    timestamptz NOT NULL DEFAULT clock_timestamp(),
    verb    text NOT NULL CHECK (verb IN ('accept-checksum', 'mark-applied', 'retry', 'abandon', 'sync')),
    change  text NOT NULL,
    phase   text NOT NULL,
    -- What stood there, and what stands there now.
    was     text NOT NULL,
    becomes text NOT NULL,
    -- How it was shown to be right.
    proof   text NOT NULL,
    by_whom text NOT NULL,
    reason  text NOT NULL CHECK (btrim(reason) <> ''),
    run     text NOT NULL,
    epoch   bigint NOT NULL
);

-- A table from before `repair sync`. Only then: a constraint is not changed without a lock that stops everybody.
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_constraint
        WHERE conrelid = 'aegis_migrate.repair'::regclass AND conname = 'repair_verb_check' AND pg_get_constraintdef(oid) LIKE '%''sync''%'
    ) THEN
        ALTER TABLE aegis_migrate.repair DROP CONSTRAINT repair_verb_check,
            ADD CONSTRAINT repair_verb_check CHECK (verb IN ('accept-checksum', 'mark-applied', 'retry', 'abandon', 'sync'));
    END IF;
END;
$$;
