-- Accepted submissions: an idempotency key outlives its task.
SELECT i.key, i.task::text FROM aegis.idempotency i JOIN aegis.tenant t ON t.id = i.tenant
WHERE t.name = $1::text AND i.kind = $2::text ORDER BY i.key
