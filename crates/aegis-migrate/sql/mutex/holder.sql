-- Who holds the mutex. $1 the ledger. No row: nobody, or somebody who has just gone.
SELECT a.pid, a.application_name, coalesce(host(a.client_addr), 'local') AS client, coalesce(a.state, 'hidden') AS state,
    coalesce(extract(epoch FROM clock_timestamp() - a.backend_start), 0)::bigint AS age_s
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = 1634035561 AND l.objid = $1::int4::oid AND l.objsubid = 2 AND l.granted
  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
LIMIT 1
