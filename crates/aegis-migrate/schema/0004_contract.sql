-- How an old form goes: a shut door, looks at who still needs it, people's word, approvals that are used once.

-- One attempt a row; a reopened one stays as it was.
CREATE TABLE IF NOT EXISTS aegis_migrate.contract (
    change        text NOT NULL,
    attempt       int NOT NULL CHECK (attempt >= 1),
    closed_at     timestamptz NOT NULL,
    closed_by     text NOT NULL,
    release       text NOT NULL,
    -- The privileges that were taken, so that reopening gives back exactly these.
    taken         jsonb NOT NULL,
    reopened_at   timestamptz,
    reopened_by   text,
    reopen_reason text,
    done_at       timestamptz,
    approval      text,
    PRIMARY KEY (change, attempt),
    CHECK ((reopened_at IS NULL) = (reopened_by IS NULL) AND (reopened_at IS NULL) = (reopen_reason IS NULL)),
    CHECK (reopened_at IS NULL OR done_at IS NULL),
    CHECK ((done_at IS NULL) = (approval IS NULL))
);
-- One attempt of a change is under way at most.
CREATE UNIQUE INDEX IF NOT EXISTS contract_open ON aegis_migrate.contract (change) WHERE reopened_at IS NULL;

-- A look: whether a need held at a moment. `holds` is NULL when the look failed.
CREATE TABLE IF NOT EXISTS aegis_migrate.contract_look (
    change  text NOT NULL,
    attempt int NOT NULL,
    need    text NOT NULL,
    at      timestamptz NOT NULL,
    source  text NOT NULL,
    holds   boolean,
    detail  text NOT NULL,
    PRIMARY KEY (change, attempt, need, source, at),
    FOREIGN KEY (change, attempt) REFERENCES aegis_migrate.contract
);

-- What a person answers for, as it was signed.
CREATE TABLE IF NOT EXISTS aegis_migrate.contract_attestation (
    change   text NOT NULL,
    attempt  int NOT NULL,
    need     text NOT NULL,
    by_whom  text NOT NULL,
    until    timestamptz NOT NULL,
    reason   text NOT NULL,
    envelope jsonb NOT NULL,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (change, attempt, need, by_whom, at),
    FOREIGN KEY (change, attempt) REFERENCES aegis_migrate.contract
);

-- An approval counts once: its digest is the key.
CREATE TABLE IF NOT EXISTS aegis_migrate.approval_used (
    digest  text PRIMARY KEY,
    change  text NOT NULL,
    by_whom text[] NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The attempt that has used an approval: a run of it that was cut short goes on with it, and nothing else does.
CREATE TABLE IF NOT EXISTS aegis_migrate.contract_bound (
    digest  text PRIMARY KEY,
    change  text NOT NULL,
    attempt int NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    FOREIGN KEY (change, attempt) REFERENCES aegis_migrate.contract
);

-- How many lines of the lock a program must know at least while an attempt is under way or done.
CREATE TABLE IF NOT EXISTS aegis_migrate.contract_floor (
    change     text NOT NULL,
    attempt    int NOT NULL,
    min_schema int NOT NULL CHECK (min_schema >= 0),
    PRIMARY KEY (change, attempt),
    FOREIGN KEY (change, attempt) REFERENCES aegis_migrate.contract
);

-- Changes whose old side is closed or gone: what a program must know. Whoever runs asks it, and needs no grant for the tables.
CREATE OR REPLACE FUNCTION aegis_migrate.closed()
RETURNS TABLE (change text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT DISTINCT c.change FROM aegis_migrate.contract c WHERE c.reopened_at IS NULL ORDER BY 1;
END;

GRANT USAGE ON SCHEMA aegis_migrate TO PUBLIC;
GRANT EXECUTE ON FUNCTION aegis_migrate.closed() TO PUBLIC;
