-- The attempt that is under way or done. $1 change.
SELECT c.attempt, c.closed_at, c.closed_by, c.release, c.taken, c.done_at, c.approval, clock_timestamp() AS now
FROM aegis_migrate.contract c WHERE c.change = $1 AND c.reopened_at IS NULL
