-- What people change on tasks, one by one or by filter: each row is locked first and judged then, so a task that no longer is
-- what somebody looked at is left alone, with the reason. An edit (retry, run now, reschedule, reprioritise) moves neither
-- `rev` nor `epoch`: nobody executes what it changes, but for the priority, which no guard looks at.

-- When the payload of an ended task was erased; the facts stay.
ALTER TABLE aegis.task_history ADD COLUMN erased_at timestamptz;

-- Why the last execution ended that was not the task's end.
CREATE FUNCTION aegis.last_cause(p_task uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT e.cause FROM aegis.task_event e WHERE e.task = p_task AND e.cause = ANY ('{failure,snooze,drain,absent,interruption,crash,unknown,cancelled,settled,kill}')
    ORDER BY e.at DESC LIMIT 1 $$;

-- One verb on a live task whose row the caller has locked (or, to try it, only read). Answers what became of it, or why not.
CREATE FUNCTION aegis.edit_task(t aegis.task, p_verb text, p_actor text, p_reason text, p_run_at timestamptz, p_priority smallint,
    p_dry boolean) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at timestamptz;  -- when it may start from now on; NULL: at once
    event text;
BEGIN
    IF p_verb = 'cancel' THEN
        IF p_dry THEN
            RETURN CASE WHEN t.state = 2 THEN 'requested' WHEN t.open_ops > 0 THEN 'pending' ELSE 'cancelled' END;
        END IF;
        RETURN aegis.cancel_task(t.id, p_actor, p_reason);
    ELSIF p_verb = 'reprioritise' THEN
        IF t.priority = p_priority THEN
            RETURN 'same';
        ELSIF NOT p_dry THEN
            -- A ready task keeps the moment it became ready; a level is a minute.
            UPDATE aegis.task SET priority = p_priority, ord = ord + (p_priority - t.priority) * 60000000::bigint WHERE id = t.id;
            INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
            VALUES (t.id, clock_timestamp(), t.tenant, t.epoch, 'reprioritised', p_actor,
                jsonb_build_object('reason', p_reason, 'from', t.priority, 'to', p_priority));
        END IF;
        RETURN 'reprioritised';
    ELSIF p_verb IN ('redrive', 'discard', 'erase') THEN
        RETURN 'live';
    ELSIF p_verb NOT IN ('retry', 'run_now', 'reschedule') THEN
        RAISE EXCEPTION 'there is no verb %', p_verb USING HINT = 'this database is older than the program';
    END IF;
    IF t.state = 1 AND (p_verb <> 'reschedule' OR p_run_at <= clock_timestamp()) THEN
        RETURN 'ready_already';
    ELSIF t.state NOT IN (0, 1) THEN
        RETURN 'not_waiting';
    ELSIF p_verb = 'retry' AND aegis.last_cause(t.id) IS DISTINCT FROM 'failure' THEN
        RETURN 'not_failed';
    ELSIF p_verb = 'reschedule' AND p_run_at >= t.deadline_at THEN
        RETURN 'past_deadline';
    ELSIF p_verb = 'reschedule' AND p_run_at = t.run_at THEN
        RETURN 'same';
    END IF;
    at := CASE WHEN p_verb = 'reschedule' AND p_run_at > clock_timestamp() THEN p_run_at END;
    event := CASE p_verb WHEN 'retry' THEN 'retried' WHEN 'run_now' THEN 'run_now' ELSE 'rescheduled' END;
    IF NOT p_dry THEN
        UPDATE aegis.task SET state = CASE WHEN at IS NULL THEN 1 ELSE 0 END, run_at = at, ord = aegis.ord(priority),
            next_deadline = CASE WHEN epoch = 0 THEN aegis.waiting_deadline(deadline_at, policy, at) ELSE deadline_at END
        WHERE id = t.id;
        INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
        VALUES (t.id, clock_timestamp(), t.tenant, t.epoch, event, p_actor,
            jsonb_build_object('reason', p_reason, 'from', t.run_at, 'run_at', at));
    END IF;
    RETURN CASE WHEN at IS NULL THEN 'ready' ELSE 'scheduled' END;
END $$;

-- Replaces the payload of an ended task wherever it stands; what happened, when, by whom and with which code stays. A hash or
-- digest of a payload can be guessed backwards when there are few payloads, so those go too: a second submit under the
-- task's idempotency key is a conflict afterwards, never a second task (`change_tasks` does that, for its whole page). (The input in the history row comes with step 7, in
-- the same transaction of the installer.)
CREATE FUNCTION aegis.erase_task(p_task uuid, p_actor text, p_reason text, p_dry boolean) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    h aegis.task_history;
BEGIN
    SELECT * INTO STRICT h FROM aegis.task_history WHERE id = p_task;
    IF h.erased_at IS NOT NULL THEN
        RETURN 'erased_already';
    ELSIF p_dry THEN
        RETURN 'erased';
    END IF;
    UPDATE aegis.task_body SET input = 'null', content_type = 0, labels = NULL WHERE id = p_task;
    UPDATE aegis.checkpoint SET data = 'null', content_type = 0 WHERE task = p_task;
    UPDATE aegis.step SET value = 'null', content_type = 0 WHERE task = p_task;
    UPDATE aegis.operation SET fingerprint = '', request = NULL, result = NULL, note = NULL WHERE task = p_task;
    UPDATE aegis.attempt_error SET message = '(erased)', details = NULL WHERE task = p_task;
    UPDATE aegis.task_event SET detail = (SELECT jsonb_object_agg(d.key, d.value) FROM jsonb_each(detail) d
        WHERE d.key = ANY ('{lane,run_at,reason,code,verb,current_epoch,operation,resolution,evidence,from,to}'))
    WHERE task = p_task AND detail IS NOT NULL;
    UPDATE aegis.task_history SET erased_at = clock_timestamp(), digest = NULL, result = NULL,
        input = CASE WHEN input IS NOT NULL THEN 'null'::bytea END,
        error = CASE WHEN error IS NOT NULL THEN jsonb_build_object('code', error -> 'code') END
    WHERE id = p_task;
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p_task, clock_timestamp(), h.tenant, h.epoch, 'erased', p_actor, jsonb_build_object('reason', p_reason));
    RETURN 'erased';
END $$;

-- One verb on one task, wherever it stands. `p_live`, `p_parked`, `p_ended`: the states in which the caller still wants it
-- there; NULL: whatever it is in. They are judged under the row's lock; queue, kind, tenant, labels and age of a task never
-- change, so those were judged for good when it was found. `p_wait` false: a row that somebody holds answers `busy`.
-- `state`, `parked`, `lane`: where it stood when it was judged.
CREATE FUNCTION aegis.change_task(p_verb text, p_id uuid, p_live int2[], p_parked int2[], p_ended int2[], p_actor text, p_reason text,
    p_run_at timestamptz, p_priority smallint, p_dry boolean, p_wait boolean,
    OUT answer text, OUT state smallint, OUT parked boolean, OUT lane int) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    t aegis.task;
    p aegis.parked;
    h record;
BEGIN
    parked := false;
    -- A task that moves between the looks (a redrive, a completion) is found by the next round.
    FOR n IN 1..3 LOOP
        IF p_dry THEN
            SELECT * INTO t FROM aegis.task x WHERE x.id = p_id;
        ELSIF p_wait THEN
            SELECT * INTO t FROM aegis.task x WHERE x.id = p_id FOR NO KEY UPDATE;
        ELSE
            SELECT * INTO t FROM aegis.task x WHERE x.id = p_id FOR NO KEY UPDATE SKIP LOCKED;
        END IF;
        IF t.id IS NOT NULL THEN
            state := t.state;
            lane := t.lane;
            answer := CASE WHEN t.state = ANY (coalesce(p_live, ARRAY[t.state]))
                THEN aegis.edit_task(t, p_verb, p_actor, p_reason, p_run_at, p_priority, p_dry) ELSE 'moved_on' END;
            RETURN;
        ELSIF NOT p_wait AND EXISTS (SELECT FROM aegis.task x WHERE x.id = p_id) THEN
            answer := 'busy';
            RETURN;
        END IF;
        IF p_dry THEN
            SELECT * INTO p FROM aegis.parked x WHERE x.id = p_id;
        ELSE
            SELECT * INTO p FROM aegis.parked x WHERE x.id = p_id FOR UPDATE;
        END IF;
        IF p.id IS NOT NULL THEN
            state := p.state;
            lane := p.lane;
            parked := true;
            IF p.state <> ALL (coalesce(p_parked, ARRAY[p.state])) THEN
                answer := 'moved_on';
            ELSIF p_verb = 'redrive' THEN
                answer := 'redriven';
                IF NOT p_dry THEN
                    PERFORM aegis.redrive_task(p_id, p_actor, p_reason);
                END IF;
            ELSIF p_verb = 'discard' THEN
                answer := 'discarded';
                IF NOT p_dry THEN
                    PERFORM aegis.discard_task(p_id, p_actor, p_reason);
                END IF;
            ELSIF p_verb = 'reprioritise' AND p.priority = p_priority THEN
                answer := 'same';
            ELSIF p_verb = 'reprioritise' THEN
                answer := 'reprioritised';
                IF NOT p_dry THEN
                    UPDATE aegis.parked x SET priority = p_priority WHERE x.id = p_id;
                    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
                    VALUES (p.id, clock_timestamp(), p.tenant, p.epoch, 'reprioritised', p_actor,
                        jsonb_build_object('reason', p_reason, 'from', p.priority, 'to', p_priority));
                END IF;
            ELSE
                answer := 'parked';
            END IF;
            RETURN;
        END IF;
        SELECT x.state, x.lane INTO h FROM aegis.task_history x WHERE x.id = p_id;
        IF FOUND THEN
            state := h.state;
            lane := h.lane;
            IF NOT p_dry AND p_verb = 'erase' THEN
                PERFORM FROM aegis.task_history x WHERE x.id = p_id FOR NO KEY UPDATE;
            END IF;
            IF h.state <> ALL (coalesce(p_ended, ARRAY[h.state])) THEN
                answer := 'moved_on';
            ELSIF p_verb = 'erase' THEN
                answer := aegis.erase_task(p_id, p_actor, p_reason, p_dry);
            ELSE
                answer := 'ended';
            END IF;
            RETURN;
        END IF;
    END LOOP;
    answer := 'missing';
END $$;

-- One verb on a page of tasks, in id order (the order in which every group of writes locks). A row that somebody holds for too
-- long answers `busy`; one that the database refuses answers `refused` with why, and holds up no other.
CREATE FUNCTION aegis.change_tasks(p_verb text, p_ids uuid[], p_live int2[], p_parked int2[], p_ended int2[], p_actor text, p_reason text,
    p_run_at timestamptz, p_priority smallint, p_dry boolean, p_wait boolean)
    RETURNS TABLE (task uuid, answer text, state smallint, parked boolean, lane int, problem text) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    erased uuid[] := '{}';
BEGIN
    FOR task IN SELECT DISTINCT u FROM unnest(p_ids) u ORDER BY u LOOP
        problem := NULL;
        BEGIN
            SELECT c.answer, c.state, c.parked, c.lane INTO answer, state, parked, lane
            FROM aegis.change_task(p_verb, task, p_live, p_parked, p_ended, p_actor, p_reason, p_run_at, p_priority, p_dry, p_wait) c;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                answer := 'busy';
            WHEN undefined_function OR undefined_column OR raise_exception THEN
                RAISE;
            WHEN OTHERS THEN
                answer := 'refused';
                problem := SQLERRM;
        END;
        IF answer = 'erased' AND NOT p_dry THEN
            erased := erased || task;
        END IF;
        RETURN NEXT;
    END LOOP;
    IF cardinality(erased) > 0 THEN
        -- No index finds a key by its task: one look over the keys of these tenants and kinds, for all of the page.
        UPDATE aegis.idempotency i SET payload_hash = ''
        FROM (SELECT DISTINCT h.tenant, n.kind FROM unnest(erased) u JOIN aegis.task_history h ON h.id = u JOIN aegis.lane n ON n.id = h.lane) k
        WHERE i.tenant = k.tenant AND i.kind = k.kind AND i.task IN (SELECT u FROM unnest(erased) u);
    END IF;
END $$;
