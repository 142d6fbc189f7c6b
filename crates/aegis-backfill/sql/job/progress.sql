-- What a job has done, for its runner. $1 change.
SELECT rows_seen, rows_changed, rows_estimated, worked_ms, waited_ms FROM aegis_migrate.backfill WHERE change = $1
