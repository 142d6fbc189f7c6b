-- The end of a job: done, or failed where rows are left. $1 change, $2 epoch, $3 what was in the way before the end; NULL: nothing.
WITH left_over AS (
    SELECT count(*) AS rows, min(f.leaf || ' ' || f.key::text || ': ' || f.said || ' (' || f.sqlstate || ')') AS first
    FROM aegis_migrate.backfill_failure f WHERE f.change = $1
)
UPDATE aegis_migrate.backfill b
SET state = CASE WHEN $3::text IS NULL AND l.rows = 0 THEN 'done' ELSE 'failed' END,
    error = coalesce($3::text, CASE WHEN l.rows > 0 THEN l.rows || ' rows could not be moved, such as ' || l.first END),
    waiting = NULL, updated_at = clock_timestamp(), ended_at = clock_timestamp()
FROM left_over l
WHERE b.change = $1 AND b.epoch = $2 AND b.state = 'running'
  AND ($3::text IS NOT NULL OR NOT EXISTS (SELECT FROM aegis_migrate.backfill_leaf o WHERE o.change = $1 AND o.state = 'open'))
RETURNING b.state, b.error, b.rows_seen, b.rows_changed
