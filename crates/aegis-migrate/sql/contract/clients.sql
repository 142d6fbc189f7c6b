-- Sessions of runtime roles that are older than the shut door. $1 roles, $2 closed at.
-- Hidden rows (another role's, without pg_read_all_stats) show neither backend_type nor backend_start: they are counted apart, never taken for none.
SELECT coalesce(a.usename::text, '') AS role, a.application_name AS program, count(*) AS sessions, min(a.backend_start) AS oldest,
    bool_or(a.backend_start IS NULL) AS hidden
FROM pg_stat_activity a
WHERE a.datname = current_database() AND coalesce(a.backend_type, 'client backend') = 'client backend' AND a.usename = ANY ($1::text[])
  AND (a.backend_start IS NULL OR a.backend_start < $2)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20
