-- Over which time the counters counted. A database that was never reset has counted since the statistics of the server began: at
-- initdb, or at the last crash. Nobody resets the archiver's and the background writer's both, so the older one tells it.
SELECT json_build_object(
    'since', to_char(s.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'seconds', extract(epoch FROM clock_timestamp() - s.since)::float8
)::text
FROM pg_catalog.pg_stat_database d,
    pg_catalog.pg_stat_archiver a,
    pg_catalog.pg_stat_bgwriter b,
    LATERAL (SELECT coalesce(d.stats_reset, least(a.stats_reset, b.stats_reset)) AS since) s
WHERE d.datname = current_database() AND s.since IS NOT NULL
