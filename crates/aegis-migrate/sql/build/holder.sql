-- Who builds for a change. No row: nobody. $1 change.
SELECT a.pid, a.application_name, coalesce(host(a.client_addr), 'local') AS client
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = 1634035563 AND l.objid = (hashtext($1)::bigint & 4294967295)::oid AND l.objsubid = 2
  AND l.granted AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
LIMIT 1
