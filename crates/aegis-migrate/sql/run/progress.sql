-- How far a build is and whom it waits for. $1 the process of the session that builds. One row; without a build its numbers are NULL.
SELECT p.phase, p.blocks_total, p.blocks_done, p.tuples_total, p.tuples_done, p.lockers_total, p.lockers_done,
    b.pid AS blocker, coalesce(b.application_name, '') AS program, coalesce(b.state, 'hidden') AS state,
    coalesce(extract(epoch FROM clock_timestamp() - b.xact_start), 0)::bigint AS age_s
FROM (SELECT $1::int AS pid) AS me
LEFT JOIN pg_catalog.pg_stat_progress_create_index p ON p.pid = me.pid
LEFT JOIN pg_catalog.pg_stat_activity b ON b.pid = coalesce(nullif(p.current_locker_pid, 0), (pg_blocking_pids(me.pid))[1])
