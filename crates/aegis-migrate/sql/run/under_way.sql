-- What is built in this database now, each by the session that holds the lock of its change: how far, and for whom it waits.
-- $1 what these locks are called; the answer has its number, from 1.
SELECT w.nr, a.pid, a.application_name AS runner, coalesce(host(a.client_addr), 'local') AS "from",
    coalesce(extract(epoch FROM clock_timestamp() - a.query_start), 0)::bigint AS since_s,
    p.phase, p.blocks_total, p.blocks_done, p.tuples_total, p.tuples_done, p.lockers_total, p.lockers_done,
    b.pid AS blocker, coalesce(b.application_name, '') AS program, coalesce(b.state, 'hidden') AS state,
    coalesce(extract(epoch FROM clock_timestamp() - b.xact_start), 0)::bigint AS age_s
FROM unnest($1::text[]) WITH ORDINALITY AS w (name, nr)
JOIN pg_catalog.pg_locks l ON l.locktype = 'advisory' AND l.classid = 1634035563 AND l.objsubid = 2 AND l.granted
    AND l.objid = (hashtext(w.name)::bigint & 4294967295)::oid
    AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_catalog.pg_stat_progress_create_index p ON p.pid = a.pid
LEFT JOIN pg_catalog.pg_stat_activity b ON b.pid = coalesce(nullif(p.current_locker_pid, 0), (pg_blocking_pids(a.pid))[1])
ORDER BY w.nr
