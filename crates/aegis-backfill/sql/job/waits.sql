-- Says why a job does not move. $1 change, $2 epoch, $3 why, $4 milliseconds since the last word.
UPDATE aegis_migrate.backfill SET waiting = $3, waited_ms = waited_ms + $4, updated_at = clock_timestamp()
WHERE change = $1 AND epoch = $2 AND state IN ('running', 'paused')
