-- The newest result. $1 change, $2 kind.
SELECT is_zero, asked_sha256, trigger_sha256, to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS started_at,
    extract(epoch FROM clock_timestamp() - started_at)::bigint AS age_s, snapshot_lsn::text AS snapshot_lsn, rows_counted AS rows,
    missing + mismatch + orphaned AS wrong
FROM aegis_migrate.reconcile_pass WHERE change = $1 AND kind = $2 ORDER BY at DESC LIMIT 1
