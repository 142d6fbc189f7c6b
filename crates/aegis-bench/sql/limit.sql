-- The limit: bare rows claimed and completed in one statement, in batches of 100. No guard, no body, no history.
UPDATE bench.l2 SET state = 'done', done_at = now()
WHERE id IN (SELECT id FROM bench.l2 WHERE state = 'ready' ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED);
