-- Closes a worker's gate on a person's word; who and why are stored. See drain.sql.
--
-- lock: the worker's gate row
-- index: worker_pkey
-- fence: none: an override, idempotent
-- returns: count
WITH w AS (
    UPDATE aegis.worker SET state = 1, draining_at = clock_timestamp() WHERE id = :worker::uuid AND state = 0 RETURNING id, name)
INSERT INTO aegis.fleet_change (what, subject, actor, reason)
SELECT 'drain', 'worker ' || w.id || ' ' || w.name, :actor::text, :reason::text FROM w
