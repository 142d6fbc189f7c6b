-- What a worker holds, the oldest claim first.
--
-- lock: none
-- index: task_owner
-- fence: none: a read
-- returns: many
SELECT t.id, n.queue, n.kind, t.epoch, t.claimed_at, t.cancel_at IS NOT NULL AS is_cancelled
FROM aegis.task t JOIN aegis.lane n ON n.id = t.lane WHERE t.owner = :worker::uuid AND t.state = 2
ORDER BY t.claimed_at, t.id LIMIT :limit::int8
