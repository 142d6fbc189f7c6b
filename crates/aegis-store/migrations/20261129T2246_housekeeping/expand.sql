-- Housekeeping: whoever is alive takes a due job by moving its `next_at` in one short statement. Nothing here is a
-- leader, and no lock outlives its statement: a frozen process cannot stop a takeover.

-- True for the one caller that takes the job now.
CREATE FUNCTION aegis.take_job(p_job text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE aegis.housekeeping SET next_at = clock_timestamp() + period_ms * interval '1 ms'
    WHERE job = ANY (ARRAY(SELECT job FROM aegis.housekeeping WHERE job = p_job AND next_at <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED));
    RETURN FOUND;
END $$;

-- Scheduled tasks that are due become ready. A task scheduled long ago does not jump the queue.
CREATE FUNCTION aegis.promote(p_limit int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    n int;
BEGIN
    WITH l AS MATERIALIZED (SELECT id FROM aegis.task WHERE state = 0 AND run_at <= clock_timestamp()
                            ORDER BY run_at LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE aegis.task t SET state = 1, run_at = NULL, ord = aegis.ord(t.priority) WHERE t.id = ANY (ARRAY(SELECT id FROM l));
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;

-- Workers whose lease has run out are lost, for ever. Gate row before lease row, judged after both locks.
CREATE FUNCTION aegis.expire_workers() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    w uuid;
    n int := 0;
BEGIN
    FOR w IN SELECT k.id FROM aegis.worker k JOIN aegis.worker_lease l ON l.worker = k.id
             WHERE k.state <= 1 AND l.lease_until <= clock_timestamp() LOOP
        PERFORM FROM aegis.worker WHERE id = w AND state <= 1 FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        PERFORM FROM aegis.worker_lease WHERE worker = w AND lease_until <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        UPDATE aegis.worker SET state = 3, ended_at = clock_timestamp() WHERE id = w;
        n := n + 1;
    END LOOP;
    RETURN n;
END $$;

-- Why a claim does not stand any more: NULL when it does, otherwise `crash` or `interruption`. It is a crash only when the
-- database did not cause the loss and no successor spoke for the owner. Judged by a fresh snapshot, as it is VOLATILE.
CREATE FUNCTION aegis.why_lost(p_owner uuid, p_floor int, p_timeline int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    up_since timestamptz;
    same boolean;
    w aegis.worker;
BEGIN
    SELECT d.up_since, coalesce(i.floor = p_floor AND i.timeline = p_timeline, false) INTO up_since, same
    FROM aegis.database d LEFT JOIN aegis.lineage() i ON true;
    SELECT * INTO w FROM aegis.worker WHERE id = p_owner;
    IF same AND w.state <= 1 THEN
        RETURN NULL;
    ELSIF same AND w.state = 3
        AND EXISTS (SELECT FROM aegis.worker_lease l WHERE l.worker = p_owner AND l.lease_until > up_since + l.ttl_ms * interval '1 ms')
        AND NOT EXISTS (SELECT FROM aegis.worker s WHERE s.predecessor = p_owner) THEN
        RETURN 'crash';
    END IF;
    RETURN 'interruption';
END $$;

-- Running rows whose owner is not live, or whose lineage is not the database's, go back to their lanes, a page at a time.
-- Each row is judged again once it is locked: the loop reaches it long after the query's snapshot, and it may have been
-- reaped and claimed meanwhile by a worker that this snapshot does not know. The gate row of the lost owner is held too,
-- so that this and the registration of its successor see each other. A row that cannot be reaped is left with a warning and
-- does not hold up the others: a page counts what was reaped.
CREATE FUNCTION aegis.reap(p_page int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r record;
    n int := 0;
    left_over int := 0;
    cause text;
BEGIN
    FOR r IN
        SELECT t.id, t.owner, t.floor, t.timeline FROM aegis.task t LEFT JOIN aegis.lineage() i ON true
        WHERE t.state = 2 AND (t.floor IS DISTINCT FROM i.floor OR t.timeline IS DISTINCT FROM i.timeline
            OR NOT EXISTS (SELECT FROM aegis.worker w WHERE w.id = t.owner AND w.state <= 1))
        ORDER BY t.id LIMIT p_page * 20 FOR NO KEY UPDATE OF t SKIP LOCKED
    LOOP
        EXIT WHEN n >= p_page;
        PERFORM FROM aegis.worker WHERE id = r.owner FOR SHARE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND AND EXISTS (SELECT FROM aegis.worker WHERE id = r.owner);
        cause := aegis.why_lost(r.owner, r.floor, r.timeline);
        CONTINUE WHEN cause IS NULL;
        BEGIN
            PERFORM aegis.end_attempt(r.id, cause);
            n := n + 1;
        EXCEPTION WHEN OTHERS THEN
            left_over := left_over + 1;
            IF left_over <= 10 THEN
                RAISE WARNING 'task % could not be reaped: %', r.id, SQLERRM;
            END IF;
        END;
    END LOOP;
    RETURN n;
END $$;

-- Deadlines: a waiting task fails; a running one is asked to stop, and after `kill_after` it is ended for it.
CREATE FUNCTION aegis.enforce_deadlines(p_page int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t aegis.task;
    n int := 0;
BEGIN
    FOR t IN SELECT * FROM aegis.task WHERE next_deadline <= clock_timestamp() ORDER BY next_deadline LIMIT p_page
             FOR NO KEY UPDATE SKIP LOCKED LOOP
        BEGIN
            IF t.state <> 2 THEN
                PERFORM aegis.conclude(t.id, 6::smallint, jsonb_build_object('code', 'deadline_exceeded'));
            ELSIF t.cancel_at IS NULL THEN
                UPDATE aegis.task SET cancel_at = clock_timestamp(),
                    cancel_cause = CASE WHEN deadline_at <= clock_timestamp() THEN 1 ELSE 2 END,
                    next_deadline = clock_timestamp() + (SELECT kill_after_ms FROM aegis.policy WHERE id = t.policy) * interval '1 ms'
                WHERE id = t.id;
            ELSIF t.cancel_cause = 2 THEN
                PERFORM aegis.fail_attempt(t.id, 'start_to_close_exceeded', 'the attempt did not stop within kill_after', true, NULL, NULL,
                    NULL, 1);
            ELSE
                PERFORM aegis.end_attempt(t.id, 'kill');
            END IF;
            n := n + 1;
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING 'the deadline of task % could not be enforced: %', t.id, SQLERRM;
        END;
    END LOOP;
    RETURN n;
END $$;

-- By how much the reap job may be late before that says something about the database: a quarter of a lease.
CREATE FUNCTION aegis.reap_slack_ms() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest(min(l.ttl_ms) / 4, 1500) FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id WHERE w.state = 0 $$;

-- Notices that the database itself was away: a new postmaster, or a reap job overdue although two workers had been there to
-- take it since before it was due (a crash recovery does not move the postmaster's start time). A worker that registered
-- afterwards does not count, and it takes one who was there (itself, or as its predecessor) to notice: after a crash of the
-- whole fleet only newcomers tick, and that is no outage, else a poison task is never charged.
CREATE FUNCTION aegis.note_outage(p_worker uuid) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE aegis.database SET postmaster_started = pg_postmaster_start_time(), up_since = clock_timestamp()
    WHERE postmaster_started <> pg_postmaster_start_time();
    UPDATE aegis.database SET up_since = clock_timestamp() FROM (
        SELECT h.next_at, (SELECT count(*) FROM aegis.worker w WHERE w.state = 0 AND w.registered_at <= h.next_at) AS accepting
        FROM aegis.housekeeping h WHERE h.job = 'reap') x
    WHERE x.accepting >= 2 AND isfinite(x.next_at)
        AND EXISTS (SELECT FROM aegis.worker w LEFT JOIN aegis.worker p ON p.id = w.predecessor
                    WHERE w.id = p_worker AND least(w.registered_at, p.registered_at) <= x.next_at)
        AND x.next_at + aegis.reap_slack_ms() * interval '1 ms' < clock_timestamp();
END $$;

-- The lanes that a worker may be given tasks of, by its capabilities and today's pauses.
CREATE FUNCTION aegis.lanes_of(p_worker uuid) RETURNS TABLE (lane int, queue text, kind text) LANGUAGE sql STABLE AS $$
    SELECT l.id, c.queue, c.kind FROM aegis.worker_capability c
    JOIN aegis.lane l ON l.queue = c.queue AND l.kind = c.kind AND c.reads_min <= l.lo AND l.hi <= c.reads_max
    JOIN aegis.worker w ON w.id = c.worker
    WHERE c.worker = p_worker AND NOT EXISTS (SELECT FROM aegis.pause p
        WHERE (p.scope = 'queue' AND p.value = c.queue) OR (p.scope = 'kind' AND p.value = c.kind)
           OR (p.scope = 'release' AND p.value = w.release)) $$;

-- Incarnations that ended a month ago and hold nothing are forgotten, a thousand at a time.
CREATE FUNCTION aegis.forget_workers() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gone uuid[];
BEGIN
    gone := ARRAY(SELECT w.id FROM aegis.worker w WHERE w.ended_at < clock_timestamp() - interval '30 days'
                  AND NOT EXISTS (SELECT FROM aegis.task t WHERE t.owner = w.id AND t.state = 2) LIMIT 1000 FOR UPDATE SKIP LOCKED);
    DELETE FROM aegis.worker_capability WHERE worker = ANY (gone);
    DELETE FROM aegis.worker_lease WHERE worker = ANY (gone);
    DELETE FROM aegis.worker WHERE id = ANY (gone);
    RETURN cardinality(gone);
END $$;

-- Is there a suspect that this worker could take, one that has waited for so many microseconds? A paused tenant's is none.
CREATE FUNCTION aegis.has_suspect(p_worker uuid, p_waited_us bigint) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (SELECT FROM aegis.lanes_of(p_worker) n, LATERAL (
        SELECT FROM aegis.task t JOIN aegis.tenant e ON e.id = t.tenant
        WHERE t.lane = n.lane AND t.state = 1 AND t.crashes > 0 AND t.ord <= aegis.ord(t.priority) - p_waited_us
          AND NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'tenant' AND p.value = e.name)
        LIMIT 1) x) $$;

-- One statement a second for an idle worker: due jobs, and whether there is something to claim. `suspects`: one of its lanes
-- has a suspect. `duty`: this worker is the one that has to become empty and take suspects, alone, one after another.
CREATE FUNCTION aegis.tick(p_worker uuid, OUT claimable boolean, OUT suspects boolean, OUT duty boolean, OUT worker_state smallint,
    OUT reaped int, OUT next_due_ms bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h aegis.housekeeping;
BEGIN
    reaped := 0;
    IF aegis.take_job('promote') THEN
        PERFORM aegis.promote(2000);
    END IF;
    PERFORM aegis.note_outage(p_worker);
    IF aegis.take_job('reap') THEN
        PERFORM aegis.expire_workers();
        reaped := aegis.reap(500);
        IF reaped >= 500 THEN  -- there may be more: the next tick goes on at once
            UPDATE aegis.housekeeping SET next_at = clock_timestamp() WHERE job = 'reap';
        END IF;
    END IF;
    IF aegis.take_job('deadline') THEN
        PERFORM aegis.enforce_deadlines(500);
    END IF;
    IF aegis.take_job('expire') THEN
        DELETE FROM aegis.idempotency i WHERE (i.tenant, i.kind, i.key) IN (
            SELECT tenant, kind, key FROM aegis.idempotency x WHERE x.expires_at < clock_timestamp()
                AND NOT EXISTS (SELECT FROM aegis.task t WHERE t.id = x.task)
                AND NOT EXISTS (SELECT FROM aegis.parked p WHERE p.id = x.task) LIMIT 1000);
        PERFORM aegis.forget_workers();
    END IF;
    IF aegis.take_job('partition') THEN
        PERFORM aegis.extend_partitions(14);
    END IF;
    SELECT state INTO worker_state FROM aegis.worker WHERE id = p_worker;
    claimable := EXISTS (SELECT FROM aegis.lanes_of(p_worker) n, LATERAL (
        SELECT FROM aegis.task t WHERE t.lane = n.lane AND t.state = 1 AND t.crashes = 0 LIMIT 1) x);
    suspects := aegis.has_suspect(p_worker, 0);
    SELECT * INTO h FROM aegis.housekeeping WHERE job = 'suspect';
    duty := h.holder = p_worker AND h.holder_until > clock_timestamp();
    IF suspects AND worker_state = 0 AND (duty OR h.holder IS NULL OR h.holder_until <= clock_timestamp())
        AND (duty OR aegis.has_suspect(p_worker, 60000000)) THEN
        UPDATE aegis.housekeeping SET holder = p_worker, holder_until = clock_timestamp() + interval '120 s'
        WHERE job = ANY (ARRAY(SELECT job FROM aegis.housekeeping WHERE job = 'suspect'
            AND (holder IS NULL OR holder = p_worker OR holder_until <= clock_timestamp()) FOR NO KEY UPDATE SKIP LOCKED));
        duty := FOUND;
    ELSIF duty AND NOT suspects THEN
        UPDATE aegis.housekeeping SET holder = NULL, holder_until = NULL WHERE job = 'suspect' AND holder = p_worker;
        duty := false;
    END IF;
    duty := coalesce(duty, false);
    -- When to look again at the latest: the next task that is due, the next deadline, the end of somebody's lease; and so often
    -- that the reap job is never late by itself, which would look like an outage.
    next_due_ms := greatest(1, least(60000, aegis.reap_slack_ms() / 2, (extract(epoch FROM least(clock_timestamp() + interval '1 min',
        (SELECT min(run_at) FROM aegis.task WHERE state = 0),
        (SELECT min(next_deadline) FROM aegis.task WHERE next_deadline IS NOT NULL),
        (SELECT min(l.lease_until) FROM aegis.worker_lease l JOIN aegis.worker w ON w.id = l.worker WHERE w.state <= 1 AND w.id <> p_worker))
        - clock_timestamp()) * 1000)::bigint + 5));
END $$;
