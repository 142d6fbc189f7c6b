-- May run again from its cursors. $1 change, $2 who, $3 why.
UPDATE aegis_migrate.backfill SET state = 'running', state_by = $2, state_reason = $3, error = NULL,
    updated_at = clock_timestamp(), ended_at = NULL
WHERE change = $1 AND state IN ('failed', 'cancelled') RETURNING state
