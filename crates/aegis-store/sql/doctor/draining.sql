-- Living workers that were asked to drain, and for how long they have been at it.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: many
SELECT w.id, w.name, w.release, extract(epoch FROM clock_timestamp() - w.draining_at)::float8 AS draining_s
FROM aegis.worker w JOIN aegis.worker_lease l ON l.worker = w.id
WHERE w.state = 1 AND l.lease_until > clock_timestamp() AND w.draining_at IS NOT NULL ORDER BY w.draining_at LIMIT 1000
