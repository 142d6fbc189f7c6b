-- Since when every application writes the new side. $1 change. No row: it does not.
SELECT s.at + make_interval(secs => s.cache_ttl_ms / 1000.0) AS counts_from FROM aegis_migrate.switch s
WHERE s.change = $1 AND s.writes = 'new'
  AND s.rev > coalesce((SELECT max(o.rev) FROM aegis_migrate.switch o WHERE o.change = $1 AND o.writes = 'old'), 0)
ORDER BY s.rev LIMIT 1
