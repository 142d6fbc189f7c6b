-- The run that a record names; else the newest one, so that a record of another run is told apart from a database of none.
SELECT id, tenant, queue, kind FROM demo.run ORDER BY (id IS NOT DISTINCT FROM $1::text) DESC, started_at DESC LIMIT 1
