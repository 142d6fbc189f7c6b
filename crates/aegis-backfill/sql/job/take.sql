-- A new epoch for a runner. $1 change, $2 run, $3 release.
UPDATE aegis_migrate.backfill SET epoch = epoch + 1, run = $2, release = $3, waiting = NULL, updated_at = clock_timestamp()
WHERE change = $1 RETURNING epoch
