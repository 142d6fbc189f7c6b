-- Who else may make things in a schema: $1 the schema, $2 the role that owns the trigger (NULL: the current one). Superusers, the owner of
-- the schema, and whoever can become one of both, are trusted.
WITH own AS (
    SELECT n.oid AS nsp, n.nspacl, n.nspowner, coalesce($2::text::regrole::oid, current_user::regrole::oid) AS role
    FROM pg_namespace n WHERE n.nspname = $1
), granted AS (
    SELECT own.*, a.grantee
    FROM own, LATERAL aclexplode(coalesce(own.nspacl, acldefault('n', own.nspowner))) a
    WHERE a.privilege_type = 'CREATE'
)
SELECT DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END AS grantee
FROM granted g
WHERE g.grantee = 0
   OR EXISTS (
       SELECT FROM pg_roles r
       WHERE r.rolcanlogin AND NOT r.rolsuper AND pg_has_role(r.oid, g.grantee, 'MEMBER')
         AND NOT pg_has_role(r.oid, g.role, 'MEMBER') AND NOT pg_has_role(r.oid, g.nspowner, 'MEMBER')
   )
ORDER BY 1
