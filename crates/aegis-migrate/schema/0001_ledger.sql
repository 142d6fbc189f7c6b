-- The ledger of a target: who runs, what each step did, what happened. Made under the mutex; every write carries the epoch.
CREATE SCHEMA IF NOT EXISTS aegis_migrate;

-- Which edition of these tables is here. A program touches them only when it brings a newer one.
CREATE TABLE IF NOT EXISTS aegis_migrate.edition (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    number  int NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE IF NOT EXISTS aegis_migrate.ledger (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- Names this ledger in approvals.
    id         uuid NOT NULL DEFAULT gen_random_uuid(),
    -- Moves with every acquisition of the mutex: who holds an older one writes nothing.
    epoch      bigint NOT NULL DEFAULT 0,
    run        text,
    holder     text,
    taken_at   timestamptz,
    -- Nothing was here at the first run: no gates until that run has ended whole.
    fresh      boolean NOT NULL,
    -- A developer's database: lines may be edited after they were applied.
    dev        boolean NOT NULL DEFAULT false,
    -- Lines of the lock that a program must know at least; only `contract close` raises it.
    min_schema int NOT NULL DEFAULT 0 CHECK (min_schema >= 0),
    made_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row a statement. A step that cannot run in a transaction has `intent` before it begins.
CREATE TABLE IF NOT EXISTS aegis_migrate.step (
    change         text NOT NULL,
    phase          text NOT NULL,
    ordinal        int NOT NULL CHECK (ordinal >= 1),
    state          text NOT NULL CHECK (state IN ('intent', 'applied', 'failed', 'interrupted', 'unknown', 'reconciled')),
    -- The lock line that it belongs to, and its own statement: as it stands, and without comments and whitespace.
    line_sha256    text NOT NULL,
    raw_sha256     text NOT NULL,
    sha256         text NOT NULL,
    file           text NOT NULL,
    line           int NOT NULL,
    statement      text NOT NULL,
    class          text NOT NULL,
    attempt        int NOT NULL CHECK (attempt >= 1),
    epoch          bigint NOT NULL,
    run            text NOT NULL,
    by_whom        text NOT NULL,
    release        text NOT NULL,
    server_version text NOT NULL,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz,
    sqlstate       text,
    said           text,
    PRIMARY KEY (change, phase, ordinal),
    CHECK ((state = 'intent') = (ended_at IS NULL))
);

-- A phase that is whole.
CREATE TABLE IF NOT EXISTS aegis_migrate.phase (
    change      text NOT NULL,
    phase       text NOT NULL,
    line_sha256 text NOT NULL,
    steps       int NOT NULL,
    epoch       bigint NOT NULL,
    run         text NOT NULL,
    release     text NOT NULL,
    done_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (change, phase)
);

-- What happened: a Job's log goes with the Job, these rows stay.
CREATE TABLE IF NOT EXISTS aegis_migrate.event (
    at    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run   text NOT NULL,
    epoch bigint NOT NULL,
    told  timestamptz NOT NULL DEFAULT clock_timestamp(),
    event jsonb NOT NULL
);
CREATE INDEX IF NOT EXISTS event_run ON aegis_migrate.event (run, at);
