-- Ends an attempt without a contract. $1 change, $2 attempt, $3 by, $4 reason. No row: it is done, or another one.
UPDATE aegis_migrate.contract SET reopened_at = clock_timestamp(), reopened_by = $3, reopen_reason = $4
WHERE change = $1 AND attempt = $2 AND reopened_at IS NULL AND done_at IS NULL
RETURNING reopened_at
