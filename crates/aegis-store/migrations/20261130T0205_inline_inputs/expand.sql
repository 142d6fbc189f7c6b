-- A small input stands in the task's own row: submit then writes one heap and not two (docs/adr/0004). It goes with the task to
-- `parked` and to `task_history`; large inputs, labels and submitters stay in `task_body`. An inline input is JSON, content
-- type 0. `input_any` gives the input wherever it stands.
--
-- Programs from before this step look for every input in `task_body`. So nothing is written inline before they are refused: by
-- `min_schema` at their start, by the trigger below at their registration. A new database begins that way; an older one is
-- switched by `aegis.switch_inline()`, once no worker of such a program is alive.

ALTER TABLE aegis.task ADD COLUMN input_protocol int, ADD COLUMN input bytea, ADD COLUMN trace text;
ALTER TABLE aegis.parked ADD COLUMN input_protocol int, ADD COLUMN input bytea, ADD COLUMN trace text;
ALTER TABLE aegis.task_history ADD COLUMN input_protocol int, ADD COLUMN input bytea, ADD COLUMN trace text;

-- The schema that the program of this incarnation knows; NULL: one from before this step.
ALTER TABLE aegis.worker ADD COLUMN schema int;

-- May inputs be written inline now? Only where every program reads them there. And only while the day's partitions are there:
-- without them nothing could be completed, so submit goes on to `task_body`, which refuses.
CREATE FUNCTION aegis.may_inline() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT v.min_schema >= 7 FROM aegis.schema_version v)
        AND to_regclass('aegis.task_history_' || to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD')) IS NOT NULL;
END $$;

-- From now on inputs may stand inline, and programs that do not look there are refused. Only when none of their workers is
-- alive. True when this changed something. The row lock makes a registration wait until this is decided.
CREATE FUNCTION aegis.switch_inline() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    old text;
BEGIN
    UPDATE aegis.schema_version SET min_schema = 7 WHERE min_schema < 7;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT string_agg(w.name || ' (release ' || w.release || ')', ', ' ORDER BY w.name) INTO old
    FROM aegis.worker w WHERE w.state <= 1 AND coalesce(w.schema, 6) < 7;
    IF old IS NOT NULL THEN
        RAISE EXCEPTION 'inputs cannot stand inline yet: these workers know only an older schema: %', old
            USING ERRCODE = 'AEG08', HINT = 'replace them by this release first; then switch';
    END IF;
    RETURN true;
END $$;

-- A process that started before the switch may register a new incarnation after it.
CREATE FUNCTION aegis.refuse_old_worker() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = aegis, pg_catalog AS $$
DECLARE
    least_schema int;
BEGIN
    SELECT v.min_schema INTO least_schema FROM aegis.schema_version v FOR SHARE;
    IF coalesce(NEW.schema, 6) < least_schema THEN
        RAISE EXCEPTION 'worker % knows schema % and the database needs at least %', NEW.name, coalesce(NEW.schema, 6), least_schema
            USING ERRCODE = 'AEG09', HINT = 'start a newer release';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse_old_worker BEFORE INSERT ON aegis.worker FOR EACH ROW EXECUTE FUNCTION aegis.refuse_old_worker();

-- The ids of a batch ascend with the row's number: it stands in the 14 bits behind the moment, then 60 bits that are drawn once.
CREATE OR REPLACE FUNCTION aegis.uuid7_nth(p_ms bigint, p_random bigint, p_n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(int8send(((p_ms + (p_n >> 14)) << 16) | 28672 | ((p_n >> 2) & 4095))
        || int8send(((p_n & 3) << 60) | (p_random & 1152921504606846975) | (-9223372036854775807 - 1)), 'hex')::uuid $$;

-- What a task was asked to do, wherever it stands.
CREATE VIEW aegis.input_any AS
    SELECT b.id, b.tenant, b.protocol, b.content_type, b.input, b.labels, b.trace, b.submitter FROM aegis.task_body b
    UNION ALL
    SELECT t.id, t.tenant, t.input_protocol, 0::smallint, t.input, NULL, t.trace, NULL FROM aegis.task t WHERE t.input IS NOT NULL
    UNION ALL
    SELECT p.id, p.tenant, p.input_protocol, 0::smallint, p.input, NULL, p.trace, NULL FROM aegis.parked p WHERE p.input IS NOT NULL
    UNION ALL
    SELECT h.id, h.tenant, h.input_protocol, 0::smallint, h.input, NULL, h.trace, NULL FROM aegis.task_history h WHERE h.input IS NOT NULL;
GRANT SELECT ON aegis.input_any TO aegis_engine, aegis_lease, aegis_submitter, aegis_reader;

CREATE OR REPLACE VIEW aegis.task_input AS
    SELECT id, protocol, CASE WHEN content_type = 0 THEN convert_from(input, 'UTF8')::jsonb END AS input, labels, trace, submitter
    FROM aegis.input_any;

-- As before; the input goes with the task.
CREATE OR REPLACE FUNCTION aegis.conclude(p_task uuid, p_state smallint, p_error jsonb, p_result bytea DEFAULT NULL,
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
            parts, epoch, rev, owner, claim_id, digest, deadline_at, parked_at, error, input_protocol, input, trace)
        VALUES (t.id, t.lane, t.tenant, t.policy, o.state, t.priority, t.failures, t.interruptions, t.crashes, t.snoozes, t.open_ops,
            t.parts, t.epoch, o.rev, o.owner, o.claim_id, o.digest, t.deadline_at, clock_timestamp(),
            coalesce(o.error, '{"code": "unspecified"}'), t.input_protocol, t.input, t.trace);
    ELSE
        INSERT INTO aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, content_type,
            epoch, rev, digest, owner, claim_id, claimed_at, finished_at, result, error, input_protocol, input, trace)
        VALUES (t.id, t.lane, t.tenant, o.state, t.failures, t.interruptions, t.crashes, t.snoozes, t.open_ops, o.content_type,
            o.epoch, o.rev, o.digest, o.owner, o.claim_id, o.claimed_at, clock_timestamp(), o.result, o.error,
            t.input_protocol, t.input, t.trace);
    END IF;
    RETURN o.state;
END $$;

CREATE OR REPLACE FUNCTION aegis.redrive_task(p_task uuid, p_actor text, p_reason text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    p aegis.parked;
BEGIN
    DELETE FROM aegis.parked WHERE id = p_task RETURNING * INTO p;
    IF p.id IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO aegis.task (id, lane, tenant, policy, state, priority, ord, epoch, rev, parts, input_protocol, input, trace)
    VALUES (p.id, p.lane, p.tenant, p.policy, 1, p.priority, aegis.ord(p.priority), p.epoch, p.rev + 1, p.parts,
        p.input_protocol, p.input, p.trace);
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p.id, clock_timestamp(), p.tenant, p.epoch, 'redriven', p_actor, jsonb_build_object('reason', p_reason, 'error', p.error));
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION aegis.discard_task(p_task uuid, p_actor text, p_reason text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    p aegis.parked;
BEGIN
    DELETE FROM aegis.parked WHERE id = p_task RETURNING * INTO p;
    IF p.id IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO aegis.task_history (id, lane, tenant, state, failures, interruptions, crashes, snoozes, open_ops, epoch, rev, digest,
        owner, claim_id, finished_at, error, input_protocol, input, trace)
    VALUES (p.id, p.lane, p.tenant, p.state, p.failures, p.interruptions, p.crashes, p.snoozes, p.open_ops, p.epoch, p.rev, p.digest,
        p.owner, p.claim_id, clock_timestamp(), p.error, p.input_protocol, p.input, p.trace);
    INSERT INTO aegis.task_event (task, at, tenant, epoch, cause, actor, detail)
    VALUES (p.id, clock_timestamp(), p.tenant, p.epoch, 'discarded', p_actor, jsonb_build_object('reason', p_reason));
    RETURN true;
END $$;
