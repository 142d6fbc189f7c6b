-- Idempotency keys that expired more than a day ago and are still there, although their task is neither live nor parked. A bounded count.
--
-- lock: none
-- index: idempotency_expiry
-- fence: none: a read
-- returns: one
SELECT count(*) AS keys FROM (
    SELECT i.task FROM aegis.idempotency i WHERE i.expires_at < clock_timestamp() - interval '1 day' ORDER BY i.expires_at LIMIT 10001) x
WHERE NOT EXISTS (SELECT FROM aegis.task t WHERE t.id = x.task) AND NOT EXISTS (SELECT FROM aegis.parked p WHERE p.id = x.task)
