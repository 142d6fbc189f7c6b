-- Whether a change still has an old side: the attempt that has shut its door, and when its contract ran, here or when the database
-- was made. One row. $1 change.
SELECT c.attempt,
       coalesce(c.done_at, (SELECT p.done_at FROM aegis_migrate.phase p WHERE p.change = $1 AND p.phase = 'contract')) AS dropped_at
FROM (VALUES (1)) one (row)
LEFT JOIN aegis_migrate.contract c ON c.change = $1 AND c.reopened_at IS NULL
