-- What is open of a job, in order. $1 change.
SELECT leaf, upper_key, cursor_key FROM aegis_migrate.backfill_leaf WHERE change = $1 AND state = 'open' ORDER BY ordinal
