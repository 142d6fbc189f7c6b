-- The contract has run. $1 change, $2 attempt, $3 digest of its approval. No row: reopened meanwhile.
UPDATE aegis_migrate.contract SET done_at = clock_timestamp(), approval = $3
WHERE change = $1 AND attempt = $2 AND reopened_at IS NULL AND done_at IS NULL
RETURNING done_at
