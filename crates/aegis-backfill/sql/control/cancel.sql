-- Ends it. $1 change, $2 who, $3 why.
UPDATE aegis_migrate.backfill SET state = 'cancelled', state_by = $2, state_reason = $3, waiting = NULL,
    updated_at = clock_timestamp(), ended_at = clock_timestamp()
WHERE change = $1 AND state IN ('running', 'paused', 'failed') RETURNING state
