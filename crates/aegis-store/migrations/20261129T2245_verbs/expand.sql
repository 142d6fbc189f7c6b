-- Verbs of submitters and operators. Each locks the task's row first and then looks, so a worker's guarded write
-- and an override meet on that row. An override that ends an execution bumps the epoch (`end_attempt`, cause kill).

CREATE FUNCTION aegis.tenant_id(p_name text) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found_id int;
BEGIN
    SELECT id INTO found_id FROM aegis.tenant WHERE name = p_name;
    IF found_id IS NULL THEN
        INSERT INTO aegis.tenant (name) VALUES (p_name) ON CONFLICT (name) DO NOTHING;
        SELECT id INTO STRICT found_id FROM aegis.tenant WHERE name = p_name;
    END IF;
    RETURN found_id;
END $$;

CREATE FUNCTION aegis.lane_id(p_queue text, p_kind text, p_lo int, p_hi int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found_id int;
BEGIN
    SELECT id INTO found_id FROM aegis.lane WHERE queue = p_queue AND kind = p_kind AND lo = p_lo AND hi = p_hi;
    IF found_id IS NULL THEN
        INSERT INTO aegis.lane (queue, kind, lo, hi) VALUES (p_queue, p_kind, p_lo, p_hi) ON CONFLICT DO NOTHING;
        SELECT id INTO STRICT found_id FROM aegis.lane WHERE queue = p_queue AND kind = p_kind AND lo = p_lo AND hi = p_hi;
    END IF;
    RETURN found_id;
END $$;

CREATE FUNCTION aegis.policy_id(p_max_failures int, p_max_crashes int, p_backoff_initial_ms bigint, p_backoff_cap_ms bigint,
    p_schedule_to_start_ms bigint, p_start_to_close_ms bigint, p_kill_after_ms bigint) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found_id int;
BEGIN
    FOR i IN 1..2 LOOP
        SELECT id INTO found_id FROM aegis.policy WHERE max_failures = p_max_failures AND max_crashes = p_max_crashes
            AND backoff_initial_ms = p_backoff_initial_ms AND backoff_cap_ms = p_backoff_cap_ms
            AND schedule_to_start_ms IS NOT DISTINCT FROM p_schedule_to_start_ms
            AND start_to_close_ms IS NOT DISTINCT FROM p_start_to_close_ms AND kill_after_ms = p_kill_after_ms;
        EXIT WHEN found_id IS NOT NULL;
        INSERT INTO aegis.policy (max_failures, max_crashes, backoff_initial_ms, backoff_cap_ms, schedule_to_start_ms,
            start_to_close_ms, kill_after_ms)
        VALUES (p_max_failures, p_max_crashes, p_backoff_initial_ms, p_backoff_cap_ms, p_schedule_to_start_ms,
            p_start_to_close_ms, p_kill_after_ms) ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found_id;
END $$;

-- What an idempotency key is compared by: protocol, and the input (JSON by meaning, anything else by its bytes).
CREATE FUNCTION aegis.payload_hash(p_protocol int, p_content_type smallint, p_input bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT sha256(int4send(p_protocol) || int2send(p_content_type) || CASE WHEN p_content_type = 0
        THEN convert_to(convert_from(p_input, 'UTF8')::jsonb::text, 'UTF8') ELSE p_input END) $$;

-- Submit inside the caller's transaction, from any language. Creates what is missing (tenant, lane) in that transaction.
-- With a key: the same payload answers the same task, another payload raises AEG05. READ COMMITTED is assumed: under
-- REPEATABLE READ a concurrent twin raises 40001, as for any INSERT ... ON CONFLICT.
CREATE FUNCTION aegis.submit(kind text, input jsonb, queue text DEFAULT 'default', tenant text DEFAULT 'default',
    protocol int DEFAULT 1, key text DEFAULT NULL, run_at timestamptz DEFAULT NULL, priority int DEFAULT 5,
    deadline_at timestamptz DEFAULT NULL, labels jsonb DEFAULT NULL, notify boolean DEFAULT false)
    RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    new_id uuid := aegis.uuid7();
    bytes bytea := convert_to(submit.input::text, 'UTF8');
    tenant_no int;
    kept_id uuid;
    kept_hash bytea;
    hash bytea;
BEGIN
    IF submit.input IS NULL THEN
        RAISE EXCEPTION 'input of kind % is NULL', submit.kind USING ERRCODE = 'AEG01', HINT = 'pass a JSON document, at least {}';
    ELSIF octet_length(bytes) > 262144 THEN
        RAISE EXCEPTION 'input of kind % has % bytes; the limit is 262144', submit.kind, octet_length(bytes)
            USING ERRCODE = 'AEG02', HINT = 'store large data elsewhere and pass a reference';
    ELSIF submit.protocol < 1 THEN
        RAISE EXCEPTION 'protocol % of kind % is below 1', submit.protocol, submit.kind USING ERRCODE = 'AEG03';
    ELSIF submit.priority NOT BETWEEN 0 AND 9 THEN
        RAISE EXCEPTION 'priority % is not between 0 (first) and 9 (last)', submit.priority USING ERRCODE = 'AEG04';
    ELSIF NOT coalesce(isfinite(submit.run_at), true) OR NOT coalesce(isfinite(submit.deadline_at), true) THEN
        RAISE EXCEPTION 'run_at and deadline_at of kind % must be finite', submit.kind
            USING ERRCODE = 'AEG07', HINT = 'leave a time out that does not matter';
    ELSIF submit.deadline_at <= submit.run_at THEN
        RAISE EXCEPTION 'deadline_at % of kind % is not after run_at %', submit.deadline_at, submit.kind, submit.run_at
            USING ERRCODE = 'AEG06', HINT = 'the task could never run';
    END IF;
    tenant_no := aegis.tenant_id(submit.tenant);
    IF submit.key IS NOT NULL THEN
        hash := aegis.payload_hash(submit.protocol, 0::smallint, bytes);
        INSERT INTO aegis.idempotency (tenant, kind, key, task, payload_hash, expires_at)
        VALUES (tenant_no, submit.kind, submit.key, new_id, hash, clock_timestamp() + interval '30 days') ON CONFLICT DO NOTHING;
        SELECT i.task, i.payload_hash INTO STRICT kept_id, kept_hash FROM aegis.idempotency i
        WHERE i.tenant = tenant_no AND i.kind = submit.kind AND i.key = submit.key;
        IF kept_hash <> hash THEN
            RAISE EXCEPTION 'idempotency key % of kind % was used with another payload, for task %', submit.key, submit.kind, kept_id
                USING ERRCODE = 'AEG05', HINT = 'use a new key for a new payload';
        ELSIF kept_id <> new_id THEN
            RETURN kept_id;
        END IF;
    END IF;
    INSERT INTO aegis.task_body (id, tenant, protocol, content_type, input, labels, submitter)
    VALUES (new_id, tenant_no, submit.protocol, 0, bytes, submit.labels, session_user);
    INSERT INTO aegis.task (id, lane, tenant, state, priority, ord, run_at, deadline_at, next_deadline)
    VALUES (new_id, aegis.lane_id(submit.queue, submit.kind, submit.protocol, submit.protocol), tenant_no,
        CASE WHEN submit.run_at > clock_timestamp() THEN 0 ELSE 1 END, submit.priority, aegis.ord(submit.priority::smallint),
        CASE WHEN submit.run_at > clock_timestamp() THEN submit.run_at END, submit.deadline_at, submit.deadline_at);
    IF submit.notify THEN
        PERFORM pg_notify('aegis', submit.queue);
    END IF;
    RETURN new_id;
END $$;

-- A new incarnation speaks for its predecessor: that one is lost at once, and the crashes charged to it become
-- interruptions, found by their events. Answers how many.
CREATE FUNCTION aegis.succeed_worker(p_predecessor uuid) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    e record;
    n int := 0;
BEGIN
    -- The gate row, lost already or not: a reaper that is charging crashes to it has committed when this returns.
    PERFORM FROM aegis.worker WHERE id = p_predecessor FOR NO KEY UPDATE;
    UPDATE aegis.worker SET state = 3, ended_at = clock_timestamp() WHERE id = p_predecessor AND state <= 1;
    FOR e IN SELECT task, epoch FROM aegis.task_event WHERE owner = p_predecessor AND cause = 'crash' ORDER BY task LOOP
        UPDATE aegis.task SET crashes = greatest(crashes - 1, 0), interruptions = interruptions + 1 WHERE id = e.task;
        UPDATE aegis.task_event SET cause = 'interruption' WHERE task = e.task AND owner = p_predecessor AND epoch = e.epoch AND cause = 'crash';
        n := n + 1;
    END LOOP;
    RETURN n;
END $$;

-- Running rows of this owner that two beats did not name, and that are older than the start deadline, go back to their
-- lanes: an acquisition whose answer was lost, or a false loss under a live worker. SKIP LOCKED, so that somebody's open
-- row lock never costs a lease. Answers the tasks that went back.
CREATE FUNCTION aegis.return_absent(p_worker uuid, p_held uuid[], p_start_ttl_ms bigint) RETURNS SETOF uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    before uuid[];
    now_absent uuid[];
    r record;
BEGIN
    SELECT absent INTO before FROM aegis.worker_lease WHERE worker = p_worker;
    now_absent := ARRAY(SELECT id FROM aegis.task WHERE owner = p_worker AND state = 2 AND id <> ALL (p_held));
    IF now_absent <> before THEN
        UPDATE aegis.worker_lease SET absent = now_absent WHERE worker = p_worker;
    END IF;
    FOR r IN SELECT id FROM aegis.task WHERE id = ANY (now_absent) AND id = ANY (before) AND owner = p_worker AND state + 0 = 2
             AND claimed_at < clock_timestamp() - p_start_ttl_ms * interval '1 ms' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED LOOP
        PERFORM aegis.end_attempt(r.id, 'absent');
        RETURN NEXT r.id;
    END LOOP;
END $$;

-- Asks for a task's end. Answers cancelled (it had not started), requested (the worker is told), pending (an operation is
-- open; the outcome is stored), ended, parked or missing. A request never moves `rev`.
CREATE FUNCTION aegis.cancel_task(p_task uuid, p_actor text, p_reason text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t aegis.task;
    after smallint;
    requested timestamptz;
BEGIN
    SELECT * INTO t FROM aegis.task WHERE id = p_task FOR NO KEY UPDATE;
    IF t.id IS NULL THEN
        RETURN CASE WHEN EXISTS (SELECT FROM aegis.parked WHERE id = p_task) THEN 'parked'
                    WHEN EXISTS (SELECT FROM aegis.task_history WHERE id = p_task) THEN 'ended' ELSE 'missing' END;
    END IF;
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, owner, claimed_at, actor, detail)
    VALUES (t.id, clock_timestamp(), t.tenant, t.epoch, 'cancel_requested', t.owner, t.claimed_at, p_actor,
        jsonb_build_object('reason', p_reason));
    IF t.state = 2 THEN
        -- From the first request on only `kill_after` counts: neither an attempt's own deadline nor a second request moves it.
        requested := coalesce(t.cancel_at, clock_timestamp());
        UPDATE aegis.task SET cancel_at = requested, cancel_cause = 0, next_deadline = requested
                + (SELECT kill_after_ms FROM aegis.policy WHERE id = t.policy) * interval '1 ms'
        WHERE id = t.id;
        RETURN 'requested';
    END IF;
    after := aegis.conclude(t.id, 7::smallint, jsonb_build_object('code', 'cancelled', 'message', p_reason));
    RETURN CASE WHEN after = 7 THEN 'cancelled' ELSE 'pending' END;
END $$;

-- Sends a parked task again. Its epoch goes on counting; its counters start anew. False when it is not parked.
CREATE FUNCTION aegis.redrive_task(p_task uuid, p_actor text, p_reason text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    p aegis.parked;
BEGIN
    DELETE FROM aegis.parked WHERE id = p_task RETURNING * INTO p;
    IF p.id IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO aegis.task (id, lane, tenant, policy, state, priority, ord, epoch, rev, parts)
    VALUES (p.id, p.lane, p.tenant, p.policy, 1, p.priority, aegis.ord(p.priority), p.epoch, p.rev + 1, p.parts);
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p.id, clock_timestamp(), p.tenant, p.epoch, 'redriven', p_actor, jsonb_build_object('reason', p_reason, 'error', p.error));
    RETURN true;
END $$;

-- Gives a parked task up for good: it becomes history. False when it is not parked.
CREATE FUNCTION aegis.discard_task(p_task uuid, p_actor text, p_reason text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    p aegis.parked;
BEGIN
    DELETE FROM aegis.parked WHERE id = p_task RETURNING * INTO p;
    IF p.id IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, epoch, rev, digest,
        owner, claim_id, finished_at, error)
    VALUES (p.id, p.lane, p.tenant, p.state, p.failures, p.interruptions, p.crashes, p.snoozes, p.open_ops, p.epoch, p.rev, p.digest,
        p.owner, p.claim_id, clock_timestamp(), p.error);
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p.id, clock_timestamp(), p.tenant, p.epoch, 'discarded', p_actor, jsonb_build_object('reason', p_reason));
    RETURN true;
END $$;

-- A person takes an unknown operation, so that two do not look into the same one. Answers taken, missing, not_unknown, or
-- the name of whoever has it.
CREATE FUNCTION aegis.take_operation(p_task uuid, p_id text, p_actor text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    o aegis.operation;
BEGIN
    PERFORM FROM aegis.task WHERE id = p_task FOR NO KEY UPDATE;
    SELECT * INTO o FROM aegis.operation WHERE task = p_task AND id = p_id FOR NO KEY UPDATE;
    IF o.task IS NULL THEN
        RETURN 'missing';
    ELSIF o.state <> 4 THEN
        RETURN 'not_unknown';
    ELSIF o.taken_by IS NOT NULL AND o.taken_by <> p_actor THEN
        RETURN o.taken_by;
    END IF;
    UPDATE aegis.operation SET taken_by = p_actor, taken_at = clock_timestamp() WHERE task = p_task AND id = p_id;
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p_task, clock_timestamp(), o.tenant, o.epoch, 'operation_taken', p_actor, jsonb_build_object('operation', p_id));
    RETURN 'taken';
END $$;

-- A person decides an unknown operation with evidence. Resolutions: 0 happened (with its result), 1 did not happen (the
-- handler dispatches again under the same id), 2 compensated, 3 given up (the task fails). When it was the task's last open
-- operation the stored outcome applies, or the task becomes ready. Answers resolved, missing, not_unknown, or the taker.
CREATE FUNCTION aegis.resolve_operation(p_task uuid, p_id text, p_resolution smallint, p_result bytea, p_actor text, p_evidence text)
    RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    t aegis.task;
    o aegis.operation;
    after smallint;
BEGIN
    SELECT * INTO t FROM aegis.task WHERE id = p_task FOR NO KEY UPDATE;
    SELECT * INTO o FROM aegis.operation WHERE task = p_task AND id = p_id FOR NO KEY UPDATE;
    IF o.task IS NULL OR t.id IS NULL THEN
        RETURN 'missing';
    ELSIF o.state <> 4 THEN
        RETURN 'not_unknown';
    ELSIF o.taken_by IS NOT NULL AND o.taken_by <> p_actor THEN
        RETURN o.taken_by;
    END IF;
    UPDATE aegis.operation SET state = 5, resolution = p_resolution, result = coalesce(p_result, result), resolved_by = p_actor,
        resolved_at = clock_timestamp(), evidence = p_evidence, quiet_until = NULL
    WHERE task = p_task AND id = p_id;
    UPDATE aegis.task SET open_ops = open_ops - 1, rev = rev + CASE WHEN state = 2 THEN 0 ELSE 1 END,
        state = CASE WHEN state = 4 AND open_ops = 1 THEN 1 ELSE state END, ord = aegis.ord(priority),
        next_deadline = CASE WHEN state = 4 AND open_ops = 1 THEN deadline_at ELSE next_deadline END
    WHERE id = p_task RETURNING * INTO t;
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p_task, clock_timestamp(), t.tenant, t.epoch, 'operation_resolved', p_actor,
        jsonb_build_object('operation', p_id, 'resolution', p_resolution, 'evidence', p_evidence));
    IF t.state = 2 THEN
        RETURN 'resolved';
    ELSIF p_resolution = 3 AND t.pending IS NULL THEN
        PERFORM aegis.conclude(p_task, 6::smallint, jsonb_build_object('code', 'operation_given_up', 'message', p_id || ': ' || p_evidence));
    ELSIF t.pending IS NOT NULL AND t.open_ops = 0 THEN
        PERFORM aegis.conclude(p_task, t.pending, NULL);
    ELSIF t.state = 4 AND NOT EXISTS (SELECT FROM aegis.operation WHERE task = p_task AND state = 4) THEN
        UPDATE aegis.task SET state = 1, next_deadline = deadline_at WHERE id = p_task;
    END IF;
    RETURN 'resolved';
END $$;
