-- Views for people, and the roles of the cluster. Roles carry their settings by ALTER ROLE, because a pooler forwards no
-- session settings; start-up verifies them by SHOW. Roles belong to the cluster: made once, whatever the number of databases.

-- A task wherever it stands now: live, parked or ended.
CREATE VIEW aegis.task_any AS
    SELECT t.id, t.lane, t.tenant, t.state, t.priority, t.failures, t.interruptions, t.crashes, t.snoozes, t.open_ops, t.pending,
        t.epoch, t.rev, t.owner, t.claim_id, t.run_at, t.claimed_at, NULL::timestamptz AS finished_at, t.cancel_at,
        NULL::bytea AS result, 0::smallint AS result_type, NULL::jsonb AS error
    FROM aegis.task t
    UNION ALL
    SELECT p.id, p.lane, p.tenant, p.state, p.priority, p.failures, p.interruptions, p.crashes, p.snoozes, p.open_ops, NULL,
        p.epoch, p.rev, p.owner, p.claim_id, NULL, NULL, p.parked_at, NULL, NULL, 0::smallint, p.error
    FROM aegis.parked p
    UNION ALL
    SELECT h.id, h.lane, h.tenant, h.state, NULL, h.failures, h.interruptions, h.crashes, h.snoozes, h.open_ops, NULL,
        h.epoch, h.rev, h.owner, h.claim_id, NULL, h.claimed_at, h.finished_at, NULL, h.result, h.content_type, h.error
    FROM aegis.task_history h;

-- Eligibility the way operators think of it.
CREATE VIEW aegis.task_lease AS
    SELECT t.id AS task_id, t.owner, t.epoch, l.lease_until,
        CASE WHEN w.state <= 1 AND l.lease_until > clock_timestamp() THEN 'held' ELSE 'expired' END AS status,
        c.seq AS checkpoint_seq, c.protocol
    FROM aegis.task t
    JOIN aegis.worker w ON w.id = t.owner
    JOIN aegis.worker_lease l ON l.worker = t.owner
    LEFT JOIN aegis.checkpoint c ON c.task = t.id
    WHERE t.state = 2;

-- Inputs as a person reads them in psql.
CREATE VIEW aegis.task_input AS
    SELECT id, protocol, CASE WHEN content_type = 0 THEN convert_from(input, 'UTF8')::jsonb END AS input, labels, trace, submitter
    FROM aegis.task_body;

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['aegis_owner', 'aegis_engine', 'aegis_lease', 'aegis_submitter', 'aegis_reader'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
                EXECUTE format('CREATE ROLE %I LOGIN', role);
                EXECUTE format('ALTER ROLE %I SET search_path = aegis, pg_catalog', role);
                EXECUTE format('ALTER ROLE %I SET default_transaction_isolation = %L', role, 'read committed');
                EXECUTE format('ALTER ROLE %I SET jit = off', role);
                EXECUTE format('ALTER ROLE %I SET random_page_cost = 1.1', role);
                EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', role, '10s');
                EXECUTE format('ALTER ROLE %I SET statement_timeout = %L', role, CASE WHEN role = 'aegis_owner' THEN '0' ELSE '30s' END);
                EXECUTE format('ALTER ROLE %I SET lock_timeout = %L', role, '5s');
                IF role IN ('aegis_engine', 'aegis_lease') THEN
                    EXECUTE format('ALTER ROLE %I SET plan_cache_mode = force_generic_plan', role);
                END IF;
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- an install in another database has just made it (advisory locks do not reach across databases)
        END;
    END LOOP;
END $$;

GRANT USAGE ON SCHEMA aegis TO aegis_engine, aegis_lease, aegis_submitter, aegis_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA aegis TO aegis_engine, aegis_lease, aegis_submitter, aegis_reader;
GRANT INSERT, UPDATE, DELETE ON aegis.task, aegis.task_body, aegis.task_history, aegis.parked, aegis.pending_outcome, aegis.checkpoint,
    aegis.step, aegis.operation, aegis.attempt_error, aegis.task_event, aegis.worker, aegis.worker_lease, aegis.worker_capability,
    aegis.idempotency, aegis.pause, aegis.housekeeping, aegis.lane, aegis.tenant, aegis.policy TO aegis_engine;
GRANT UPDATE ON aegis.database TO aegis_engine, aegis_lease;
GRANT UPDATE ON aegis.worker_lease, aegis.task TO aegis_lease;
GRANT INSERT, UPDATE, DELETE ON aegis.task, aegis.task_event, aegis.operation, aegis.pending_outcome, aegis.task_history, aegis.parked TO aegis_lease;
GRANT INSERT ON aegis.task, aegis.task_body, aegis.idempotency, aegis.lane, aegis.tenant, aegis.policy TO aegis_submitter;
