-- The server's counters of tables: $1 their OIDs.
SELECT json_build_object(
    'table', json_build_array(s.schemaname, s.relname),
    'inserted', s.n_tup_ins, 'updated', s.n_tup_upd, 'deleted', s.n_tup_del,
    'sequential_scans', coalesce(s.seq_scan, 0), 'index_scans', coalesce(s.idx_scan, 0),
    'dead_rows', s.n_dead_tup, 'calls', NULL
)::text
FROM pg_catalog.pg_stat_user_tables s
WHERE s.relid = ANY ($1::oid[])
