-- Tasks by state, queue, kind and tenant, the newest first, a page before `before`.
--
-- lock: none
-- index: task_pkey, task_history_pkey, parked_pkey
-- fence: none: a read
-- returns: many
-- nullable: owner, run_at, finished_at, error
SELECT a.id, n.queue, n.kind, n.lo, n.hi, e.name AS tenant, a.state, a.failures, a.interruptions, a.crashes, a.snoozes, a.epoch, a.owner, a.run_at,
    a.finished_at, a.error, aegis.uuid7_time(a.id) AS submitted_at
FROM aegis.task_any a JOIN aegis.lane n ON n.id = a.lane JOIN aegis.tenant e ON e.id = a.tenant
WHERE (:states?::int2[] IS NULL OR a.state = ANY (:states?::int2[]))
  AND (:queue?::text IS NULL OR n.queue = :queue?::text) AND (:kind?::text IS NULL OR n.kind = :kind?::text)
  AND (:tenant?::text IS NULL OR e.name = :tenant?::text) AND (:before?::uuid IS NULL OR a.id < :before?::uuid)
ORDER BY a.id DESC LIMIT :limit::int8
