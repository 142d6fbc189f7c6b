-- Jobs that move the rows of a change, and passes that count what is not right. Every write of a job carries its epoch.
CREATE TABLE IF NOT EXISTS aegis_migrate.backfill (
    change         text PRIMARY KEY,
    -- What the cursors belong to: table, key and what is written.
    spec_sha256    text NOT NULL,
    -- Moves with every runner that takes the job: an older one writes nothing.
    epoch          bigint NOT NULL CHECK (epoch >= 1),
    -- People move it between running, paused and cancelled; a runner ends it. A runner writes only while it is running.
    state          text NOT NULL CHECK (state IN ('running', 'paused', 'cancelled', 'failed', 'done')),
    -- Who moved it last, and why.
    state_by       text NOT NULL,
    state_reason   text NOT NULL DEFAULT '',
    run            text NOT NULL,
    release        text NOT NULL,
    batch_rows     int NOT NULL CHECK (batch_rows >= 1),
    batches        bigint NOT NULL DEFAULT 0,
    rows_seen      bigint NOT NULL DEFAULT 0,
    rows_changed   bigint NOT NULL DEFAULT 0,
    -- From the statistics at the start; NULL where the server had none.
    rows_estimated bigint,
    worked_ms      bigint NOT NULL DEFAULT 0,
    waited_ms      bigint NOT NULL DEFAULT 0,
    -- Why it does not move now: the first throttle source that said so.
    waiting        text,
    error          text,
    started_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at       timestamptz,
    CHECK ((ended_at IS NULL) = (state IN ('running', 'paused')))
);

-- One row for each table that has rows: the partitions of a partitioned one. A key is an array of its columns as text.
CREATE TABLE IF NOT EXISTS aegis_migrate.backfill_leaf (
    change       text NOT NULL REFERENCES aegis_migrate.backfill ON DELETE CASCADE,
    leaf         text NOT NULL,
    ordinal      int NOT NULL,
    -- The greatest key at the start. Rows that come later are the trigger's. NULL: there was none.
    upper_key    text[],
    -- The last key that is done; NULL: none yet.
    cursor_key   text[],
    rows_seen    bigint NOT NULL DEFAULT 0,
    rows_changed bigint NOT NULL DEFAULT 0,
    state        text NOT NULL CHECK (state IN ('open', 'done', 'gone')),
    PRIMARY KEY (change, leaf)
);

-- A row that could not be moved: it alone lies in (after_key, key]. Gone when a retry has moved it.
CREATE TABLE IF NOT EXISTS aegis_migrate.backfill_failure (
    change    text NOT NULL,
    leaf      text NOT NULL,
    after_key text[],
    key       text[] NOT NULL,
    sqlstate  text NOT NULL,
    said      text NOT NULL,
    attempts  int NOT NULL DEFAULT 1,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (change, leaf, key),
    FOREIGN KEY (change, leaf) REFERENCES aegis_migrate.backfill_leaf ON DELETE CASCADE
);

-- What a full read-only pass has counted: evidence. Written once, at its end.
CREATE TABLE IF NOT EXISTS aegis_migrate.reconcile_pass (
    at             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    change         text NOT NULL,
    -- forward: the new side is what forward makes of the old one; agrees: one of the directions holds; sql: a query of the change.
    kind           text NOT NULL CHECK (kind IN ('forward', 'agrees', 'sql')),
    -- The hash of what was asked.
    asked_sha256   text NOT NULL,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The state that was read: everything before this place, nothing after it.
    snapshot_lsn   pg_lsn NOT NULL,
    -- NULL where a query tells only what is wrong.
    rows_counted   bigint,
    missing        bigint NOT NULL CHECK (missing >= 0),
    mismatch       bigint NOT NULL CHECK (mismatch >= 0),
    orphaned       bigint NOT NULL CHECK (orphaned >= 0),
    is_zero        boolean NOT NULL GENERATED ALWAYS AS (missing + mismatch + orphaned = 0) STORED,
    -- A few of what is wrong: [{"key": …, "what": …}].
    samples        jsonb NOT NULL,
    -- The trigger that kept both sides alike, the same before and after the pass. NULL without one.
    trigger_sha256 text,
    run            text NOT NULL,
    by_whom        text NOT NULL,
    release        text NOT NULL
);
CREATE INDEX IF NOT EXISTS reconcile_pass_of ON aegis_migrate.reconcile_pass (change, kind, at DESC);

CREATE OR REPLACE FUNCTION aegis_migrate.refuse_edit_of_pass() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'a reconciliation pass is evidence and is not edited' USING ERRCODE = 'AEG11', HINT = 'run a new one: `aegis migrate reconcile ID`';
END;
$$;
CREATE OR REPLACE TRIGGER refuse_edit BEFORE UPDATE OR DELETE OR TRUNCATE ON aegis_migrate.reconcile_pass
FOR EACH STATEMENT EXECUTE FUNCTION aegis_migrate.refuse_edit_of_pass();
