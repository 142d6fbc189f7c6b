-- Row security policies: $1 the tables' OIDs.
SELECT json_build_object(
    'table', json_build_array(tn.nspname, t.relname),
    'name', p.polname,
    'permissive', p.polpermissive,
    'command', CASE p.polcmd WHEN 'r' THEN 'select' WHEN 'a' THEN 'insert' WHEN 'w' THEN 'update' WHEN 'd' THEN 'delete'
        ELSE 'all' END,
    'roles', (
        SELECT json_agg(r.name ORDER BY r.name)
        FROM (SELECT CASE WHEN u.role = 0 THEN 'PUBLIC' ELSE pg_get_userbyid(u.role)::text END AS name
              FROM unnest(p.polroles) AS u (role)) AS r
    ),
    'using', pg_get_expr(p.polqual, p.polrelid),
    'check', pg_get_expr(p.polwithcheck, p.polrelid)
)::text
FROM pg_catalog.pg_policy p
JOIN pg_catalog.pg_class t ON t.oid = p.polrelid
JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
WHERE p.polrelid = ANY ($1::oid[])
