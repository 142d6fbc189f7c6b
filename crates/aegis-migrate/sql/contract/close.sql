-- Begins an attempt. $1 change, $2 by, $3 release, $4 the privileges taken. An attempt under way: 23505.
INSERT INTO aegis_migrate.contract (change, attempt, closed_at, closed_by, release, taken)
SELECT $1, coalesce(max(c.attempt), 0) + 1, clock_timestamp(), $2, $3, $4 FROM aegis_migrate.contract c WHERE c.change = $1
RETURNING attempt, closed_at
