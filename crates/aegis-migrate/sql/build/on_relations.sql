-- The first relation of $1 (schemas), $2 (names) on which somebody builds, and who. No row: nobody builds there.
SELECT w.schema, w.name, a.pid, a.application_name, coalesce(host(a.client_addr), 'local') AS client
FROM pg_catalog.pg_locks b
JOIN pg_catalog.pg_stat_activity a ON a.pid = b.pid
JOIN pg_catalog.pg_locks r ON r.pid = b.pid AND r.locktype = 'relation' AND r.granted AND r.database = b.database
    AND r.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
JOIN pg_catalog.pg_class c ON c.oid = r.relation
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (schema, name, nr) ON w.schema = n.nspname AND w.name = c.relname
WHERE b.locktype = 'advisory' AND b.classid = 1634035563 AND b.objsubid = 2 AND b.granted AND b.pid <> pg_backend_pid()
  AND b.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
ORDER BY w.nr LIMIT 1
