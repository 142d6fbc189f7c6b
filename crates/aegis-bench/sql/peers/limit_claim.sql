-- 100 waiting rows claimed and completed in one statement and one durable commit: no guard, no body, no history.
UPDATE l2 SET state = 'done', done_at = now()
    WHERE id IN (SELECT id FROM l2 WHERE state = 'ready' ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED);
