-- Ends an incarnation that holds nothing. Zero rows: it still has running rows, or is lost; expiry and epoch do the rest.
--
-- lock: the worker's gate row FOR NO KEY UPDATE, judged after the lock
-- index: worker_pkey, task_owner
-- fence: none: only while no row is running under it
-- returns: count
WITH w AS MATERIALIZED (SELECT id FROM aegis.worker WHERE id = :worker::uuid AND state <= 1 FOR NO KEY UPDATE),
g AS MATERIALIZED (SELECT aegis.holds_nothing(:worker::uuid) AS ok FROM (SELECT count(*) AS n FROM w) x WHERE x.n > 0)
UPDATE aegis.worker SET state = 2, ended_at = clock_timestamp() FROM g WHERE g.ok AND id = ANY (ARRAY(SELECT w.id FROM w))
