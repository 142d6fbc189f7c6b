-- How jobs stand. $1 a change; NULL: all.
SELECT b.change, b.state, b.state_by, b.state_reason, b.waiting, b.error, b.epoch, b.batch_rows, b.rows_seen, b.rows_changed,
    b.rows_estimated, b.worked_ms, b.waited_ms, extract(epoch FROM clock_timestamp() - b.updated_at)::bigint AS silent_s,
    (SELECT count(*) FROM aegis_migrate.backfill_failure f WHERE f.change = b.change) AS failed_rows,
    (SELECT count(*) FROM aegis_migrate.backfill_leaf l WHERE l.change = b.change) AS leaves,
    (SELECT count(*) FROM aegis_migrate.backfill_leaf l WHERE l.change = b.change AND l.state <> 'open') AS leaves_done,
    (SELECT a.application_name || ', process ' || a.pid || ' from ' || coalesce(host(a.client_addr), 'local')
     FROM pg_locks k JOIN pg_stat_activity a ON a.pid = k.pid
     WHERE k.locktype = 'advisory' AND k.classid = 1634035562 AND k.objid = (hashtext(b.change)::bigint & 4294967295)::oid
       AND k.objsubid = 2 AND k.granted AND k.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
     LIMIT 1) AS runner
FROM aegis_migrate.backfill b WHERE $1::text IS NULL OR b.change = $1 ORDER BY b.change
