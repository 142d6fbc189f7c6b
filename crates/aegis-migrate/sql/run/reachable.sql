-- Whether a schema is there ($1), and may be used by a role ($2; NULL: whoever is connected). NULL: nobody can tell, because the role is
-- not there or not ours to become; becoming it says so.
SELECT w.role::text, n.oid IS NOT NULL,
       CASE WHEN n.oid IS NULL OR r.oid IS NULL OR NOT pg_has_role(r.oid, 'MEMBER') THEN NULL
            ELSE has_schema_privilege(r.oid, n.oid, 'USAGE') END
FROM (SELECT coalesce($2::text, current_user::text)::name AS role) AS w
LEFT JOIN pg_namespace n ON n.nspname = $1
LEFT JOIN pg_roles r ON r.rolname = w.role
