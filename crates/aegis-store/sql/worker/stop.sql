-- Ends an incarnation that holds nothing. Zero rows: it still has running rows, or is lost; expiry and epoch do the rest.
--
-- lock: the worker's gate row
-- index: worker_pkey, task_owner
-- fence: none: only while no row is running under it
-- returns: count
UPDATE aegis.worker SET state = 2, ended_at = clock_timestamp()
WHERE id = :worker::uuid AND state <= 1 AND NOT EXISTS (SELECT FROM aegis.task t WHERE t.owner = :worker::uuid AND t.state = 2)
