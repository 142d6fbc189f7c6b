-- Commits a batch with its cursor. No row: another runner has the job, somebody moved its state, or the cursor is not where it was.
-- $1 change, $2 epoch, $3 leaf, $4 cursor before, $5 cursor now, $6 whether the leaf is done, $7 rows seen, $8 rows changed,
-- $9 milliseconds, $10 rows of the next batch. Locks the job's row until the commit.
WITH job AS (
    UPDATE aegis_migrate.backfill SET batches = batches + 1, rows_seen = rows_seen + $7, rows_changed = rows_changed + $8,
        worked_ms = worked_ms + $9, batch_rows = $10, waiting = NULL, updated_at = clock_timestamp()
    WHERE change = $1 AND epoch = $2 AND state = 'running'
    RETURNING change
)
UPDATE aegis_migrate.backfill_leaf l SET cursor_key = $5, rows_seen = l.rows_seen + $7, rows_changed = l.rows_changed + $8,
    state = CASE WHEN $6 THEN 'done' ELSE 'open' END
FROM job WHERE l.change = job.change AND l.leaf = $3 AND l.state = 'open' AND l.cursor_key IS NOT DISTINCT FROM $4
