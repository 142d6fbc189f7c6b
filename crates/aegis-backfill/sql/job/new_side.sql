-- Whether programs may write or read the new side of a change, by its newest move; one that does not count yet is one too. $1 change.
SELECT (s.reads, s.writes) <> ('old', 'old') OR clock_timestamp() < s.at + make_interval(secs => s.cache_ttl_ms / 1000.0) AS is_new
FROM aegis_migrate.switch s WHERE s.change = $1 ORDER BY s.rev DESC LIMIT 1
