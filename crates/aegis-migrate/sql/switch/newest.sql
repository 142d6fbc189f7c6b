-- Where a change stands. $1 change. No row: both sides old, rev 0.
SELECT s.rev, s.reads, s.writes, s.cache_ttl_ms, s.release, s.made_by, s.at,
    s.at + make_interval(secs => s.cache_ttl_ms / 1000.0) AS counts_from,
    clock_timestamp() >= s.at + make_interval(secs => s.cache_ttl_ms / 1000.0) AS counts,
    greatest(0, ceil(extract(epoch FROM s.at + make_interval(secs => s.cache_ttl_ms / 1000.0) - clock_timestamp())))::bigint AS counts_in_s
FROM aegis_migrate.switch s WHERE s.change = $1 ORDER BY s.rev DESC LIMIT 1
