-- Rows that could not be moved. $1 change, $2 how many at most.
SELECT leaf, after_key, key, sqlstate, said, attempts FROM aegis_migrate.backfill_failure WHERE change = $1 ORDER BY leaf, at LIMIT $2
