-- The attempt before an epoch: what it ended of, and whose it was. For the trace of the next one.
--
-- lock: none
-- index: task_event_task
-- fence: none: a read
-- returns: optional
-- nullable: owner, claimed_at
SELECT e.epoch, e.cause, e.owner, e.claimed_at, e.at FROM aegis.task_event e
WHERE e.task = :task::uuid AND e.epoch < :epoch::int8 AND e.claimed_at IS NOT NULL
ORDER BY e.at DESC LIMIT 1
