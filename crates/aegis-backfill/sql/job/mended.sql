-- A row that could not be moved was moved. No row: the fence does not hold. $1 change, $2 epoch, $3 leaf, $4 its key, $5 rows changed.
WITH job AS (
    UPDATE aegis_migrate.backfill SET batches = batches + 1, rows_changed = rows_changed + $5, waiting = NULL, updated_at = clock_timestamp()
    WHERE change = $1 AND epoch = $2 AND state = 'running'
    RETURNING change
), leaf AS (
    UPDATE aegis_migrate.backfill_leaf l SET rows_changed = l.rows_changed + $5
    FROM job WHERE l.change = job.change AND l.leaf = $3
)
DELETE FROM aegis_migrate.backfill_failure f USING job WHERE f.change = job.change AND f.leaf = $3 AND f.key = $4
