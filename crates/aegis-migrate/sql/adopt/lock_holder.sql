-- Who holds a tool's own advisory lock (a bigint key), if anybody: halves of the key are classid and objid.
SELECT a.pid, coalesce(a.application_name, ''), coalesce(a.state, '')
FROM pg_catalog.pg_locks l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND l.classid::bigint = ($1::bigint >> 32) & 4294967295
  AND l.objid::bigint = $1::bigint & 4294967295
LIMIT 1
