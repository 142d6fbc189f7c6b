-- A backfill under way moves rows by other expressions than the trigger has from now on: it is fenced in the same commit. $1 change.
UPDATE aegis_migrate.backfill SET epoch = epoch + 1, updated_at = clock_timestamp()
WHERE change = $1 AND state IN ('running', 'paused')
