-- Goes on. $1 change, $2 who, $3 why.
UPDATE aegis_migrate.backfill SET state = 'running', state_by = $2, state_reason = $3, updated_at = clock_timestamp()
WHERE change = $1 AND state = 'paused' RETURNING state
