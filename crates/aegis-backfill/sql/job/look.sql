-- How a job stands, for its runner. $1 change.
SELECT epoch, state, state_by, state_reason FROM aegis_migrate.backfill WHERE change = $1
