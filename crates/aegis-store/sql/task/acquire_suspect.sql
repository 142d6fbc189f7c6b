-- Claims one suspect (a task that was running when a worker crashed), alone: only a worker that holds nothing gets it,
-- so that only crashes alone count towards quarantine.
--
-- lock: the worker's gate row FOR NO KEY UPDATE, then one task row SKIP LOCKED
-- index: task_suspect, task_owner, task_pkey
-- fence: none: it makes the claim; the gate row must be accepting and its lease alive, judged after its lock
-- returns: optional
-- nullable: trace, cancel_cause, pending
WITH w AS MATERIALIZED (
    SELECT id FROM aegis.worker
    WHERE id = :worker::uuid AND state = 0 AND last_request IS DISTINCT FROM :request::uuid FOR NO KEY UPDATE),
g AS MATERIALIZED (
    SELECT aegis.lease_live(:worker::uuid) AND aegis.holds_nothing(:worker::uuid) AS ok
    FROM (SELECT count(*) AS n FROM w) x WHERE x.n > 0),
i AS MATERIALIZED (SELECT floor, timeline FROM aegis.open_lineage()),
m AS (UPDATE aegis.worker SET last_request = :request::uuid FROM g WHERE g.ok AND id = ANY (ARRAY(SELECT w.id FROM w))),
c AS MATERIALIZED (
    SELECT t.id FROM g, unnest(:queues::text[], :kinds::text[]) AS f (queue, kind)
    JOIN aegis.lanes_of(:worker::uuid) n ON n.queue = f.queue AND n.kind = f.kind, LATERAL (
        SELECT t.id FROM aegis.task t JOIN aegis.tenant e ON e.id = t.tenant
        WHERE t.lane = n.lane AND t.state = 1 AND t.crashes > 0
          AND NOT EXISTS (SELECT FROM aegis.pause p WHERE p.scope = 'tenant' AND p.value = e.name)
        ORDER BY t.ord LIMIT 1 FOR NO KEY UPDATE OF t SKIP LOCKED) t
    WHERE g.ok LIMIT 1),
u AS (
    UPDATE aegis.task t SET state = 2, owner = :worker::uuid, claim_id = :request::uuid, epoch = t.epoch + 1, rev = t.rev + 1,
        floor = i.floor, timeline = i.timeline, claimed_at = clock_timestamp(),
        next_deadline = CASE WHEN t.policy = 0 THEN t.deadline_at ELSE least(t.deadline_at, (
            SELECT clock_timestamp() + p.start_to_close_ms * interval '1 ms' FROM aegis.policy p WHERE p.id = t.policy)) END
    FROM i WHERE t.id = ANY (ARRAY(SELECT c.id FROM c))
    RETURNING t.id, t.lane, t.tenant, t.epoch, t.rev, t.floor, t.timeline, t.failures, t.interruptions, t.crashes, t.snoozes,
        t.parts, t.pending, t.cancel_cause, t.input_protocol, t.input, t.trace)
SELECT u.id, u.lane, u.tenant, u.epoch, u.rev, u.floor, u.timeline, u.failures, u.interruptions, u.crashes, u.snoozes,
    u.parts, u.pending, u.cancel_cause, b.protocol, b.content_type, b.input, b.trace
FROM u CROSS JOIN LATERAL (
    SELECT u.input_protocol AS protocol, 0::int2 AS content_type, u.input, u.trace WHERE u.input IS NOT NULL
    UNION ALL
    SELECT b.protocol, b.content_type, b.input, b.trace FROM aegis.task_body b WHERE u.input IS NULL AND b.id = u.id OFFSET 0) b
