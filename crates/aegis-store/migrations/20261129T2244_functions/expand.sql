-- Functions that several verbs share. What changes a task stands in one place: `end_attempt` and `conclude`.
-- VOLATILE is meaning here, not habit: each statement inside takes a fresh snapshot, so what is judged after a
-- lock was granted is judged with fresh eyes. All of them are called on rows that the caller has locked.

-- The WAL timeline changes at once on a promotion (pg_control_checkpoint() only at the next checkpoint).
CREATE FUNCTION aegis.timeline() RETURNS int LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int $$;

-- Today's lineage; no row when this is a copy under another system identifier (pg_upgrade, dump and restore).
CREATE FUNCTION aegis.lineage() RETURNS TABLE (floor int, timeline int) LANGUAGE sql STABLE ROWS 1 AS
$$ SELECT d.floor, aegis.timeline() FROM aegis.database d JOIN pg_control_system() s ON s.system_identifier = d.system_identifier $$;

-- The same for acquisition, which is closed on a copy and on a database that turned out to be restored.
CREATE FUNCTION aegis.open_lineage() RETURNS TABLE (floor int, timeline int) LANGUAGE sql STABLE ROWS 1 AS
$$ SELECT i.floor, i.timeline FROM aegis.lineage() i WHERE NOT EXISTS (SELECT FROM aegis.database WHERE closed_at IS NOT NULL) $$;

-- May this worker write? STABLE would judge by the statement's snapshot, taken before a lock wait.
CREATE FUNCTION aegis.lease_live(p_worker uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
                   WHERE w.id = p_worker AND w.state <= 1 AND l.lease_until > clock_timestamp());
END $$;

-- Does a worker hold nothing? VOLATILE for the same reason: asked after its gate row was locked.
CREATE FUNCTION aegis.holds_nothing(p_worker uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM aegis.task WHERE owner = p_worker AND state = 2);
END $$;

-- Is this still the database's lineage? VOLATILE for the same reason: an adoption may commit during a lock wait.
CREATE FUNCTION aegis.lineage_is(p_floor int, p_timeline int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM aegis.lineage() i WHERE i.floor = p_floor AND i.timeline = p_timeline);
END $$;

-- UUIDv7 by this database's clock, which also makes the partitions. (uuidv7() exists from PostgreSQL 18.)
CREATE FUNCTION aegis.uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid $$;

-- The ids of a batch: one draw of randomness (62 bits) and the row's number, so that they follow each other in the index.
CREATE FUNCTION aegis.uuid7_nth(p_ms bigint, p_random bigint, p_n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(int8send((p_ms << 16) | 28672 | (p_n & 4095))
        || int8send(((p_random + (p_n >> 12)) & 4611686018427387903) | (-9223372036854775807 - 1)), 'hex')::uuid $$;

-- The smallest UUIDv7 of a moment: a partition bound.
CREATE FUNCTION aegis.uuid7_floor(p_at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM p_at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

CREATE FUNCTION aegis.uuid7_time(p_id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp(('x' || left(translate(p_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) $$;

-- Order within a tenant: the moment of becoming ready, in microseconds, minus a minute for each level above 9.
CREATE FUNCTION aegis.ord(p_priority smallint) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint - (9 - p_priority) * 60000000::bigint $$;

-- The earliest deadline of a task that waits to be claimed. Schedule-to-start counts from when it may start.
CREATE FUNCTION aegis.waiting_deadline(p_deadline timestamptz, p_policy int, p_run_at timestamptz) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN p_policy = 0 THEN p_deadline ELSE least(p_deadline, (
        SELECT greatest(p_run_at, clock_timestamp()) + p.schedule_to_start_ms * interval '1 ms'
        FROM aegis.policy p WHERE p.id = p_policy)) END $$;

-- Ends what a claim left open: a dispatched blind operation is unknown at once, any other gets the moment until
-- which a late request may still arrive. True when a person has to decide.
CREATE FUNCTION aegis.end_operations(p_task uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE aegis.operation SET state = 4, note = coalesce(note, 'the claim ended while its answer was open')
    WHERE task = p_task AND state = 1 AND class = 3;
    UPDATE aegis.operation
    SET quiet_until = greatest(clock_timestamp(), dispatched_at + timeout_ms * interval '1 ms') + quiet_ms * interval '1 ms'
    WHERE task = p_task AND state = 1 AND quiet_until IS NULL;
    RETURN EXISTS (SELECT FROM aegis.operation WHERE task = p_task AND state = 4);
END $$;

-- Turns named dispatched operations unknown before their attempt ends: a key past its retention, a probe that cannot tell.
CREATE FUNCTION aegis.doubt_operations(p_task uuid, p_ids text[], p_note text) RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
    UPDATE aegis.operation SET state = 4, note = coalesce(p_note, note) WHERE task = p_task AND id = ANY (p_ids) AND state = 1 RETURNING id $$;

-- Was this operation counted as open before this statement? STABLE on purpose: it answers from the statement's snapshot.
-- Only the holder of the task's row lock moves an operation, and a resolution by a person is not a repeat.
CREATE FUNCTION aegis.operation_is_open(p_task uuid, p_id text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM aegis.operation WHERE task = p_task AND id = p_id AND state IN (1, 4)) $$;

-- A task that is no longer live: from history, from the parked ones.
CREATE FUNCTION aegis.ended(p_task uuid) RETURNS TABLE (id uuid, state smallint, epoch bigint, rev bigint, owner uuid, claim_id uuid, digest bigint)
LANGUAGE sql VOLATILE AS $$
    SELECT h.id, h.state, h.epoch, h.rev, h.owner, h.claim_id, h.digest FROM aegis.task_history h WHERE h.id = p_task
    UNION ALL
    SELECT p.id, p.state, p.epoch, p.rev, p.owner, p.claim_id, p.digest FROM aegis.parked p WHERE p.id = p_task $$;

-- The end of a task. Beside an open operation the outcome is stored as pending and the task is kept: reconciling
-- while a person has to decide, otherwise ready for a claim that settles. Answers the state it is in afterwards.
CREATE FUNCTION aegis.conclude(p_task uuid, p_state smallint, p_error jsonb, p_result bytea DEFAULT NULL,
    p_content_type smallint DEFAULT 0, p_digest bigint DEFAULT NULL) RETURNS smallint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t aegis.task;
    o aegis.pending_outcome;
    people boolean;
BEGIN
    SELECT * INTO STRICT t FROM aegis.task WHERE id = p_task FOR NO KEY UPDATE;
    SELECT * INTO o FROM aegis.pending_outcome WHERE task = p_task;
    IF o.task IS NULL THEN  -- the first outcome stands
        o := (t.id, t.tenant, p_state, p_content_type, p_digest, t.owner, t.claim_id, t.epoch, t.rev, t.claimed_at,
              clock_timestamp(), p_result, p_error)::aegis.pending_outcome;
    END IF;
    IF t.open_ops > 0 THEN
        INSERT INTO aegis.pending_outcome VALUES (o.*) ON CONFLICT (task) DO NOTHING;
        people := aegis.end_operations(t.id);
        UPDATE aegis.task SET state = CASE WHEN people THEN 4 ELSE 1 END, pending = o.state, rev = rev + 1,
            ord = aegis.ord(priority), run_at = NULL, owner = NULL, claim_id = NULL, claimed_at = NULL, floor = NULL, timeline = NULL,
            cancel_at = NULL, cancel_cause = NULL, next_deadline = NULL, deadline_at = NULL
        WHERE id = t.id;
        RETURN CASE WHEN people THEN 4 ELSE 1 END;
    END IF;
    DELETE FROM aegis.task WHERE id = t.id;
    DELETE FROM aegis.pending_outcome WHERE task = t.id;
    IF o.state IN (6, 8) THEN
        INSERT INTO aegis.parked (id, lane, tenant, policy, state, priority, failures, interruptions, crashes, snoozes, open_ops,
            parts, epoch, rev, owner, claim_id, digest, deadline_at, parked_at, error)
        VALUES (t.id, t.lane, t.tenant, t.policy, o.state, t.priority, t.failures, t.interruptions, t.crashes, t.snoozes, t.open_ops,
            t.parts, t.epoch, o.rev, o.owner, o.claim_id, o.digest, t.deadline_at, clock_timestamp(),
            coalesce(o.error, '{"code": "unspecified"}'));
    ELSE
        INSERT INTO aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, content_type,
            epoch, rev, digest, owner, claim_id, claimed_at, finished_at, result, error)
        VALUES (t.id, t.lane, t.tenant, o.state, t.failures, t.interruptions, t.crashes, t.snoozes, t.open_ops, o.content_type,
            o.epoch, o.rev, o.digest, o.owner, o.claim_id, o.claimed_at, clock_timestamp(), o.result, o.error);
    END IF;
    RETURN o.state;
END $$;

-- The end of an execution that need not be the end of its task. `p_cause` decides the counter and the epoch:
-- failure, snooze, unknown, cancelled, settled (no bump: the claim was still the worker's), drain, absent, interruption,
-- crash, kill (bump). `p_bump`: 1 when a failure is charged for a worker that did not stop. An execution that stopped because
-- it took too long is a failure, not a cancellation.
-- Answers the state afterwards. `p_run_at` NULL: at once. The event keeps the lane in which the task waits from now on, and
-- until when it is postponed: who could have claimed it, and when, can be told afterwards.
CREATE FUNCTION aegis.end_attempt(p_task uuid, p_cause text, p_run_at timestamptz DEFAULT NULL, p_actor text DEFAULT NULL,
    p_detail jsonb DEFAULT NULL, p_bump int DEFAULT 0) RETURNS smallint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t aegis.task;
    people boolean := false;
    bump int := CASE WHEN p_cause IN ('failure', 'snooze', 'unknown', 'cancelled', 'settled') THEN p_bump ELSE 1 END;
    to_state smallint;
BEGIN
    IF p_cause = 'cancelled' AND EXISTS (SELECT FROM aegis.task WHERE id = p_task AND cancel_cause = 2) THEN
        RETURN aegis.fail_attempt(p_task, 'start_to_close_exceeded', 'the attempt took too long', true, NULL, NULL, NULL);
    END IF;
    UPDATE aegis.task SET
        epoch = epoch + bump, rev = rev + 1,
        failures = failures + (p_cause = 'failure')::int,
        snoozes = snoozes + (p_cause = 'snooze')::int,
        interruptions = interruptions + (p_cause IN ('drain', 'absent', 'interruption'))::int,
        crashes = crashes + (p_cause = 'crash')::int
    WHERE id = p_task RETURNING * INTO STRICT t;
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, owner, claimed_at, actor, detail)
    VALUES (t.id, clock_timestamp(), t.tenant, t.epoch - bump, p_cause, t.owner, t.claimed_at, p_actor,
        coalesce(p_detail, '{}') || jsonb_build_object('lane', t.lane)
            || CASE WHEN p_run_at IS NULL THEN '{}' ELSE jsonb_build_object('run_at', p_run_at) END);
    IF t.open_ops > 0 THEN
        IF p_cause = 'crash' AND t.crashes > (SELECT max_crashes FROM aegis.policy WHERE id = t.policy) THEN
            -- It kills whoever tries to settle it: people decide about what it left open.
            UPDATE aegis.operation SET state = 4, note = 'the task kills its workers' WHERE task = t.id AND state = 1;
        END IF;
        people := aegis.end_operations(t.id);
    END IF;
    IF t.pending IS NULL THEN
        IF t.cancel_at IS NOT NULL AND t.cancel_cause = 0 THEN
            RETURN aegis.conclude(t.id, 7::smallint, jsonb_build_object('code', 'cancelled'));
        ELSIF t.cancel_at IS NOT NULL AND t.cancel_cause = 1 THEN
            RETURN aegis.conclude(t.id, 6::smallint, jsonb_build_object('code', 'deadline_exceeded'));
        ELSIF p_cause = 'crash' AND t.crashes > (SELECT max_crashes FROM aegis.policy WHERE id = t.policy) THEN
            RETURN aegis.conclude(t.id, 8::smallint, jsonb_build_object('code', 'quarantined', 'crashes', t.crashes));
        END IF;
    ELSIF t.open_ops = 0 THEN
        RETURN aegis.conclude(t.id, t.pending, NULL);
    END IF;
    to_state := CASE WHEN people THEN 4 WHEN p_run_at > clock_timestamp() THEN 0 ELSE 1 END;
    UPDATE aegis.task SET state = to_state, ord = aegis.ord(priority), run_at = CASE WHEN to_state = 0 THEN p_run_at END,
        owner = NULL, claim_id = NULL, claimed_at = NULL, floor = NULL, timeline = NULL, cancel_at = NULL, cancel_cause = NULL,
        next_deadline = CASE WHEN to_state = 4 THEN NULL ELSE deadline_at END
    WHERE id = t.id;
    RETURN to_state;
END $$;

-- A handler's error: charged to `failures`, kept, and retried with back-off and jitter until the policy's maximum.
CREATE FUNCTION aegis.fail_attempt(p_task uuid, p_code text, p_message text, p_retryable boolean, p_details jsonb,
    p_retry_after_ms bigint, p_digest bigint, p_bump int DEFAULT 0) RETURNS smallint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t aegis.task;
    p aegis.policy;
    wait_ms double precision;
    failure jsonb := jsonb_build_object('code', p_code, 'message', p_message, 'details', p_details);
BEGIN
    SELECT * INTO STRICT t FROM aegis.task WHERE id = p_task;
    SELECT * INTO STRICT p FROM aegis.policy WHERE id = t.policy;
    INSERT INTO aegis.attempt_error (task, epoch, tenant, at, owner, code, message, retryable, details)
    VALUES (t.id, t.epoch, t.tenant, clock_timestamp(), t.owner, p_code, p_message, p_retryable, p_details);
    IF t.pending IS NULL AND coalesce(t.cancel_cause, 2) = 2 AND (NOT p_retryable OR t.failures + 1 >= p.max_failures) THEN
        UPDATE aegis.task SET failures = failures + 1, epoch = epoch + p_bump WHERE id = t.id;
        RETURN aegis.conclude(t.id, 6::smallint, failure, NULL, 0::smallint, p_digest);
    END IF;
    IF t.pending IS NOT NULL AND t.failures + 1 >= p.max_failures THEN  -- settling does not get anywhere: people decide
        UPDATE aegis.operation SET state = 4, note = p_message WHERE task = t.id AND state = 1;
    END IF;
    wait_ms := coalesce(p_retry_after_ms, least(p.backoff_cap_ms, p.backoff_initial_ms * 2 ^ least(t.failures, 30))
        * (0.75 + random() * 0.5));
    RETURN aegis.end_attempt(t.id, 'failure', clock_timestamp() + wait_ms * interval '1 ms', NULL, failure, p_bump);
END $$;

-- Makes the partitions of yesterday to `p_days` ahead. Run by the owner: ATTACH takes the weaker lock on the parent.
CREATE FUNCTION aegis.make_partitions(p_days int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    parent text;
    day date;
    part text;
    made int := 0;
BEGIN
    -- Days are dates in UTC: adding a day to a timestamptz adds 23 or 25 hours in a session whose zone changes its clocks.
    FOR day IN SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date + n FROM generate_series(-1, p_days) AS n LOOP
        FOREACH parent IN ARRAY ARRAY['task_body', 'task_history', 'checkpoint', 'step', 'operation', 'attempt_error', 'task_event'] LOOP
            part := parent || '_' || to_char(day, 'YYYYMMDD');
            CONTINUE WHEN to_regclass('aegis.' || part) IS NOT NULL;
            EXECUTE format('CREATE TABLE aegis.%I (LIKE aegis.%I INCLUDING ALL)', part, parent);
            EXECUTE format('ALTER TABLE aegis.%I ATTACH PARTITION aegis.%I FOR VALUES FROM (%L) TO (%L)', parent, part,
                aegis.uuid7_floor(day::timestamp AT TIME ZONE 'UTC'), aegis.uuid7_floor((day + 1)::timestamp AT TIME ZONE 'UTC'));
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;

-- The hourly job of whoever is alive: one more day, while there are fewer than `p_days` ahead. Runs with the rights of who
-- installed the schema, waits little for locks, and never takes the tick down with it: a day that could not be made is
-- warned about two weeks before it is needed.
CREATE FUNCTION aegis.extend_partitions(p_days int) RETURNS int LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = aegis, pg_catalog SET lock_timeout = '2s' AS $$
DECLARE
    ahead int;
BEGIN
    SELECT count(*) INTO ahead FROM generate_series(1, p_days) AS n
    WHERE to_regclass('aegis.task_event_' || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD')) IS NOT NULL;
    IF ahead >= p_days THEN
        RETURN 0;
    END IF;
    RETURN aegis.make_partitions(ahead + 1);
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'no partition could be made ahead (there are % days): %; run `aegis db maintain` as the owner', ahead, SQLERRM;
    RETURN 0;
END $$;

INSERT INTO aegis.database (system_identifier, postmaster_started, up_since)
SELECT system_identifier, pg_postmaster_start_time(), pg_postmaster_start_time() FROM pg_control_system();
