-- What `aegis lane check` and `aegis doctor` look at: an index for what rests, when a worker's ticks moved, and two windows for
-- roles that may not see other sessions.

-- Scheduled, waiting and reconciling tasks by lane. Neither a submit of a ready task nor a claim nor a completion writes to it.
CREATE INDEX task_resting ON aegis.task (lane, id) WHERE state IN (0, 3, 4);

-- When the ticks of a worker's claim loop and of its executions last moved, and how far its machine's clock was ahead of this
-- database's when it sent its last beat. NULL: a release that does not say.
ALTER TABLE aegis.worker_lease ADD COLUMN claim_moved_at timestamptz, ADD COLUMN progress_moved_at timestamptz,
    ADD COLUMN clock_ahead_ms bigint;

-- Who holds back the removal of dead rows: sessions, prepared transactions, replication slots; no text of anybody's statement.
-- With the rights of who installed the schema; `since` is NULL where those do not reach.
CREATE FUNCTION aegis.snapshot_holders() RETURNS TABLE (holder text, name text, role text, application text, since timestamptz, xids bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN a.backend_type = 'walsender' THEN 'standby' ELSE 'session' END, a.pid::text, a.usename::text, a.application_name,
        a.xact_start, greatest(age(a.backend_xmin), age(a.backend_xid))::bigint
    FROM pg_stat_activity a
    WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.pid <> pg_backend_pid()
      AND (a.datid IS NULL OR a.datname = current_database())
    UNION ALL
    SELECT 'prepared transaction', p.gid, p.owner::text, '', p.prepared, age(p.transaction)::bigint
    FROM pg_prepared_xacts p WHERE p.database = current_database()
    UNION ALL
    SELECT 'replication slot', s.slot_name::text, '', coalesce(s.plugin::text, 'physical'), NULL, age(s.xmin)::bigint
    FROM pg_replication_slots s WHERE s.xmin IS NOT NULL $$;

-- Standbys with what a commit waits for. `sync_state` is NULL where the rights of who installed the schema do not reach.
CREATE FUNCTION aegis.standbys() RETURNS TABLE (application text, state text, sync_state text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.application_name, r.state, r.sync_state FROM pg_stat_replication r $$;
