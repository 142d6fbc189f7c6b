-- Who may still call, and until when. Three rules that the explored model found missing (crates/aegis-proof):
-- a claim that somebody else ends (a promotion, a kill, absence) may have an execution that still believes in its lease, so
-- the quiet period counts from the end of that belief; what is unknown has a quiet period too, whatever its class; and a
-- person who says "it did not happen" before it has passed is told until when a request may still arrive.

-- Until when the execution of this claim may still send a call, when somebody else ends the claim now. A worker whose lease has
-- run out stopped itself before. Any other may have renewed a moment ago, even where this database, promoted or restored, has
-- lost that renewal; at its next renewal it hears what it lost.
CREATE FUNCTION aegis.may_call_until(p_task uuid) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT coalesce((
        SELECT clock_timestamp() + l.ttl_ms * interval '1 ms'
        FROM aegis.task t JOIN aegis.worker_lease l ON l.worker = t.owner JOIN aegis.worker w ON w.id = t.owner
        WHERE t.id = p_task AND (
            (w.state <= 1 AND l.lease_until > clock_timestamp())
            OR NOT EXISTS (SELECT FROM aegis.lineage() i WHERE i.floor = t.floor AND i.timeline = t.timeline))
    ), clock_timestamp()) $$;

CREATE OR REPLACE FUNCTION aegis.end_operations(p_task uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM aegis.quiet_operations(p_task, clock_timestamp());
    UPDATE aegis.operation SET state = 4, note = coalesce(note, 'the claim ended while its answer was open')
    WHERE task = p_task AND state = 1 AND class = 3;
    RETURN EXISTS (SELECT FROM aegis.operation WHERE task = p_task AND state = 4);
END $$;

-- Gives every dispatched operation the moment until which a late request may still arrive; one that has it keeps it.
CREATE FUNCTION aegis.quiet_operations(p_task uuid, p_may_call_until timestamptz) RETURNS void LANGUAGE sql VOLATILE AS $$
    UPDATE aegis.operation
    SET quiet_until = greatest(p_may_call_until, dispatched_at + timeout_ms * interval '1 ms') + quiet_ms * interval '1 ms'
    WHERE task = p_task AND state = 1 AND quiet_until IS NULL $$;

CREATE OR REPLACE FUNCTION aegis.doubt_operations(p_task uuid, p_ids text[], p_note text) RETURNS SETOF text LANGUAGE sql VOLATILE AS $$
    SELECT aegis.quiet_operations(p_task, clock_timestamp());
    UPDATE aegis.operation SET state = 4, note = coalesce(p_note, note) WHERE task = p_task AND id = ANY (p_ids) AND state = 1 RETURNING id $$;

-- The end of an execution; see 0002_functions.sql. What is new: a claim that its own execution did not end.
CREATE OR REPLACE FUNCTION aegis.end_attempt(p_task uuid, p_cause text, p_run_at timestamptz DEFAULT NULL, p_actor text DEFAULT NULL,
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
        IF p_bump = 1 OR p_cause IN ('absent', 'interruption', 'crash', 'kill') THEN  -- its execution did not end it
            PERFORM aegis.quiet_operations(t.id, aegis.may_call_until(t.id));
        END IF;
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

-- Decides an unknown operation. `answer`: resolved, missing, not_unknown, taken (detail: by whom), early (detail: until when a
-- request may still arrive; only for "did not happen", which a late request would make untrue).
CREATE FUNCTION aegis.decide_operation(p_task uuid, p_id text, p_resolution smallint, p_result bytea, p_actor text, p_evidence text,
    p_early boolean) RETURNS TABLE (answer text, detail text) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    o aegis.operation;
    said text;
BEGIN
    PERFORM FROM aegis.task WHERE id = p_task FOR NO KEY UPDATE;
    SELECT * INTO o FROM aegis.operation WHERE task = p_task AND id = p_id FOR NO KEY UPDATE;
    IF o.state = 4 AND p_resolution = 1 AND o.quiet_until > clock_timestamp() AND NOT p_early
       AND (o.taken_by IS NULL OR o.taken_by = p_actor) THEN
        RETURN QUERY SELECT 'early', to_char(o.quiet_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
        RETURN;
    END IF;
    said := aegis.resolve_operation(p_task, p_id, p_resolution, p_result, p_actor, p_evidence);
    RETURN QUERY SELECT CASE WHEN said IN ('resolved', 'missing', 'not_unknown') THEN said ELSE 'taken' END, said;
END $$;
