-- Holds the attempt against a reopening until the transaction ends; looks may still be added. $1 change, $2 attempt. No row: it was reopened.
SELECT c.done_at FROM aegis_migrate.contract c WHERE c.change = $1 AND c.attempt = $2 AND c.reopened_at IS NULL FOR NO KEY UPDATE
