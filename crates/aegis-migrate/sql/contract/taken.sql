-- What shut doors have taken, and not given back: role, schema and table of grants on whole tables. No row where no door is shut.
SELECT DISTINCT t.g ->> 'role' AS role, t.g ->> 'schema' AS schema, t.g ->> 'table' AS table
FROM aegis_migrate.contract c, jsonb_array_elements(c.taken) AS t (g)
WHERE c.reopened_at IS NULL AND c.done_at IS NULL
