-- A row that could not be moved was tried again, in vain. $1 change, $2 epoch, $3 leaf, $4 its key, $5 code, $6 what the server said.
UPDATE aegis_migrate.backfill_failure f SET sqlstate = $5, said = $6, attempts = f.attempts + 1, at = clock_timestamp()
FROM aegis_migrate.backfill b
WHERE b.change = $1 AND b.epoch = $2 AND b.state = 'running' AND f.change = b.change AND f.leaf = $3 AND f.key = $4
