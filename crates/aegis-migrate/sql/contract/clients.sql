-- Sessions of runtime roles, and of roles that are members of one, that are older than the shut door. $1 roles, $2 closed at.
-- Hidden rows (another role's, without pg_read_all_stats) show neither backend_type nor backend_start: they are counted apart, never taken for none.
WITH RECURSIVE runtime AS (
    SELECT r.oid, r.rolname FROM pg_roles r WHERE r.rolname = ANY ($1::text[])
    UNION
    SELECT r.oid, r.rolname FROM runtime o JOIN pg_auth_members m ON m.roleid = o.oid JOIN pg_roles r ON r.oid = m.member
)
SELECT coalesce(a.usename::text, '') AS role, a.application_name AS program, count(*) AS sessions, min(a.backend_start) AS oldest,
    bool_or(a.backend_start IS NULL) AS hidden
FROM pg_stat_activity a
WHERE a.datname = current_database() AND coalesce(a.backend_type, 'client backend') = 'client backend' AND a.pid <> pg_backend_pid()
  AND a.usesysid IN (SELECT r.oid FROM runtime r)
  AND (a.backend_start IS NULL OR a.backend_start < $2)
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20
