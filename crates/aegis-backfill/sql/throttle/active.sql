-- Sessions of programs that work now, and those that this role may not see: of them even the kind is NULL.
SELECT count(*) FILTER (WHERE state = 'active') AS active, count(*) FILTER (WHERE backend_type IS NULL) AS hidden
FROM pg_stat_activity WHERE coalesce(backend_type, 'client backend') = 'client backend' AND pid <> pg_backend_pid() AND datname IS NOT NULL
