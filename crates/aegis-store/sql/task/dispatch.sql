-- The dispatch commit of an operation: only its applied answer lets the call leave. `dispatches` NULL: refused, because
-- the id stands with another fingerprint, is settled, needs a person, or (idempotent) its key is no longer valid.
-- An operation resolved as "did not happen" is dispatched again under the same id.
--
-- lock: the task row FOR NO KEY UPDATE, then the operation row
-- index: task_pkey, operation_pkey
-- fence: guard.sql
-- returns: optional
-- nullable: dispatches, rev
WITH
-- include: guard.sql
,
o AS (
    INSERT INTO aegis.operation AS o (task, id, tenant, name, key, class, state, dispatches, protocol, content_type, epoch, timeout_ms, quiet_ms,
        worker, release, first_dispatched_at, dispatched_at, key_valid_until, fingerprint, request)
    SELECT l.id, :operation::text, l.tenant, :name::text, :key::text, :class::int2, 1, 1, :protocol::int4, 0, l.epoch, :timeout_ms::int8,
        :quiet_ms::int8, :worker::uuid, :release::text, clock_timestamp(), clock_timestamp(),
        clock_timestamp() + :key_valid_ms?::int8 * interval '1 ms', :fingerprint::bytea, :request?::bytea
    FROM l, g WHERE g.ok
    ON CONFLICT (task, id) DO UPDATE SET state = 1, dispatches = o.dispatches + 1, epoch = excluded.epoch, worker = excluded.worker,
        release = excluded.release, dispatched_at = excluded.dispatched_at, timeout_ms = excluded.timeout_ms, quiet_until = NULL,
        resolution = NULL, resolved_by = NULL, resolved_at = NULL, evidence = NULL,
        first_dispatched_at = CASE WHEN o.state IN (0, 5) THEN excluded.first_dispatched_at ELSE o.first_dispatched_at END,
        key_valid_until = CASE WHEN o.state IN (0, 5) THEN excluded.key_valid_until ELSE o.key_valid_until END,
        taken_by = NULL, taken_at = NULL,
        note = CASE WHEN o.state = 5 THEN 'resolved as not happened by ' || o.resolved_by || ': ' || o.evidence ELSE o.note END
    WHERE o.fingerprint = excluded.fingerprint AND o.class = excluded.class
      AND (o.state = 0
        OR (o.state = 1 AND o.class < 2 AND (o.class = 1 OR o.key_valid_until IS NULL OR clock_timestamp() < o.key_valid_until))
        OR (o.state = 1 AND o.class = 2 AND :probed::boolean)
        OR (o.state = 5 AND o.resolution = 1))
    RETURNING o.task, o.dispatches),
-- Counted as open once: a repeat of a dispatched operation is open already.
b AS MATERIALIZED (SELECT l.id, aegis.operation_is_open(l.id, :operation::text) AS open FROM l, g WHERE g.ok),
u AS (
    UPDATE aegis.task t SET rev = t.rev + 1, parts = true, lane = :lane::int4,
        open_ops = t.open_ops + CASE WHEN (SELECT b.open FROM b) THEN 0 ELSE 1 END
    FROM g, o WHERE g.ok AND t.id = ANY (ARRAY(SELECT o.task FROM o))
    RETURNING t.id, t.rev)
SELECT l.id, o.dispatches, u.rev FROM l JOIN g ON g.ok LEFT JOIN o ON o.task = l.id LEFT JOIN u ON u.id = l.id
