-- No more batches from here on: the batch that is open finds another state and is rolled back. $1 change, $2 who, $3 why.
UPDATE aegis_migrate.backfill SET state = 'paused', state_by = $2, state_reason = $3, updated_at = clock_timestamp()
WHERE change = $1 AND state = 'running' RETURNING state
