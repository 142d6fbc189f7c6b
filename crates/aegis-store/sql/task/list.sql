-- Tasks by filter between two ids, the newest first. `walk`: live tasks are found by their primary key; otherwise only running
-- and reconciling ones are wanted, and those by the indexes that hold nothing else. Labels are looked up in the bodies of
-- what everything else left: no index holds them, for its cost at each submit.
--
-- lock: none
-- index: task_pkey or task_owner and task_reconciling; parked_pkey, task_history_pkey, task_body_pkey
-- fence: none: a read
-- returns: many
-- nullable: owner, run_at, finished_at, error, priority
WITH n AS MATERIALIZED (
    SELECT n.id, n.queue, n.kind, n.lo, n.hi FROM aegis.lane n
    WHERE (:queue?::text IS NULL OR n.queue = :queue?::text) AND (:kind?::text IS NULL OR n.kind = :kind?::text)),
e AS MATERIALIZED (SELECT e.id, e.name FROM aegis.tenant e WHERE :tenant?::text IS NULL OR e.name = :tenant?::text)
SELECT a.id, n.queue, n.kind, n.lo, n.hi, e.name AS tenant, a.state, a.parked, a.priority, a.failures, a.interruptions, a.crashes, a.snoozes,
    a.epoch, a.owner, a.run_at, a.finished_at, a.error, aegis.uuid7_time(a.id) AS submitted_at
FROM (
    SELECT t.id, t.lane, t.tenant, t.state, false AS parked, t.priority, t.failures, t.interruptions, t.crashes, t.snoozes, t.epoch, t.owner,
        t.run_at, NULL::timestamptz AS finished_at, NULL::jsonb AS error
    FROM aegis.task t WHERE :walk::boolean AND t.id < :before::uuid AND t.id >= :floor::uuid AND t.state = ANY (:live::int2[])
    UNION ALL
    SELECT t.id, t.lane, t.tenant, t.state, false, t.priority, t.failures, t.interruptions, t.crashes, t.snoozes, t.epoch, t.owner,
        t.run_at, NULL, NULL
    FROM aegis.task t WHERE NOT :walk::boolean AND t.state = 2 AND 2 = ANY (:live::int2[]) AND t.id < :before::uuid AND t.id >= :floor::uuid
    UNION ALL
    SELECT t.id, t.lane, t.tenant, t.state, false, t.priority, t.failures, t.interruptions, t.crashes, t.snoozes, t.epoch, t.owner,
        t.run_at, NULL, NULL
    FROM aegis.task t WHERE NOT :walk::boolean AND t.state = 4 AND 4 = ANY (:live::int2[]) AND t.id < :before::uuid AND t.id >= :floor::uuid
    UNION ALL
    SELECT p.id, p.lane, p.tenant, p.state, true, p.priority, p.failures, p.interruptions, p.crashes, p.snoozes, p.epoch, p.owner,
        NULL, p.parked_at, p.error
    FROM aegis.parked p WHERE p.id < :before::uuid AND p.id >= :floor::uuid AND p.state = ANY (:parked::int2[])
    UNION ALL
    SELECT h.id, h.lane, h.tenant, h.state, false, NULL, h.failures, h.interruptions, h.crashes, h.snoozes, h.epoch, h.owner,
        NULL, h.finished_at, h.error
    FROM aegis.task_history h WHERE h.id < :before::uuid AND h.id >= :floor::uuid AND h.state = ANY (:ended::int2[])) a
JOIN n ON n.id = a.lane JOIN e ON e.id = a.tenant
WHERE :labels?::jsonb IS NULL OR EXISTS (SELECT FROM aegis.task_body b WHERE b.id = a.id AND b.labels @> :labels?::jsonb)
ORDER BY a.id DESC LIMIT :limit::int8
