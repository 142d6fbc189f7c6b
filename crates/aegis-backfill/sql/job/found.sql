-- A job, locked for who takes it. $1 change.
SELECT spec_sha256, epoch, state, state_by, state_reason, batch_rows, coalesce(error, '') AS error, rows_seen, rows_changed
FROM aegis_migrate.backfill WHERE change = $1 FOR UPDATE
