-- Over which time the counters counted; no row while the server does not say (until the first reset of this database).
SELECT json_build_object(
    'since', to_char(d.stats_reset AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'seconds', extract(epoch FROM clock_timestamp() - d.stats_reset)::float8
)::text
FROM pg_catalog.pg_stat_database d
WHERE d.datname = current_database() AND d.stats_reset IS NOT NULL
